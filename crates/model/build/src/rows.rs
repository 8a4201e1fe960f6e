//! Makes each message with `google.api.resource` a row: adds diesel's derives to prost's struct.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use quote::{format_ident, quote};
use tonic_prost_build::Builder;

use crate::{names, options};

pub(crate) fn derive(message: &MessageDescriptor, mut builder: Builder) -> Builder {
    let name = message.full_name();
    if options::is_stored_whole(message) {
        let stored = quote! {
            #[derive(diesel::expression::AsExpression, diesel::deserialize::FromSqlRow)]
            #[diesel(sql_type = diesel::sql_types::Jsonb)]
        };
        builder = builder.message_attribute(name, stored.to_string());
    }
    let Some(options::Resource { table, .. }) = options::resource(message) else {
        return builder;
    };
    let table = format_ident!("{table}");
    // A record that only the server writes has no changeset.
    let changes = message.fields().any(|field| options::behaviour(&field).is_none());
    let changeset = changes.then(|| quote!(#[derive(diesel::AsChangeset)]));
    let nulls = changes.then(|| quote!(, treat_none_as_null = true));
    let row = quote! {
        #[derive(diesel::Queryable, diesel::Selectable, diesel::Insertable)]
        #changeset
        #[diesel(table_name = crate::schema::#table #nulls)]
        #[diesel(check_for_backend(diesel::pg::Pg))]
    };
    builder = builder.message_attribute(name, row.to_string());
    for field in message.fields() {
        let attributes = column(&field, changes);
        if !attributes.is_empty() {
            let path = format!("{name}.{}", field.name());
            builder = builder.field_attribute(path, attributes.to_string());
        }
    }
    builder
}

/// Returns diesel's attributes of a row's field. `changes` is whether the record has a changeset.
fn column(field: &FieldDescriptor, changes: bool) -> TokenStream {
    let fixed = options::behaviour(field).is_some() || options::is_computed(field);
    let skip_update = (changes && fixed).then(|| quote!(#[diesel(skip_update)]));
    if options::is_computed(field) {
        return quote! {
            #skip_update
            #[diesel(skip_insertion, deserialize_as = crate::wire::Computed)]
            #[diesel(select_expression = crate::wire::computed())]
            #[diesel(select_expression_type = crate::wire::ComputedSql)]
        };
    }
    // diesel's table appends an underscore to a name that is reserved in Rust.
    let name = names::field(field).to_string();
    let renamed = name.starts_with("r#").then(|| {
        let column = format_ident!("{}_", field.name());
        quote!(#[diesel(column_name = #column)])
    });
    let never_null = match field.kind() {
        // prost wraps every message in Option. The column is nullable only if the proto field is
        // optional.
        Kind::Message(kind) if !options::is_nullable(field) && !field.is_list() => {
            Some(names::path(&kind))
        }
        // The column of a field that the server fills is never null either.
        Kind::Int32 if options::is_filled(field) => Some(quote!(i32)),
        Kind::Bool if options::is_filled(field) => Some(quote!(bool)),
        _ if options::is_filled(field) => Some(quote!(String)),
        _ => None,
    };
    let read = never_null.map(|kind| {
        let keep = (changes && !fixed).then(|| quote!(#[diesel(treat_none_as_null = false)]));
        quote!(#[diesel(deserialize_as = #kind)] #keep)
    });
    quote!(#renamed #read #skip_update)
}

/// Generates `ToSql` and `FromSql` for a message that is stored whole.
pub(crate) fn sql(message: &MessageDescriptor) -> TokenStream {
    if !options::is_stored_whole(message) {
        return TokenStream::new();
    }
    let path = names::path(message);
    quote! {
        impl diesel::serialize::ToSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for #path {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                crate::wire::jsonb::write(self, out)
            }
        }

        impl diesel::deserialize::FromSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for #path {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                crate::wire::jsonb::read(&value)
            }
        }
    }
}

/// Generates the conversions from `Computed` to the message types of computed fields.
///
/// The value is null until code fills the field. The model's src/wire/computed.rs has the
/// conversions to texts and lists.
pub(crate) fn computed(messages: impl Iterator<Item = MessageDescriptor>) -> TokenStream {
    let fields = messages.flat_map(|message| message.fields().collect::<Vec<_>>());
    let absent = fields.filter(|field| options::is_computed(field) && !field.is_list());
    let types: BTreeMap<String, TokenStream> = absent
        .filter_map(|field| match field.kind() {
            Kind::Message(kind) => Some((kind.full_name().to_owned(), names::path(&kind))),
            _ => None,
        })
        .collect();
    types
        .values()
        .map(|path| {
            quote! {
                impl From<crate::wire::Computed> for Option<#path> {
                    fn from(_: crate::wire::Computed) -> Self { None }
                }
            }
        })
        .collect()
}
