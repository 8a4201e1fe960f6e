//! Compiles a JSON Schema. Finds its supported keywords, its faults and the ignored keywords.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    cost,
    node::{Among, Id, Node, Types},
    pattern::Pattern,
    violation::escaped,
};

/// The maximum number of schemas in one document.
const MOST_SCHEMAS: usize = 4096;
/// The maximum number of states of all patterns in a document.
const MOST_STATES: u64 = 16_384;
/// The maximum number of faults to report.
const MOST_FAULTS: usize = 20;

/// Keywords that are only annotations.
const DESCRIBING: [&str; 13] = [
    "title",
    "description",
    "$comment",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$defs",
    "definitions",
];

/// A fault in a schema, with a pointer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer (RFC 6901) from the schema's root.
    pub pointer: String,
    pub problem: String,
}

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Compiled {
    /// The schemas of the document; the root comes first.
    pub(super) nodes: Vec<Node>,
    /// The maximum number of steps per byte of a context.
    pub(super) cost: u64,
}

/// The result of compiling a document.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) faults: Vec<Fault>,
    /// Pointers to the keywords that are not checked.
    pub(super) ignored: Vec<String>,
}

pub(super) fn compile(root: &Value) -> (Reading, Option<Compiled>) {
    let mut reader = Reader {
        root,
        ids: HashMap::new(),
        open: Vec::new(),
        found: Reading::default(),
        states: 0,
    };
    reader.id(String::new(), root);
    let mut nodes = Vec::new();
    while let Some((pointer, schema)) = reader.open.get(nodes.len()).cloned() {
        nodes.push(reader.node(&pointer, schema));
        if reader.open.len() > MOST_SCHEMAS || reader.found.faults.len() >= MOST_FAULTS {
            break;
        }
    }
    if reader.open.len() > MOST_SCHEMAS {
        reader.fault("", format!("has over {MOST_SCHEMAS} schemas"));
    }
    if reader.states > MOST_STATES {
        reader.fault(
            "",
            format!("has patterns of over {MOST_STATES} characters, repetitions counted"),
        );
    }
    let pointers: Vec<String> = reader.open.iter().map(|(pointer, _)| pointer.clone()).collect();
    let mut found = reader.found;
    if !found.faults.is_empty() {
        return (found, None);
    }
    match cost::of(&nodes) {
        Ok(cost) => (found, Some(Compiled { nodes, cost })),
        Err((id, problem)) => {
            let pointer = pointers.get(id).cloned().unwrap_or_default();
            found.faults.push(Fault { pointer, problem });
            (found, None)
        }
    }
}

struct Reader<'v> {
    root: &'v Value,
    ids: HashMap<String, Id>,
    /// Every referenced schema, in order of id.
    open: Vec<(String, &'v Value)>,
    found: Reading,
    states: u64,
}

impl<'v> Reader<'v> {
    fn fault(&mut self, pointer: &str, problem: impl Into<String>) {
        self.found.faults.push(Fault { pointer: pointer.to_owned(), problem: problem.into() });
    }

    /// Returns the id of the schema at this pointer. The schema is compiled later.
    fn id(&mut self, pointer: String, schema: &'v Value) -> Id {
        if let Some(known) = self.ids.get(&pointer) {
            return *known;
        }
        let id = self.open.len();
        self.ids.insert(pointer.clone(), id);
        self.open.push((pointer, schema));
        id
    }

    fn node(&mut self, pointer: &str, schema: &'v Value) -> Node {
        let mut node = Node::default();
        match schema {
            Value::Bool(holds) => node.never = !holds,
            Value::Object(members) => {
                for (keyword, value) in members {
                    let place = format!("{pointer}/{}", escaped(keyword));
                    if let Err(problem) = self.keyword(&mut node, keyword, value, &place) {
                        self.fault(&place, problem);
                    }
                }
            }
            _ => self.fault(pointer, "must be a schema: an object, `true` or `false`"),
        }
        node
    }

