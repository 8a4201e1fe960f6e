//! Implements the traits of src/record.rs for the messages with the matching shape.

use std::fmt::Write as _;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::{
    is_ours, names,
    options::{self, Behaviour, Resource},
    states,
};

/// The method that each request belongs to.
pub(crate) fn asked(pool: &DescriptorPool) -> String {
    let mut code = String::new();
    for service in pool.services().filter(|service| is_ours(service.package_name())) {
        for method in service.methods() {
            let path = names::path(&method.input());
            let name = format!("{}/{}", service.full_name(), method.name());
            let _ = writeln!(
                code,
                "impl RpcRequest for {path} {{ const METHOD: &'static str = {name:?}; }}"
            );
        }
    }
    code
}

pub(crate) fn of(message: &MessageDescriptor) -> String {
    let path = names::path(message);
    let mut code = String::new();
    if message.name().ends_with("Request") {
        code += &request(message, &path);
    }
    if message.name().starts_with("Export") {
        code += &export(message, &path);
    } else if message.name().ends_with("Response") {
        code += &response(message, &path);
    }
    if let Some(resource) = options::resource(message) {
        code += &record(message, &path, &resource);
    }
    code
}

fn request(message: &MessageDescriptor, path: &str) -> String {
    let mut code = String::new();
    if is_text(message, "id") {
        let deleted = match message.get_field_by_name("deleted") {
            Some(_) => "fn deleted(&self) -> bool { self.deleted }",
            None => "",
        };
        let _ = writeln!(
            code,
            "impl ByIdRequest for {path} {{ fn id(&self) -> &str {{ &self.id }} {deleted} }}"
        );
    }
    if is_text(message, "page_token") && message.get_field_by_name("limit").is_some() {
        code += &listing(message, path);
    }
    if let Some((field, record)) = carried(message) {
        let mask = match message.get_field_by_name("update_mask") {
            Some(_) => "self.update_mask.unwrap_or_default()",
            None => "FieldMask::default()",
        };
        let _ = writeln!(
            code,
            "impl RecordRequest for {path} {{
                type Record = {};
                const FIELD: &'static str = {:?};
                fn open(self) -> (Self::Record, FieldMask) {{ (self.{}.unwrap_or_default(), {mask}) }}
            }}",
            names::path(&record),
            field.name(),
            names::field(&field),
        );
    }
    code
}

/// An export takes its list's filters, and returns the list's records.
fn export(message: &MessageDescriptor, path: &str) -> String {
    if let Some((field, record)) = carried(message) {
        let (field, record) = (names::field(&field), names::path(&record));
        return format!(
            "impl Exported for {path} {{
                type Record = {record};
                fn of(record: Option<{record}>, page_token: String) -> Self {{
                    Self {{ end: record.is_none(), {field}: record, page_token }}
                }}
            }}\n"
        );
    }
    let list = message.full_name().replace(".Export", ".List");
    let list = message.parent_pool().get_message_by_name(&list);
    let Some(list) = list.filter(|list| list.name().ends_with("Request")) else {
        return String::new();
    };
    let fields = message.fields().map(|field| {
        let name = names::field(&field);
        format!("{name}: from.{name},")
    });
    // A list's page size does not apply to an export.
    format!(
        "impl From<{path}> for {list} {{
            fn from(from: {path}) -> Self {{ Self {{ {} ..Self::default() }} }}
        }}\n",
        fields.collect::<String>(),
        list = names::path(&list),
    )
}

fn listing(message: &MessageDescriptor, path: &str) -> String {
    let text = |name: &str| match message.get_field_by_name(name) {
        Some(field) if options::is_nullable(&field) => {
            format!("self.{name}.as_deref()")
        }
        Some(_) => format!("Some(self.{name}.as_str()).filter(|text| !text.is_empty())"),
        None => "None".to_owned(),
    };
    let flag = |name: &str| match message.get_field_by_name(name) {
        Some(field) if options::is_nullable(&field) => format!("self.{name}.unwrap_or_default()"),
        Some(_) => format!("self.{name}"),
        None => "false".to_owned(),
    };
    format!(
        "impl Listing for {path} {{ fn page(&self) -> Page<'_> {{ Page {{
            tenant_id: {}, state: {}, limit: self.limit, token: &self.page_token,
            count: {}, deleted: {},
        }} }} }}\n",
        text("tenant_id"),
        text("state"),
        flag("count"),
        flag("deleted"),
    )
}

fn response(message: &MessageDescriptor, path: &str) -> String {
    let list = message.fields().find_map(|field| match field.kind() {
        Kind::Message(kind) if field.is_list() && options::resource(&kind).is_some() => {
            Some((names::field(&field), names::path(&kind)))
        }
        _ => None,
    });
    let mut code = String::new();
    if let Some((field, record)) = list
        && is_text(message, "next_page_token")
    {
        let (parameter, total) = match message.get_field_by_name("total") {
            Some(_) => ("total", "total,"),
            None => ("_", ""),
        };
        let _ = writeln!(
            code,
            "impl ListResponse for {path} {{
                type Record = {record};
                fn of(records: Vec<{record}>, {parameter}: Option<i32>, next_page_token: Option<String>) -> Self {{
                    Self {{ {field}: records, {total} next_page_token }}
                }}
            }}"
        );
    }
    if let Some((field, record)) = carried(message)
        && is_text(message, "id")
    {
        let (field, record) = (names::field(&field), names::path(&record));
        let _ = writeln!(
            code,
            "impl Deleted for {path} {{
                type Record = {record};
                fn of(id: String, record: Option<{record}>) -> Self {{ Self {{ id, {field}: record }} }}
            }}"
        );
    }
    code
}

