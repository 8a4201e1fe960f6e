//! `buf.validate` as Rust: one `Validate` implementation for each message.

use std::fmt::Write as _;

use prost_reflect::{Cardinality, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};

use crate::{is_ours, names, options};

pub(crate) fn of(message: &MessageDescriptor) -> String {
    let mut checks: String = message
        .fields()
        .filter(|field| field.containing_oneof().is_none() || options::is_nullable(field))
        .map(|field| check(&field))
        .collect();
    for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
        checks += &choice(message, &oneof);
    }
    // Some messages have no rules; the parameter is then unused.
    let found = if checks.is_empty() { "_" } else { "found" };
    format!(
        "impl Validate for {} {{ fn validate(&self, {found}: &mut Violations) {{ {checks} }} }}\n",
        names::path(message)
    )
}

/// Messages inside a oneof are checked; scalars there have no rules.
fn choice(message: &MessageDescriptor, oneof: &prost_reflect::OneofDescriptor) -> String {
    let mut arms = String::new();
    for field in oneof.fields() {
        if let Kind::Message(kind) = field.kind()
            && is_ours(kind.package_name())
        {
            let _ = writeln!(
                arms,
                "Some({}::{}(inner)) => found.within({:?}, |found| inner.validate(found)),",
                oneof_path(message, oneof.name()),
                names::camel(field.name()),
                field.name()
            );
        }
    }
    if arms.is_empty() {
        return arms;
    }
    format!("match &self.{} {{ {arms} _ => {{}} }}\n", oneof.name())
}

fn oneof_path(message: &MessageDescriptor, oneof: &str) -> String {
    let path = names::path(message);
    let (outer, name) = path.rsplit_once("::").unwrap_or(("crate", &path));
    format!("{outer}::{}::{}", names::snake(name), names::camel(oneof))
}

/// The rules of one field (or, for a list, of its items).
struct Rules(Option<DynamicMessage>);

impl Rules {
    fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|rules| options::flag(rules, "required"))
    }

    fn of(&self, kind: &str) -> Option<DynamicMessage> {
        options::message(self.0.as_ref()?, kind)
    }
}

fn check(field: &FieldDescriptor) -> String {
    let (name, rust) = (field.name(), names::field(field));
    let value = options::extension(&field.options(), "buf.validate.field");
    let rules = Rules(value.and_then(|value| value.as_message().cloned()));
    if field.is_map() {
        let mut code =
            length(name, &format!("self.{rust}.len()"), rules.of("map").as_ref(), "pairs");
        if rules.is_required() {
            let _ = writeln!(code, "found.present({name:?}, !self.{rust}.is_empty());");
        }
        return code;
    }
    if field.is_list() {
        return list(field, &rules);
    }
    let optional = options::is_nullable(field);
    let required = rules.is_required();
    match field.kind() {
        Kind::String => {
            let rule = rules.of("string");
            let value = if optional {
                format!("self.{rust}.as_deref()")
            } else {
                assert!(
                    required || is_output(field) || !rule.as_ref().is_some_and(refuses_empty),
                    "{}: make it `optional`: its rule refuses the empty text, which must be told \
                     apart from absence",
                    field.full_name()
                );
                format!("Some(self.{rust}.as_str()).filter(|text| !text.is_empty())")
            };
            let rule = text_rule(required, rule.as_ref());
            format!("found.text({name:?}, {value}, &{rule});\n")
        }
        Kind::Int32 | Kind::Int64 | Kind::Uint32 => {
            let rule = ["int32", "int64", "uint32"].into_iter().find_map(|kind| rules.of(kind));
            scalar(field, "integer", "i64", required, rule.as_ref())
        }
        Kind::Double => scalar(field, "number", "f64", required, rules.of("double").as_ref()),
        Kind::Bytes => {
            length(name, &format!("self.{rust}.len()"), rules.of("bytes").as_ref(), "len")
        }
        Kind::Enum(_) if required => {
            let set = if optional { "!= Some(0) && self.{}.is_some()" } else { "!= 0" };
            format!("found.present({name:?}, self.{rust} {});\n", set.replace("{}", &rust))
        }
        Kind::Message(kind) => inner(field, &kind, required),
        _ => String::new(),
    }
}

fn scalar(
    field: &FieldDescriptor,
    method: &str,
    wide: &str,
    required: bool,
    rule: Option<&DynamicMessage>,
) -> String {
    let (name, rust) = (field.name(), names::field(field));
    let optional = options::is_nullable(field);
    let mut code = String::new();
    if required {
        let is = if optional { ".is_some()" } else { " != 0" };
        let _ = writeln!(code, "found.present({name:?}, self.{rust}{is});");
    }
    if rule.is_none() && wide == "i64" {
        return code;
    }
    let bound = |side: &str, none: &str| {
        let set = rule.and_then(|rule| options::number(rule, side));
        set.unwrap_or_else(|| format!("{wide}::{none}"))
    };
    let value = match (optional, wide) {
        // A double needs no conversion to compare.
        (true, "f64") => format!("self.{rust}"),
        (false, "f64") => format!("Some(self.{rust})"),
        (true, _) => format!("self.{rust}.map({wide}::from)"),
        (false, _) => format!("Some({wide}::from(self.{rust}))"),
    };
    let (least, most) = (bound("gte", "MIN"), bound("lte", "MAX"));
    let _ = writeln!(code, "found.{method}({name:?}, {value}, {least}, {most});");
    code
}

