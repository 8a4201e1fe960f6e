//! Checks which callers see each column of each record. `visibility.txt` lists them, or `owner` if
//! only the installation's owner sees the column.
//!
//! The file is written by hand. A changed line changes the data that a tenant's callers see.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use authority_model::DESCRIPTORS;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage, Value};

/// Returns the value of an option, if it is set.
fn option(options: &DynamicMessage, name: &str) -> Option<Value> {
    let extension = options.descriptor().parent_pool().get_extension_by_name(name).unwrap();
    options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned())
}

/// Returns the roles and flags of a rule, such as `admin auditor` or `tenant about`.
fn callers(rule: &DynamicMessage) -> String {
    let roles = rule.get_field_by_name("roles").unwrap().into_owned();
    let roles = roles.as_list().unwrap().iter().map(|role| role.as_str().unwrap().to_owned());
    let flags = ["tenant", "tenant_unless_human", "about"].into_iter();
    let flags = flags.filter(|flag| rule.get_field_by_name(flag).unwrap().as_bool().unwrap());
    roles.chain(flags.map(str::to_owned)).collect::<Vec<_>>().join(" ")
}

fn table(message: &MessageDescriptor) -> Option<String> {
    let resource = option(&message.options(), "google.api.resource")?;
    Some(resource.as_message()?.get_field_by_name("plural")?.as_str()?.to_owned())
}

/// Returns the visible columns of a record with their callers.
fn visible(message: &MessageDescriptor) -> BTreeMap<String, String> {
    let fields = message.fields().filter_map(|field| {
        let rule = option(&field.options(), "authority.auth.v1.visibility")?;
        Some((field.name().to_owned(), callers(rule.as_message()?)))
    });
    let columns = option(&message.options(), "authority.auth.v1.columns");
    let columns = columns.iter().filter_map(Value::as_list).flatten().map(|column| {
        let column = column.as_message().unwrap();
        let name = column.get_field_by_name("name").unwrap().as_str().unwrap().to_owned();
        let rule = column.get_field_by_name("visibility").unwrap();
        (name, callers(rule.as_message().unwrap()))
    });
    let always = ["id", "state"].map(|name| (name.to_owned(), "tenant".to_owned()));
    always.into_iter().chain(fields).chain(columns).collect()
}

/// Returns the columns of all tables.
fn columns() -> BTreeMap<String, BTreeSet<String>> {
    let schema = include_str!("../src/schema.rs");
    let tables = schema.split("diesel::table! {").skip(1).map(|table| {
        let mut lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
        let name = lines.next().and_then(|line| line.split(' ').next()).unwrap();
        let mut renamed = None;
        let mut columns = BTreeSet::new();
        for line in lines {
            if let Some(name) = line.strip_prefix("#[sql_name = \"") {
                renamed = name.strip_suffix("\"]").map(str::to_owned);
            } else if let Some((column, _)) = line.split_once(" -> ") {
                columns.insert(renamed.take().unwrap_or_else(|| column.to_owned()));
            }
        }
        (name.to_owned(), columns)
    });
    tables.collect()
}

#[test]
fn each_column_of_each_record_is_visible_to_the_listed_callers() {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let columns = columns();
    let mut found = BTreeSet::new();
    for message in pool.all_messages() {
        let Some(table) = table(&message) else { continue };
        let visible = visible(&message);
        let stored = &columns[&table];
        let unknown: Vec<_> = visible.keys().filter(|name| !stored.contains(*name)).collect();
        assert!(unknown.iter().all(|name| *name == "state"), "{table} has no {unknown:?}");
        for column in stored {
            let callers = visible.get(column).map_or("owner", String::as_str);
            found.insert(format!("{table}.{column} {callers}"));
        }
    }
    let listed: BTreeSet<_> = include_str!("visibility.txt").lines().map(str::to_owned).collect();
    let [gone, new] = [listed.difference(&found), found.difference(&listed)];
    let (gone, new): (Vec<_>, Vec<_>) = (gone.collect(), new.collect());
    assert!(gone.is_empty() && new.is_empty(), "only listed: {gone:#?}; only found: {new:#?}");
}