fn is_text(message: &MessageDescriptor, name: &str) -> bool {
    message
        .get_field_by_name(name)
        .is_some_and(|field| matches!(field.kind(), Kind::String) && !field.is_list())
}

/// The one record inside a request or response.
fn carried(message: &MessageDescriptor) -> Option<(FieldDescriptor, MessageDescriptor)> {
    message.fields().find_map(|field| match field.kind() {
        Kind::Message(kind) if options::resource(&kind).is_some() && !field.is_list() => {
            Some((field, kind))
        }
        _ => None,
    })
}

fn record(message: &MessageDescriptor, path: &str, resource: &Resource) -> String {
    let has = |name: &str| message.get_field_by_name(name).is_some();
    let kind = &resource.kind;
    let tenant = match message.get_field_by_name("tenant_id") {
        Some(field) if options::is_nullable(&field) => {
            "self.tenant_id.as_deref().unwrap_or_default()"
        }
        Some(_) => "&self.tenant_id",
        None => "&self.id",
    };
    let state_field = states::field(message);
    let (state_type, read_state, state) = match &state_field {
        Some(field) => {
            let text = if options::is_filled(field) {
                format!("self.{}.as_deref().unwrap_or_default()", field.name())
            } else {
                format!("&self.{}", field.name())
            };
            let name = states::name(message, field);
            (format!("crate::state::{name}"), "self.state().parse().ok()", text)
        }
        None => ("crate::state::Stateless".to_owned(), "None", "\"\"".to_owned()),
    };
    let time = |name: &str| if has(name) { format!("self.{name}") } else { "None".to_owned() };
    let mut begin = String::from("self.id = id;");
    let mut by = "_";
    if has("created_by") {
        by = "by";
        begin += "self.created_by = by;";
    }
    if let Some(field) = &state_field {
        let name = field.name();
        begin += &if options::is_filled(field) {
            format!("self.{name}.get_or_insert_with(|| Self::State::default().to_string());")
        } else {
            format!(
                "if self.{name}.is_empty() {{ self.{name} = Self::State::default().to_string(); }}"
            )
        };
    }
    let (fixed, unset, merge) = members(message);
    let merge = if merge.is_empty() {
        // A client cannot change any of it.
        "fn merge(&mut self, _: Self, _: &FieldMask) {}".to_owned()
    } else {
        format!(
            "fn merge(&mut self, mut from: Self, mask: &FieldMask) {{
                for path in &mask.paths {{ match path.as_str() {{ {merge} _ => {{}} }} }}
            }}"
        )
    };
    format!(
        "impl Record for {path} {{
            const KIND: &'static str = {kind:?};
            fn id(&self) -> &str {{ &self.id }}
            fn tenant_id(&self) -> &str {{ {tenant} }}
            type State = {state_type};
            fn state(&self) -> &str {{ {state} }}
            fn known_state(&self) -> Option<Self::State> {{ {read_state} }}
            fn created_at(&self) -> Option<Time> {{ {created} }}
            fn updated_at(&self) -> Option<Time> {{ {updated} }}
            fn stamp_created(&mut self, id: String, {by}: String) {{ {begin} }}
            fn reject_output_only(&self, found: &mut Violations) {{ {unset} }}
            fn reject_immutable(mask: &FieldMask, found: &mut Violations) {{
                for path in &mask.paths {{ match path.as_str() {{ {fixed} other => found.add(other, \"is not a member of this record\"), }} }}
            }}
            {merge}
        }}\n",
        created = time("created_at"),
        updated = time("updated_at"),
    )
}

/// Match arms and checks: what a patch must not name, what a create must not set, what a patch changes.
fn members(message: &MessageDescriptor) -> (String, String, String) {
    let (mut fixed, mut unset, mut merge, mut free) =
        (String::new(), String::new(), String::new(), Vec::new());
    for field in message.fields() {
        let (name, rust) = (field.name(), names::field(&field));
        match (options::behaviour(&field), field.kind()) {
            (Some(Behaviour::OutputOnly), _) => {
                let _ = writeln!(unset, "found.output_only({name:?}, {});", is_empty(&field));
                let _ = writeln!(fixed, "{name:?} => found.output_only({name:?}, false),");
            }
            (Some(Behaviour::Immutable), _) => {
                let _ = writeln!(fixed, "{name:?} => found.add({name:?}, \"cannot change\"),");
            }
            // A message column that is never null is cleared to the empty one.
            (None, Kind::Message(_)) if !field.is_list() && !options::is_nullable(&field) => {
                free.push(format!("{name:?}"));
                let _ = writeln!(
                    merge,
                    "{name:?} => self.{rust} = Some(from.{rust}.take().unwrap_or_default()),"
                );
            }
            _ => {
                free.push(format!("{name:?}"));
                let _ =
                    writeln!(merge, "{name:?} => self.{rust} = std::mem::take(&mut from.{rust}),");
            }
        }
    }
    if !free.is_empty() {
        let _ = writeln!(fixed, "{} => {{}}", free.join(" | "));
    }
    (fixed, unset, merge)
}

fn is_empty(field: &FieldDescriptor) -> String {
    let rust = names::field(field);
    match field.kind() {
        _ if field.is_list() || field.is_map() => format!("self.{rust}.is_empty()"),
        _ if field.supports_presence() => format!("self.{rust}.is_none()"),
        Kind::String | Kind::Bytes => format!("self.{rust}.is_empty()"),
        Kind::Bool => format!("!self.{rust}"),
        _ => format!("self.{rust} == 0"),
    }
}
