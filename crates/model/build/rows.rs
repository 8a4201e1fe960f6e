//! Makes a message with `google.api.resource` a row: adds diesel's derives to prost's struct.

use std::collections::BTreeSet;

use prost_reflect::{Kind, MessageDescriptor};
use tonic_prost_build::Builder;

use crate::{names, options};

pub(crate) fn derive(message: &MessageDescriptor, mut builder: Builder) -> Builder {
    let name = message.full_name();
    if options::is_stored_whole(message) {
        builder = builder.message_attribute(
            name,
            "#[derive(diesel::expression::AsExpression, diesel::deserialize::FromSqlRow)]\n\
             #[diesel(sql_type = diesel::sql_types::Jsonb)]",
        );
    }
    let Some(options::Resource { table, .. }) = options::resource(message) else {
        return builder;
    };
    // A record that only the server writes has no changes.
    let changes = message.fields().any(|field| options::behaviour(&field).is_none());
    let (derives, nulls) =
        if changes { (", diesel::AsChangeset", ", treat_none_as_null = true") } else { ("", "") };
    builder = builder.message_attribute(
        name,
        format!(
            "#[derive(diesel::Queryable, diesel::Selectable, diesel::Insertable{derives})]\n\
             #[diesel(table_name = crate::schema::{table}{nulls})]\n\
             #[diesel(check_for_backend(diesel::pg::Pg))]"
        ),
    );
    for field in message.fields() {
        let is_fixed = options::behaviour(&field).is_some();
        let mut attribute = String::new();
        if options::is_computed(&field) {
            let path = format!("{name}.{}", field.name());
            if changes {
                builder = builder.field_attribute(path.clone(), "#[diesel(skip_update)]");
            }
            builder = builder.field_attribute(
                path,
                "#[diesel(skip_insertion, deserialize_as = crate::wire::Computed)]\
                 #[diesel(select_expression = crate::wire::computed())]\
                 #[diesel(select_expression_type = crate::wire::ComputedSql)]",
            );
            continue;
        }
        // prost wraps every message in Option; the column is nullable only if the proto says so.
        if let Kind::Message(kind) = field.kind()
            && !options::is_nullable(&field)
            && !field.is_list()
        {
            let path = names::path(&kind);
            attribute.push_str("#[diesel(deserialize_as = ");
            attribute.push_str(&path);
            attribute.push_str(")]");
            if !is_fixed {
                attribute += "#[diesel(treat_none_as_null = false)]";
            }
        }
        // The same for a text that the server fills: the column has no null.
        if options::is_filled(&field) {
            attribute.push_str("#[diesel(deserialize_as = String)]");
            if changes && !is_fixed {
                attribute += "#[diesel(treat_none_as_null = false)]";
            }
        }
        if is_fixed && changes {
            attribute += "#[diesel(skip_update)]";
        }
        if !attribute.is_empty() {
            builder = builder.field_attribute(format!("{name}.{}", field.name()), attribute);
        }
    }
    builder
}

/// `ToSql` and `FromSql` of a message that is stored whole.
pub(crate) fn sql(message: &MessageDescriptor) -> String {
    if !options::is_stored_whole(message) {
        return String::new();
    }
    let path = names::path(message);
    format!(
        "impl diesel::serialize::ToSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for {path} {{
            fn to_sql<'b>(&'b self, out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>) -> diesel::serialize::Result {{
                crate::wire::jsonb::write(self, out)
            }}
        }}
        impl diesel::deserialize::FromSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for {path} {{
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {{
                crate::wire::jsonb::read(&value)
            }}
        }}\n"
    )
}

/// The value of a computed field that is not filled yet: null, for each type that can be. Texts and lists
/// are empty by default.
pub(crate) fn computed(messages: impl Iterator<Item = MessageDescriptor>) -> String {
    let fields = messages.flat_map(|message| message.fields().collect::<Vec<_>>());
    let absent = fields.filter(|field| options::is_computed(field) && !field.is_list());
    let types: BTreeSet<String> = absent
        .filter_map(|field| match field.kind() {
            Kind::Message(kind) => Some(names::path(&kind)),
            _ => None,
        })
        .collect();
    let absent = |path: &String| {
        format!(
            "impl From<crate::wire::Computed> for Option<{path}> {{
                fn from(_: crate::wire::Computed) -> Self {{ None }}
            }}\n"
        )
    };
    types.iter().map(absent).collect()
}
