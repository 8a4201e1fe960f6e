//! Events in the OpenAPI document: the schema of each type, and their delivery to a webhook endpoint.

use serde_json::{Map, Value, json};

/// Returns the schema of each event type, such as `DecisionDenied`, and their union `Event`.
pub(super) fn events(types: Vec<Value>) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let mut mapping = Map::new();
    for event_type in types {
        let name = event_type["name"].as_str().unwrap_or_default();
        let words = name.split(['.', '_']).skip(1).map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        let component = format!("{}Event", words.collect::<String>());
        mapping.insert(name.to_owned(), format!("#/components/schemas/{component}").into());
        let mut schema = event_type["schema"].clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.retain(|member, _| !member.starts_with('$'));
        }
        all.push((component, schema));
    }
    let one_of: Vec<_> = mapping.values().map(|schema| json!({"$ref": schema})).collect();
    let union = json!({
        "description": "An event of any type. More types may be added.",
        "oneOf": one_of,
        "discriminator": {"propertyName": "event_type", "mapping": mapping},
    });
    all.push(("Event".to_owned(), union));
    all
}

/// Describes a delivery to a webhook endpoint. It has a tag that no service has: with a service's
/// tag, generators that write a file for each tag would replace the file of that service.
pub(super) fn webhooks() -> Value {
    json!({"event": {"post": {
        "operationId": "receive_event",
        "tags": ["Webhook"],
        "summary": "Receives an event at a webhook endpoint",
        "description": "The service sends this request to the URL of a webhook endpoint. The request is signed with each \
            of the endpoint's signing suites; docs/reference/webhooks.md describes the headers.",
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}},
        },
        "responses": {"2XX": {"description": "The event was received. The body is ignored."}},
        "security": [],
    }}})
}
