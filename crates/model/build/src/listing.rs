//! Implements `Listing` for requests for a page of a list.

use proc_macro2::TokenStream;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use quote::{format_ident, quote};

use crate::{names, options};

pub(crate) fn of(message: &MessageDescriptor, path: &TokenStream) -> TokenStream {
    let text = |name: &str| {
        let rust = format_ident!("{name}");
        match message.get_field_by_name(name) {
            Some(field) if options::is_nullable(&field) => quote!(self.#rust.as_deref()),
            Some(_) => quote!(Some(self.#rust.as_str()).filter(|text| !text.is_empty())),
            None => quote!(None),
        }
    };
    let flag = |name: &str| {
        let rust = format_ident!("{name}");
        match message.get_field_by_name(name) {
            Some(field) if options::is_nullable(&field) => quote!(self.#rust.unwrap_or_default()),
            Some(_) => quote!(self.#rust),
            None => quote!(false),
        }
    };
    let (tenant_id, state) = (text("tenant_id"), text("state"));
    let (count, deleted) = (flag("count"), flag("deleted"));
    let uncounted = message.get_field_by_name("count").map(|field| {
        let rust = names::field(&field);
        let none = if options::is_nullable(&field) { quote!(None) } else { quote!(false) };
        quote!(filters.#rust = #none;)
    });
    let times = message.fields().filter(is_time).map(|field| {
        let rust = names::field(&field);
        quote!(filters.#rust = filters.#rust.map(|_| Time::default());)
    });
    quote! {
        impl Listing for #path {
            fn page(&self) -> Page<'_> {
                Page {
                    tenant_id: #tenant_id, state: #state, limit: self.limit,
                    token: &self.page_token, count: #count, deleted: #deleted,
                }
            }
            fn filters(&self) -> Vec<u8> {
                let mut filters = self.clone();
                filters.limit = None;
                filters.page_token = String::new();
                #uncounted
                #(#times)*
                prost::Message::encode_to_vec(&filters)
            }
        }
    }
}

fn is_time(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(kind) if kind.full_name() == "google.protobuf.Timestamp")
}