fn inner(field: &FieldDescriptor, kind: &MessageDescriptor, required: bool) -> String {
    let (name, rust) = (field.name(), names::field(field));
    let mut code = String::new();
    if required {
        let _ = writeln!(code, "found.present({name:?}, self.{rust}.is_some());");
    }
    match kind.full_name() {
        "google.protobuf.Timestamp" => {
            let _ = writeln!(code, "found.time({name:?}, self.{rust});");
        }
        "google.protobuf.Struct" => {
            let _ = writeln!(code, "found.json({name:?}, self.{rust}.as_ref());");
        }
        // A patch is partial: the registry checks the members of the mask, then the whole merged record.
        _ if is_patch(field) => {}
        _ if is_ours(kind.package_name()) => {
            let _ = writeln!(
                code,
                "if let Some(inner) = &self.{rust} {{ found.within({name:?}, |found| inner.validate(found)); }}"
            );
        }
        _ => {}
    }
    code
}

/// Whether the rule refuses the empty text. A pattern is assumed to refuse it: the empty text is no
/// member's value.
fn refuses_empty(rule: &DynamicMessage) -> bool {
    options::number(rule, "min_len").is_some_and(|least| least != "0")
        || options::flag(rule, "email")
        || !options::text(rule, "pattern").is_empty()
        || !options::texts(rule, "in").is_empty()
}

fn is_output(field: &FieldDescriptor) -> bool {
    options::behaviour(field) == Some(options::Behaviour::OutputOnly)
}

fn is_patch(field: &FieldDescriptor) -> bool {
    field.parent_message().get_field_by_name("update_mask").is_some()
}

fn list(field: &FieldDescriptor, rules: &Rules) -> String {
    let (name, rust) = (field.name(), names::field(field));
    let rule = rules.of("repeated");
    let mut code = String::new();
    if rules.is_required() {
        let _ = writeln!(code, "found.present({name:?}, !self.{rust}.is_empty());");
    }
    let length = length(name, &format!("self.{rust}.len()"), rule.as_ref(), "items");
    let mut items = String::new();
    match field.kind() {
        Kind::String => {
            let each = rule.as_ref().and_then(|rule| options::message(rule, "items"));
            let text = text_rule(false, Rules(each).of("string").as_ref());
            let _ = writeln!(items, "found.texts({name:?}, &self.{rust}, &{text});");
            if rule.is_some_and(|rule| options::flag(&rule, "unique")) {
                let _ = writeln!(items, "found.unique({name:?}, &self.{rust});");
            }
        }
        Kind::Message(kind) if is_ours(kind.package_name()) => {
            let _ = writeln!(
                items,
                "for (index, item) in self.{rust}.iter().enumerate() {{ found.within(&format!(\"{name}[{{index}}]\"), |found| item.validate(found)); }}"
            );
        }
        _ => {}
    }
    // The items of a list that is too long are not checked.
    match length.strip_suffix(";\n") {
        Some(fits) if !items.is_empty() => {
            let _ = writeln!(code, "if {fits} {{ {items} }}");
        }
        _ => code += &(length + &items),
    }
    debug_assert_eq!(field.cardinality(), Cardinality::Repeated);
    code
}

/// `min_<what>` and `max_<what>` of a list, map or bytes.
fn length(name: &str, length: &str, rule: Option<&DynamicMessage>, what: &str) -> String {
    let Some(rule) = rule else { return String::new() };
    let bound = |side: &str| options::number(rule, &format!("{side}_{what}"));
    let (least, most) = (bound("min"), bound("max"));
    if least.is_none() && most.is_none() {
        return String::new();
    }
    let least = least.unwrap_or_else(|| "0".to_owned());
    let most = most.unwrap_or_else(|| "usize::MAX".to_owned());
    format!("found.length({name:?}, {length}, {least}, {most});\n")
}

fn text_rule(required: bool, rule: Option<&DynamicMessage>) -> String {
    let mut parts = String::new();
    if required {
        parts += "required: true, ";
    }
    if let Some(rule) = rule {
        for (option, part) in [("min_len", "min"), ("max_len", "max")] {
            if let Some(length) = options::number(rule, option) {
                let _ = write!(parts, "{part}: {length}, ");
            }
        }
        if options::flag(rule, "email") {
            parts += "email: true, ";
        }
        let pattern = options::text(rule, "pattern");
        if !pattern.is_empty() {
            let _ = write!(parts, "pattern: {pattern:?}, ");
        }
        let words = options::texts(rule, "in");
        if !words.is_empty() {
            let _ = write!(parts, "of: &{words:?}, ");
        }
    }
    if parts.is_empty() { "Text::ANY".to_owned() } else { format!("Text {{ {parts}..Text::ANY }}") }
}
