//! Rust names of proto elements.

use proc_macro2::{Ident, Span, TokenStream};
use prost_reflect::{FieldDescriptor, MessageDescriptor};
use quote::format_ident;

/// The types that replace prost's own. All others are prost's.
pub(crate) const OWN_TYPES: [(&str, &str); 3] = [
    ("google.protobuf.Timestamp", "crate::wire::Time"),
    ("google.protobuf.Struct", "crate::wire::Json"),
    ("google.protobuf.FieldMask", "crate::wire::FieldMask"),
];

pub(crate) fn is_own_type(message: &MessageDescriptor) -> bool {
    OWN_TYPES.iter().any(|(proto, _)| *proto == message.full_name())
}

/// `registry` of `authority.registry.v1`.
pub(crate) fn area(package: &str) -> &str {
    package.split('.').nth(1).unwrap_or(package)
}

/// Path of a message from anywhere in the crate.
pub(crate) fn path(message: &MessageDescriptor) -> TokenStream {
    let own = OWN_TYPES.iter().find(|(proto, _)| *proto == message.full_name());
    match own {
        Some((_, rust)) => parsed(rust),
        None => parsed(&format!("{}::{}", module(message), message.name())),
    }
}

/// Path of the enum that prost makes of a oneof.
pub(crate) fn oneof(message: &MessageDescriptor, oneof: &str) -> TokenStream {
    parsed(&format!("{}::{}::{}", module(message), snake(message.name()), camel(oneof)))
}

/// The module that prost puts a message in: that of its package, or of the message around it.
fn module(message: &MessageDescriptor) -> String {
    match message.parent_message() {
        Some(parent) => format!("{}::{}", module(&parent), snake(parent.name())),
        None => format!("crate::proto::{}", area(message.package_name())),
    }
}

pub(crate) fn parsed(code: &str) -> TokenStream {
    code.parse().unwrap_or_else(|error| panic!("{code}: {error}"))
}

/// As prost names methods, and the module of a message's inner types.
pub(crate) fn snake(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// As prost names the variants of a oneof: `max_uses` is `MaxUses`.
pub(crate) fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(1.min(word.len()));
            first.to_uppercase() + rest
        })
        .collect()
}

/// The field's Rust name: as in the proto, raw if it is a keyword.
pub(crate) fn field(field: &FieldDescriptor) -> Ident {
    match field.name() {
        // They cannot be raw; prost adds an underscore.
        word @ ("self" | "super" | "crate" | "extern") => format_ident!("{word}_"),
        // Reserved since 2024, which syn does not know.
        "gen" => Ident::new_raw("gen", Span::call_site()),
        word => syn::parse_str(word).unwrap_or_else(|_| Ident::new_raw(word, Span::call_site())),
    }
}
