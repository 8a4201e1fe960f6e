//! Reading descriptors: options, comments, enum words.

use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, ServiceDescriptor, Value,
};

use crate::Options;

/// Returns the value of an option by the extension's full name; `None` if it is not set.
pub(crate) fn option(pool: &DescriptorPool, from: &DynamicMessage, name: &str) -> Option<Value> {
    let extension = pool.get_extension_by_name(name)?;
    from.has_extension(&extension).then(|| from.get_extension(&extension).into_owned())
}

pub(crate) fn services(pool: &DescriptorPool, options: &Options) -> Vec<ServiceDescriptor> {
    pool.services().filter(|service| options.covers(service.package_name())).collect()
}

pub(crate) fn text(message: &DynamicMessage, field: &str) -> String {
    let value = message.get_field_by_name(field);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

pub(crate) fn texts(message: &DynamicMessage, field: &str) -> Vec<String> {
    let value = message.get_field_by_name(field);
    let list = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

pub(crate) fn flag(message: &DynamicMessage, field: &str) -> bool {
    message.get_field_by_name(field).and_then(|value| value.as_bool()).unwrap_or_default()
}

pub(crate) fn integer(message: &DynamicMessage, field: &str) -> i32 {
    message.get_field_by_name(field).and_then(|value| value.as_i32()).unwrap_or_default()
}

/// Returns the fields in the order of the proto, not by number.
pub(crate) fn fields(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|field| field.path().last().copied());
    fields
}

/// Returns whether the field is null in JSON when it is absent.
pub(crate) fn is_nullable(field: &FieldDescriptor) -> bool {
    !field.is_list() && !field.is_map() && field.supports_presence()
}

/// Returns the oneof of a field; `None` for the synthetic oneof that protoc adds for `optional`.
pub(crate) fn oneof(field: &FieldDescriptor) -> Option<usize> {
    let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic())?;
    oneof.path().last().and_then(|index| usize::try_from(*index).ok())
}

/// Returns the words of an enum, sorted by number. `DECISION_ALLOW_WITH_LIMITS` of enum `Decision`
/// is `allow_with_limits`. 0 has no word if it is `…_UNSPECIFIED` or `…_UNKNOWN`.
pub(crate) fn words(kind: &EnumDescriptor) -> Vec<(i32, String)> {
    let prefix = shouting(kind.name()) + "_";
    let mut words = Vec::<(i32, String)>::new();
    for value in kind.values() {
        let word = value.name().strip_prefix(&prefix).unwrap_or(value.name()).to_lowercase();
        let empty = value.number() == 0 && matches!(word.as_str(), "unspecified" | "unknown");
        // If a number has several names, the first one is its word.
        if !empty && words.iter().all(|(number, _)| *number != value.number()) {
            words.push((value.number(), word));
        }
    }
    words.sort();
    words
}

/// Converts a name to upper case: `RiskTier` is `RISK_TIER`.
fn shouting(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_uppercase() && before != '_' && !before.is_uppercase() {
            out.push('_');
        }
        out.extend(letter.to_uppercase());
        before = letter;
    }
    out
}

pub(crate) const OUTPUT_ONLY: i32 = 3;
pub(crate) const INPUT_ONLY: i32 = 4;
pub(crate) const IMMUTABLE: i32 = 5;
/// The server sets the field when a client leaves it out: a response always has it.
pub(crate) const NON_EMPTY_DEFAULT: i32 = 7;
const REQUIRED: i32 = 2;

/// Returns whether `google.api.field_behavior` contains the behaviour.
pub(crate) fn behaves(field: &FieldDescriptor, behaviour: i32) -> bool {
    let value = option(field.parent_pool(), &field.options(), "google.api.field_behavior");
    value
        .as_ref()
        .and_then(Value::as_list)
        .is_some_and(|list| list.iter().any(|value| value.as_enum_number() == Some(behaviour)))
}

/// Returns the validation rules of a field.
pub(crate) fn rules(field: &FieldDescriptor, options: &Options) -> Option<DynamicMessage> {
    option(field.parent_pool(), &field.options(), &options.validate)?.as_message().cloned()
}

/// Returns the message in a member of an option; `None` if it is not set. The rules of each type
/// are in such a message.
pub(crate) fn inner(rules: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    if !rules.has_field_by_name(name) {
        return None;
    }
    rules.get_field_by_name(name)?.as_message().cloned()
}

/// Returns whether the rules keep an int64 within 53 bits, which makes it a JSON number.
pub(crate) fn is_narrow(field: &FieldDescriptor, options: &Options) -> bool {
    const MOST: i64 = (1 << 53) - 1;
    if field.kind() != Kind::Int64 || field.is_list() {
        return false;
    }
    let rules = rules(field, options).and_then(|rules| inner(&rules, "int64"));
    rules.is_some_and(|rules| {
        let bound = |name: &str| {
            let given = rules.has_field_by_name(name).then(|| rules.get_field_by_name(name))??;
            given.as_i64()
        };
        bound("gte").is_some_and(|least| least >= -MOST)
            && bound("lte").is_some_and(|most| most <= MOST)
    })
}

/// Returns the schema of the JSON text in a bytes field, from the project's field option.
pub(crate) fn document(field: &FieldDescriptor, options: &Options) -> Option<String> {
    let value = option(field.parent_pool(), &field.options(), &options.field)?;
    let name = Some(text(value.as_message()?, "document")).filter(|name| !name.is_empty())?;
    assert!(field.kind() == Kind::Bytes, "{}: a document is bytes", field.full_name());
    Some(name)
}

