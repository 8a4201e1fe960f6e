//! Generates an enum for the states of each record, from `string.in` of its `state` or `status`
//! field.

use proc_macro2::{Ident, TokenStream};
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use quote::{format_ident, quote};

use crate::{
    names::camel,
    options::{self, extension},
    packages::ours,
};

/// Returns the field with a record's state.
pub(crate) fn field(message: &MessageDescriptor) -> Option<FieldDescriptor> {
    options::resource(message)?;
    let field = ["state", "status"].iter().find_map(|name| message.get_field_by_name(name))?;
    assert!(
        field.kind() == Kind::String && !field.is_list() && !words(&field).is_empty(),
        "{}: the states of a record are a text with `string.in`",
        field.full_name()
    );
    Some(field)
}

/// Returns the name of the enum: `DelegationState`, `ApiKeyStatus`.
pub(crate) fn name(message: &MessageDescriptor, field: &FieldDescriptor) -> Ident {
    format_ident!("{}{}", message.name(), camel(field.name()))
}

pub(crate) fn of(pool: &DescriptorPool) -> TokenStream {
    ours(pool).filter_map(|message| Some(states(&message, &field(&message)?))).collect()
}

pub(crate) fn words(field: &FieldDescriptor) -> Vec<String> {
    let rules = extension(&field.options(), "buf.validate.field");
    let rules = rules.as_ref().and_then(|rules| rules.as_message());
    let text = rules.and_then(|rules| options::message(rules, "string"));
    text.map(|text| options::texts(&text, "in")).unwrap_or_default()
}

fn states(message: &MessageDescriptor, field: &FieldDescriptor) -> TokenStream {
    let name = name(message, field);
    let words = words(field);
    let variants: Vec<_> = words.iter().map(|word| format_ident!("{}", camel(word))).collect();
    // A record that can be active starts active. Any other record starts in the first state of its
    // list.
    let first = words.iter().position(|word| word == "active").unwrap_or_default();
    let defaults =
        (0..variants.len()).map(|variant| (variant == first).then(|| quote!(#[default])));
    let finals = options::finals(field);
    let unknown = finals.iter().find(|word| !words.contains(word));
    assert!(unknown.is_none(), "{}: {unknown:?} is not a state", field.full_name());
    let finals = finals.iter().map(|word| format_ident!("{}", camel(word)));
    let about = format!(" The values of `{}`.", field.full_name());
    quote! {
        #[doc = #about]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, AsExpression)]
        #[diesel(sql_type = Text)]
        pub enum #name { #(#defaults #variants),* }

        impl #name {
            pub const ALL: &'static [Self] = &[#(Self::#variants),*];
            pub const FINAL: &'static [Self] = &[#(Self::#finals),*];

            pub const fn as_str(self) -> &'static str {
                match self { #(Self::#variants => #words),* }
            }
        }

        impl FromStr for #name {
            type Err = UnknownState;

            fn from_str(text: &str) -> Result<Self, UnknownState> {
                match text { #(#words => Ok(Self::#variants),)* _ => Err(UnknownState) }
            }
        }

        impl Display for #name {
            fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result { to.write_str(self.as_str()) }
        }

        impl ToSql<Text, Pg> for #name {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
                <str as ToSql<Text, Pg>>::to_sql(self.as_str(), out)
            }
        }
    }
}
