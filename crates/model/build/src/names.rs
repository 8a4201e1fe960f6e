//! Rust names of proto elements.

use proc_macro2::{Ident, Span, TokenStream};
use prost_reflect::{FieldDescriptor, MessageDescriptor};
use quote::format_ident;

/// Types that replace prost's own.
pub(crate) const OWN_TYPES: [(&str, &str); 4] = [
    ("google.protobuf.Timestamp", "crate::wire::Time"),
    ("google.protobuf.Struct", "crate::wire::Json"),
    ("google.protobuf.ListValue", "crate::wire::List"),
    ("google.protobuf.FieldMask", "crate::wire::FieldMask"),
];

pub(crate) fn is_own_type(message: &MessageDescriptor) -> bool {
    OWN_TYPES.iter().any(|(proto, _)| *proto == message.full_name())
}

/// Returns the area of a package: `registry` for `authority.registry.v1`.
pub(crate) fn area(package: &str) -> &str {
    package.split('.').nth(1).unwrap_or(package)
}

/// Returns the full path of a message, which is valid anywhere in the crate.
pub(crate) fn path(message: &MessageDescriptor) -> TokenStream {
    let own = OWN_TYPES.iter().find(|(proto, _)| *proto == message.full_name());
    match own {
        Some((_, rust)) => parsed(rust),
        None => parsed(&format!("{}::{}", module(message), message.name())),
    }
}

/// Returns the path of the enum that prost generates for a oneof.
pub(crate) fn oneof(message: &MessageDescriptor, oneof: &str) -> TokenStream {
    parsed(&format!("{}::{}::{}", module(message), snake(message.name()), camel(oneof)))
}

/// Returns the path of the module for a message in prost's output.
///
/// This is the module of its package or of its parent message.
fn module(message: &MessageDescriptor) -> String {
    match message.parent_message() {
        Some(parent) => format!("{}::{}", module(&parent), snake(parent.name())),
        None => format!("crate::proto::{}", area(message.package_name())),
    }
}

pub(crate) fn parsed(code: &str) -> TokenStream {
    code.parse().unwrap_or_else(|error| panic!("{code}: {error}"))
}

/// Converts a name to snake case, as prost does for methods and modules of nested messages.
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

/// Converts a name to camel case, as prost does for oneof variants: `max_uses` is `MaxUses`.
pub(crate) fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(1.min(word.len()));
            first.to_uppercase() + rest
        })
        .collect()
}

/// Returns the field's Rust name: the proto's name, as a raw identifier if it is a keyword.
pub(crate) fn field(field: &FieldDescriptor) -> Ident {
    match field.name() {
        // These names cannot be raw identifiers; prost adds an underscore.
        word @ ("self" | "super" | "crate" | "extern") => format_ident!("{word}_"),
        // `gen` is reserved since edition 2024; this version of syn does not know that.
        "gen" => Ident::new_raw("gen", Span::call_site()),
        word => syn::parse_str(word).unwrap_or_else(|_| Ident::new_raw(word, Span::call_site())),
    }
}
