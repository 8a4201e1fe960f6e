//! Message tables: `static SHAPE_…`.

use std::{collections::BTreeMap, fmt::Write as _};

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::{Options, descriptor};

/// The runtime has a bit for each field.
const MOST_FIELDS: usize = 256;

pub(crate) fn source(pool: &DescriptorPool, options: &Options) -> String {
    let mut known = BTreeMap::new();
    for message in pool.all_messages().filter(|m| options.covers(m.package_name())) {
        reach(&message, &mut known);
    }
    for service in descriptor::services(pool, options) {
        for method in service.methods() {
            reach(&method.input(), &mut known);
            reach(&method.output(), &mut known);
        }
    }
    let runtime = &options.runtime;
    let mut code = String::new();
    let mut names = BTreeMap::new();
    for message in known.values() {
        let name = name(message);
        if let Some(other) = names.insert(name.clone(), message.full_name().to_owned()) {
            panic!("{other} and {} would both be {name}", message.full_name());
        }
        code += &shape(message, runtime);
    }
    let all: Vec<_> = known.values().map(|message| format!("&{}", name(message))).collect();
    let _ = writeln!(
        code,
        "/// Every message, sorted by full name.\n\
         pub static SHAPES: &[&{runtime}::Shape] = &[{}];\n\
         /// The shape of a message by its full protobuf name.\n\
         pub fn shape(name: &str) -> Option<&'static {runtime}::Shape> {{\n    \
         let at = SHAPES.binary_search_by(|shape| shape.name.cmp(name)).ok()?;\n    \
         SHAPES.get(at).copied()\n}}",
        all.join(", "),
    );
    code
}

/// The message and those of its fields; recursion ends at known ones.
pub(crate) fn reach(message: &MessageDescriptor, known: &mut BTreeMap<String, MessageDescriptor>) {
    if descriptor::is_special(message.full_name()) {
        return;
    }
    if known.insert(message.full_name().to_owned(), message.clone()).is_none() {
        for field in message.fields() {
            if let Kind::Message(inner) = field.kind() {
                reach(&inner, known);
            }
        }
    }
}

pub(crate) fn name(message: &MessageDescriptor) -> String {
    format!("SHAPE_{}", message.full_name().replace('.', "_").to_uppercase())
}

fn shape(message: &MessageDescriptor, runtime: &str) -> String {
    let fields = descriptor::fields(message);
    let at = message.full_name();
    assert!(fields.len() <= MOST_FIELDS, "{at}: more than {MOST_FIELDS} fields");
    let order = |key: &dyn Fn(&FieldDescriptor) -> (u32, String)| -> Vec<usize> {
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|place| key(&fields[*place]));
        order
    };
    let by_name = order(&|field| (0, field.name().to_owned()));
    let by_number = order(&|field| (field.number(), String::new()));
    let entries: String = fields.iter().map(|field| entry(field, runtime)).collect();
    format!(
        "pub static {}: {runtime}::Shape = {runtime}::Shape {{\n    name: {at:?},\n    \
         fields: &[\n{entries}    ],\n    by_name: &{by_name:?},\n    \
         by_number: &{by_number:?},\n}};\n",
        name(message),
    )
}

fn entry(field: &FieldDescriptor, runtime: &str) -> String {
    let cardinality = if field.is_map() {
        "Map"
    } else if field.is_list() {
        "Repeated"
    } else if descriptor::is_nullable(field) {
        "Optional"
    } else {
        "Single"
    };
    let oneof = descriptor::oneof(field).map_or(0, |index| index + 1);
    format!(
        "        {runtime}::Field {{ name: {:?}, number: {}, kind: {}, \
         cardinality: {runtime}::Cardinality::{cardinality}, oneof: {oneof} }},\n",
        field.name(),
        field.number(),
        kind(&field.kind(), field.full_name(), runtime),
    )
}

fn kind(kind: &Kind, at: &str, runtime: &str) -> String {
    let word = match kind {
        Kind::Bool => "Bool",
        Kind::Int32 => "Int32",
        Kind::Sint32 => "Sint32",
        Kind::Sfixed32 => "Sfixed32",
        Kind::Uint32 => "Uint32",
        Kind::Fixed32 => "Fixed32",
        Kind::Int64 => "Int64",
        Kind::Sint64 => "Sint64",
        Kind::Sfixed64 => "Sfixed64",
        Kind::Uint64 => "Uint64",
        Kind::Fixed64 => "Fixed64",
        Kind::Float => "Float",
        Kind::Double => "Double",
        Kind::String => "String",
        Kind::Bytes => "Bytes",
        Kind::Enum(words) => {
            return format!("{runtime}::Kind::Enum(&{:?})", descriptor::words(words));
        }
        Kind::Message(message) => return of_message(message, at, runtime),
    };
    format!("{runtime}::Kind::{word}")
}

fn of_message(message: &MessageDescriptor, at: &str, runtime: &str) -> String {
    let full = message.full_name();
    if let Some(inner) = descriptor::wrapped(full) {
        return format!("{runtime}::Kind::Wrapper(&{})", kind(&inner, at, runtime));
    }
    match full.strip_prefix("google.protobuf.") {
        Some("Any") => panic!("{at}: google.protobuf.Any has no JSON form here"),
        Some("ListValue") => format!("{runtime}::Kind::List"),
        Some(word) if descriptor::is_special(full) => format!("{runtime}::Kind::{word}"),
        _ => format!("{runtime}::Kind::Message(&{})", name(message)),
    }
}
