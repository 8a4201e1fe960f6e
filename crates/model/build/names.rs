//! Rust names of proto elements.

use prost_reflect::{FieldDescriptor, MessageDescriptor};

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
pub(crate) fn path(message: &MessageDescriptor) -> String {
    let own = OWN_TYPES.iter().find(|(proto, _)| *proto == message.full_name());
    if let Some((_, rust)) = own {
        return (*rust).to_owned();
    }
    let mut parts = vec![message.name().to_owned()];
    let mut outer = message.parent_message();
    while let Some(parent) = outer {
        parts.push(snake(parent.name()));
        outer = parent.parent_message();
    }
    parts.push(area(message.package_name()).to_owned());
    parts.reverse();
    format!("crate::proto::{}", parts.join("::"))
}

/// As prost names the module of a message's inner types.
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
pub(crate) fn field(field: &FieldDescriptor) -> String {
    match field.name() {
        word @ ("type" | "match" | "move" | "ref" | "use" | "where" | "in" | "for" | "as"
        | "loop" | "mod" | "fn" | "if" | "else" | "enum" | "struct" | "trait" | "impl"
        | "static" | "const" | "async" | "await" | "dyn" | "return" | "break"
        | "continue" | "override" | "final" | "abstract" | "virtual" | "box" | "try"
        | "yield" | "macro" | "priv" | "typeof" | "unsized" | "become" | "do"
        | "extern" | "false" | "true" | "let" | "mut" | "pub" | "unsafe" | "while"
        | "gen") => format!("r#{word}"),
        word => word.to_owned(),
    }
}
