//! Every setting as TOML; one without a value is a comment, so that the output is a configuration file.

use std::fmt::Write;

use authority_core::config::Config;
use serde_json::{Map, Value};

use super::Failure;

/// All settings in their order, secrets masked.
pub(super) fn all(config: &Config) -> Result<String, Failure> {
    let settings = serde_json::to_value(config).map_err(Failure::new)?;
    let mut text = String::new();
    let Value::Object(settings) = settings else { return Ok(text) };
    let (sections, plain): (Map<_, _>, Map<_, _>) =
        settings.into_iter().partition(|(_, value)| value.is_object());
    lines(&mut text, &plain);
    for (name, section) in &sections {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n[{name}]");
        lines(&mut text, section.as_object().unwrap_or(&plain));
    }
    Ok(text)
}

fn lines(text: &mut String, settings: &Map<String, Value>) {
    for (name, value) in settings {
        let _ = if value.is_null() {
            writeln!(text, "# {name} has no value")
        } else {
            // JSON's texts, numbers, booleans and lists of them are TOML's as well.
            writeln!(text, "{name} = {value}")
        };
    }
}