    fn keyword(
        &mut self,
        node: &mut Node,
        keyword: &str,
        value: &'v Value,
        place: &str,
    ) -> Result<(), String> {
        match keyword {
            "type" => node.types = Some(types(value)?),
            "enum" => node.among = Some(Among::of(list(value)?)),
            "const" => node.constant = Some(value.clone()),
            "minimum" => node.minimum = Some(number(value)?),
            "maximum" => node.maximum = Some(number(value)?),
            "exclusiveMinimum" => node.exclusive_minimum = Some(number(value)?),
            "exclusiveMaximum" => node.exclusive_maximum = Some(number(value)?),
            "minLength" => node.min_length = Some(count(value)?),
            "maxLength" => node.max_length = Some(count(value)?),
            "minItems" => node.min_items = Some(count(value)?),
            "maxItems" => node.max_items = Some(count(value)?),
            "pattern" => {
                let pattern = Pattern::of(value.as_str().ok_or("must be a text")?)?;
                self.states = self.states.saturating_add(pattern.size);
                node.pattern = Some(pattern);
            }
            "required" => {
                let names = list(value)?.iter().map(|name| name.as_str().map(str::to_owned));
                node.required = names.collect::<Option<_>>().ok_or("must be a list of names")?;
            }
            "properties" => {
                for (name, schema) in object(value)? {
                    let id = self.id(format!("{place}/{}", escaped(name)), schema);
                    node.properties.push((name.clone(), id));
                }
                node.properties.sort_unstable();
            }
            "additionalProperties" => node.additional = Some(self.id(place.to_owned(), value)),
            "items" if value.is_array() => {
                return Err("must be one schema for all items, and not a list of them".to_owned());
            }
            "items" => node.items = Some(self.id(place.to_owned(), value)),
            "allOf" => node.all.extend(self.schemas(value, place)?),
            "anyOf" => node.any = self.schemas(value, place)?,
            "$ref" => node.all.push(self.referred(value)?),
            _ if DESCRIBING.contains(&keyword) || keyword.starts_with("x-") => {}
            _ => self.found.ignored.push(place.to_owned()),
        }
        Ok(())
    }

    fn schemas(&mut self, value: &'v Value, place: &str) -> Result<Vec<Id>, String> {
        let all = list(value)?;
        if all.is_empty() {
            return Err("must have a schema".to_owned());
        }
        let each = all.iter().enumerate();
        Ok(each.map(|(number, schema)| self.id(format!("{place}/{number}"), schema)).collect())
    }

    /// Resolves a `$ref`, which must be a pointer into this document.
    fn referred(&mut self, value: &Value) -> Result<Id, String> {
        let text = value.as_str().ok_or("must be a text")?;
        let outside = "must be a pointer into this schema, such as `#/$defs/name`; remote schemas are not fetched";
        let fragment = text.strip_prefix('#').ok_or(outside)?;
        let pointer = decoded(fragment).filter(|one| one.is_empty() || one.starts_with('/'));
        let pointer = pointer.ok_or(outside)?;
        let root = self.root;
        let schema = root
            .pointer(&pointer)
            .ok_or_else(|| format!("refers to `{text}`, which is not there"))?;
        Ok(self.id(pointer, schema))
    }
}

fn types(value: &Value) -> Result<Types, String> {
    let unknown = "must be one or several of null, boolean, integer, number, string, array, object";
    let one = std::slice::from_ref(value);
    let words = value.as_array().map_or(one, Vec::as_slice);
    if words.is_empty() {
        return Err(unknown.to_owned());
    }
    let with = |types: Types, word: &Value| types.with(word.as_str()?);
    words.iter().try_fold(Types::default(), with).ok_or_else(|| unknown.to_owned())
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| "must be a list".to_owned())
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| "must be an object".to_owned())
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| "must be a number".to_owned())
}

fn count(value: &Value) -> Result<usize, String> {
    let written = value.as_f64().filter(|count| count.fract() == 0.0 && *count >= 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and not below zero"
    )]
    let count = written.map(|count| count as usize);
    count.ok_or_else(|| "must be a whole number from 0".to_owned())
}

/// Decodes the percent-encoding of a URI's fragment.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|one| u8::try_from(one).ok());
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
    }
    String::from_utf8(bytes).ok()
}
