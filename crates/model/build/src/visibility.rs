//! Generates the static table `VISIBLE`: for each record, the fields that its tenant's callers see
//! (`authority.auth.v1.visibility`).

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use quote::quote;

use crate::{options, packages::ours};

pub(crate) fn of(pool: &DescriptorPool) -> TokenStream {
    let rows = ours(pool).filter_map(|message| {
        let fields = fields(&message);
        if fields.is_empty() {
            return None;
        }
        let Some(options::Resource { table, .. }) = options::resource(&message) else {
            panic!("{}: authority.auth.v1.visibility is for records", message.full_name());
        };
        Some(quote!((#table, &[#(#fields),*])))
    });
    quote!(pub(crate) static VISIBLE: &[(&str, &[VisibleField])] = &[#(#rows),*];)
}

fn fields(message: &MessageDescriptor) -> Vec<TokenStream> {
    let own = message.fields().filter_map(|field| {
        let rule = options::extension(&field.options(), "authority.auth.v1.visibility")?;
        let place = field.full_name();
        assert!(!options::is_computed(&field), "{place}: a computed field is not stored");
        Some(visible(field.name(), rule.as_message()?, place))
    });
    let columns = options::extension(&message.options(), "authority.auth.v1.columns");
    let columns = columns.iter().filter_map(|columns| columns.as_list()).flatten();
    let columns = columns.filter_map(Value::as_message).map(|column| {
        let name = options::text(column, "name");
        let place = format!("{}: column {name}", message.full_name());
        let rule = options::message(column, "visibility");
        let rule = rule.unwrap_or_else(|| panic!("{place}: visibility is required"));
        visible(&name, &rule, &place)
    });
    own.chain(columns).collect()
}

fn visible(name: &str, rule: &DynamicMessage, place: &str) -> TokenStream {
    let [tenant, tenant_unless_human, about] =
        ["tenant", "tenant_unless_human", "about"].map(|name| options::flag(rule, name));
    let roles = options::texts(rule, "roles");
    assert!(
        tenant || tenant_unless_human || !roles.is_empty(),
        "{place}: authority.auth.v1.visibility lists no callers"
    );
    quote! {
        VisibleField {
            name: #name, tenant: #tenant, tenant_unless_human: #tenant_unless_human,
            roles: &[#(#roles),*], about: #about,
        }
    }
}
