//! Follows references within a JSON Schema.

use serde_json::{Map, Value};

/// The maximum depth of references and combinations.
const DEEPEST: usize = 16;

/// Returns a schema and the schemas that it refers to or combines, itself first.
pub(crate) fn resolved<'s>(
    root: &'s Map<String, Value>,
    schema: &'s Map<String, Value>,
) -> impl Iterator<Item = &'s Map<String, Value>> {
    within(root, schema, DEEPEST)
}

fn within<'s>(
    root: &'s Map<String, Value>,
    schema: &'s Map<String, Value>,
    depth: usize,
) -> Box<dyn Iterator<Item = &'s Map<String, Value>> + 's> {
    let Some(depth) = depth.checked_sub(1) else { return Box::new(std::iter::empty()) };
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| at(root, target));
    let combined = ["allOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array());
    let others = target.into_iter().chain(combined.flatten().filter_map(Value::as_object));
    let others = others.flat_map(move |other| within(root, other, depth));
    Box::new(std::iter::once(schema).chain(others))
}

/// Returns the place in the same schema to which a reference points.
fn at<'s>(root: &'s Map<String, Value>, reference: &str) -> Option<&'s Map<String, Value>> {
    let mut names = reference.strip_prefix('#')?.split('/').skip(1);
    let unescaped = |name: &str| name.replace("%24", "$").replace("~1", "/").replace("~0", "~");
    names.try_fold(root, |at, name| at.get(&unescaped(name))?.as_object())
}
