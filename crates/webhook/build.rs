//! Generates the JSON Schemas of all event types from the descriptors of `proto/authority/event`.
//!
//! A nested message is the data of an event type: `Authority.Granted` is `svc.authority.granted`.

use std::{env, fs, path::PathBuf};

use gateway_rest_build::{Options, message_schema};
use prost_reflect::{DescriptorPool, MessageDescriptor};
use serde_json::{Value, json};

const ROOT: &str = "../../proto";
const FILE: &str = "authority/event/v1/event.proto";

#[expect(clippy::disallowed_methods, reason = "cargo configures build scripts by the environment")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ROOT}/{FILE}");
    let mut compiler = protox::Compiler::new([ROOT])?;
    compiler.include_imports(true).include_source_info(true).open_files([FILE])?;
    let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())?;
    let file = pool.get_file_by_name(FILE).ok_or("the proto is not in its own descriptors")?;

    let options = Options::default();
    let named = |name: &str| file.messages().find(|message| message.name() == name);
    let event = message_schema(&named("Event").ok_or("no message Event")?, &options);
    let areas = file.messages().filter(|message| message.name() != "Event");
    let types: Vec<_> = areas.flat_map(types).collect();
    let schemas = types.iter().map(|(name, data)| {
        json!({"name": name, "schema": schema(&event, name, message_schema(data, &options))})
    });
    let schemas = serde_json::to_string(&schemas.collect::<Vec<_>>())?;
    let path = PathBuf::from(env::var("OUT_DIR")?).join("event_types.json");
    println!("cargo::metadata=event_types={}", path.display());
    Ok(fs::write(path, schemas)?)
}

/// The event types of an area. An area without nested messages is itself an event type.
fn types(area: MessageDescriptor) -> Vec<(String, MessageDescriptor)> {
    let prefix = format!("svc.{}", snake(area.name()));
    let inner: Vec<_> = area.child_messages().collect();
    if inner.is_empty() {
        return vec![(prefix, area)];
    }
    let named = |data: MessageDescriptor| (format!("{prefix}.{}", snake(data.name())), data);
    inner.into_iter().map(named).collect()
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// The schema common to all events, completed with the fields of one type.
fn schema(event: &Value, name: &str, data: Value) -> Value {
    let mut schema = event.clone();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$id"] = format!("/schemas/{name}.v1.json").into();
    schema["title"] = name.into();
    schema["description"] = data["description"].clone();
    schema["properties"]["event_type"] = json!({"type": "string", "const": name});
    schema["properties"]["event_version"] = json!({"type": "integer", "const": 1});
    schema["properties"]["data"] = data;
    schema
}
