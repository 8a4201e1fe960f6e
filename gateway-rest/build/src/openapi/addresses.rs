//! Examples of required parameters, taken from the examples of bodies. The example of `/books/{id}`
//! has the id of the book in the example of `/books`.

use serde_json::{Map, Value};

/// Adds an example to each required parameter without one, if an example of a body shows the value.
pub(super) fn complete(paths: &mut Map<String, Value>) {
    let known = paths.clone();
    for (path, item) in paths {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            let bodies: Vec<_> = bodies(operation).cloned().collect();
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                let is_open = parameter["required"] == true && parameter.get("example").is_none();
                let Some(name) = parameter["name"].as_str().filter(|_| is_open) else { continue };
                let example = in_collection(&known, path, name)
                    .or_else(|| bodies.iter().find_map(|body| shown(body, name)));
                if let Some(example) = example.cloned() {
                    parameter["example"] = example;
                }
            }
        }
    }
}

/// The value of a path's parameter in the examples of the path before it.
fn in_collection<'a>(paths: &'a Map<String, Value>, path: &str, name: &str) -> Option<&'a Value> {
    let (collection, _) = path.split_once(&format!("/{{{name}}}"))?;
    let operations = paths.get(collection)?.as_object()?;
    let mut bodies = operations.values().flat_map(bodies);
    bodies.find_map(|body| {
        shown(body, name).or_else(|| shown(body, "id").filter(|_| name.ends_with("_id")))
    })
}

/// The examples of an operation's success bodies, and then of its request's body.
fn bodies(operation: &Value) -> impl Iterator<Item = &Value> {
    let responses = operation["responses"].as_object().into_iter().flatten();
    let successes = responses.filter(|(status, _)| status.starts_with('2'));
    let holders = successes.map(|(_, response)| response).chain([&operation["requestBody"]]);
    let contents = holders.flat_map(|holder| holder["content"].as_object().into_iter().flatten());
    contents.filter_map(|(_, content)| content.get("example"))
}

/// The member of this name: of the body, or of a record in the body.
fn shown<'a>(body: &'a Value, name: &str) -> Option<&'a Value> {
    let plain = |value: &&Value| value.is_string() || value.is_number();
    let members = body.as_object().into_iter().flatten().map(|(_, member)| member);
    let records = members.map(|member| member.get(0).unwrap_or(member));
    let mut places = std::iter::once(body).chain(records);
    places.find_map(|place| place.get(name).filter(plain))
}