/// Returns whether the field is a bounding list, from the project's field option.
///
/// Without a bound the list is null, never empty.
pub(crate) fn bounds(field: &FieldDescriptor, options: &Options) -> bool {
    let value = option(field.parent_pool(), &field.options(), &options.field);
    let bounds = value.is_some_and(|value| value.as_message().is_some_and(|of| flag(of, "bounds")));
    let may_be_absent = field.is_list() && !is_required(field, options);
    assert!(
        !bounds || may_be_absent,
        "{}: only a list that may be absent bounds",
        field.full_name()
    );
    bounds
}

/// Returns the final values of a resource's state, from the project's field option.
pub(crate) fn finals(field: &FieldDescriptor, options: &Options) -> Vec<String> {
    let value = option(field.parent_pool(), &field.options(), &options.field);
    let value = value.as_ref().and_then(Value::as_message);
    value.map(|value| texts(value, "final")).unwrap_or_default()
}

pub(crate) fn is_required(field: &FieldDescriptor, options: &Options) -> bool {
    behaves(field, REQUIRED) || rules(field, options).is_some_and(|rules| flag(&rules, "required"))
}

/// The leading or trailing comment of an element, without the lines meant for tools.
#[derive(Default)]
pub(crate) struct Comment {
    pub(crate) text: String,
    /// The text after `Example:`, at the beginning of a line or within it, up to the line's end.
    /// JSON may span several lines.
    pub(crate) example: Option<String>,
}

impl Comment {
    pub(crate) fn of_message(message: &MessageDescriptor) -> Self {
        Self::read(&message.parent_file(), message.path())
    }

    pub(crate) fn of_field(field: &FieldDescriptor) -> Self {
        Self::read(&field.parent_file(), field.path())
    }

    pub(crate) fn of_method(method: &MethodDescriptor) -> Self {
        Self::read(&method.parent_file(), method.path())
    }

    pub(crate) fn of_service(service: &ServiceDescriptor) -> Self {
        Self::read(&service.parent_file(), service.path())
    }

    pub(crate) fn of_enum(kind: &EnumDescriptor) -> Self {
        Self::read(&kind.parent_file(), kind.path())
    }

    fn read(file: &FileDescriptor, path: &[i32]) -> Self {
        let info = file.file_descriptor_proto().source_code_info.as_ref();
        let place = info.and_then(|info| info.location.iter().find(|place| place.path == path));
        let written = place.map_or("", |place| match place.leading_comments() {
            "" => place.trailing_comments(),
            above => above,
        });
        let mut comment = Self::default();
        let mut lines = written.lines().map(str::trim);
        while let Some(line) = lines.next() {
            let (line, example) = match line.split_once("Example:") {
                Some((before, example)) => (before.trim_end(), Some(example.trim())),
                None => (line, None),
            };
            if let Some(example) = example {
                let mut example = example.to_owned();
                while example.is_empty() || is_open(&example) {
                    let more = lines.next();
                    let more = more.unwrap_or_else(|| panic!("no JSON: {example}"));
                    format!("{example} {more}").trim_start().clone_into(&mut example);
                }
                comment.example = Some(example);
            }
            let told = example.is_none() || !line.is_empty();
            if told && !line.starts_with("buf:lint:") {
                let glue = match (comment.text.is_empty(), line.is_empty()) {
                    (true, _) => "",
                    (false, true) => "\n\n",
                    (false, false) if comment.text.ends_with('\n') => "",
                    (false, false) => " ",
                };
                comment.text.push_str(glue);
                comment.text.push_str(line);
            }
        }
        comment.text.truncate(comment.text.trim_end().len());
        comment
    }

    /// Returns the text up to the first full stop that ends a sentence.
    pub(crate) fn first_sentence(&self) -> &str {
        let end = self.text.find(". ").or_else(|| self.text.find("\n\n"));
        let sentence = end.and_then(|end| self.text.get(..end)).unwrap_or(&self.text);
        sentence.trim_end_matches('.')
    }
}

/// Returns whether this is the beginning of a JSON object or array.
fn is_open(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(text).is_err()
}

/// Returns the message type of a field, unless the JSON mapping has a special form for it.
pub(crate) fn plain_message(kind: &Kind) -> Option<MessageDescriptor> {
    let message = kind.as_message()?;
    (!is_special(message.full_name())).then(|| message.clone())
}

/// Returns whether this is a well-known type with a special form in the JSON mapping.
pub(crate) fn is_special(name: &str) -> bool {
    wrapped(name).is_some()
        || matches!(
            name,
            "google.protobuf.Timestamp"
                | "google.protobuf.Duration"
                | "google.protobuf.FieldMask"
                | "google.protobuf.Struct"
                | "google.protobuf.Value"
                | "google.protobuf.ListValue"
                | "google.protobuf.Any"
        )
}

/// Returns the `Kind` of the value in a wrapper type.
pub(crate) fn wrapped(name: &str) -> Option<Kind> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "BoolValue" => Kind::Bool,
        "Int32Value" => Kind::Int32,
        "UInt32Value" => Kind::Uint32,
        "Int64Value" => Kind::Int64,
        "UInt64Value" => Kind::Uint64,
        "FloatValue" => Kind::Float,
        "DoubleValue" => Kind::Double,
        "StringValue" => Kind::String,
        "BytesValue" => Kind::Bytes,
        _ => return None,
    })
}
