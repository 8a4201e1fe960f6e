//! Prints the settings as TOML. A setting without a value is a comment, to keep the output a valid
//! configuration file.

use std::{fmt::Write, fs, os::unix::fs::MetadataExt};

use authority_cli::Failure;
use authority_config::{Config, Sources};
use serde_json::{Map, Value};

/// Returns the settings that have a value, or all, in order. Secrets are masked.
pub(super) fn text(config: &Config, all: bool) -> Result<String, Failure> {
    let settings = serde_json::to_value(config).map_err(Failure::new)?;
    let mut text = String::new();
    let Value::Object(settings) = settings else { return Ok(text) };
    let (sections, plain): (Map<_, _>, Map<_, _>) =
        settings.into_iter().partition(|(_, value)| value.is_object());
    lines(&mut text, &plain, all);
    for (name, section) in &sections {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n[{name}]");
        lines(&mut text, section.as_object().unwrap_or(&plain), all);
    }
    Ok(text)
}

fn lines(text: &mut String, settings: &Map<String, Value>, all: bool) {
    for (name, value) in settings {
        let _ = if value.is_null() {
            if !all {
                continue;
            }
            writeln!(text, "# {name} has no value")
        } else {
            writeln!(text, "{name} = {}", toml(value))
        };
    }
}

/// Returns a value as TOML, without the members that have no value. Strings, numbers, booleans and
/// lists of them are the same as in JSON.
fn toml(value: &Value) -> String {
    let Value::Object(members) = value else { return value.to_string() };
    let present = members.iter().filter(|(_, value)| !value.is_null());
    let members =
        present.map(|(name, value)| format!("{} = {}", Value::from(name.as_str()), toml(value)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

/// Returns a warning if the settings file contains secrets and every user of this machine may read
/// it.
pub(super) fn readable_secrets(sources: &Sources) -> Result<Option<String>, Failure> {
    let Some(file) = &sources.file else { return Ok(None) };
    let alone = Config::load(&Sources { file: Some(file.clone()), ..Sources::default() })?;
    let secrets = [
        ("database.url", &alone.database.url),
        ("database.owner_url", &alone.database.owner_url),
        ("console.client_secret", &alone.console.client_secret),
        ("keys.ring", &alone.keys.ring),
    ];
    let named = secrets.iter().filter(|(_, secret)| secret.is_some());
    let clients = alone.console.issuers.iter().filter(|(_, client)| client.client_secret.is_some());
    let clients = clients.map(|(name, _)| format!("console.issuers.{name}.client_secret"));
    let named: Vec<_> = named.map(|(name, _)| (*name).to_owned()).chain(clients).collect();
    let mode = fs::metadata(file)
        .map_err(|error| Failure::usage(format!("`{}`: {error}", file.display())))?
        .mode();
    let is_open = mode & 0o007 != 0 && !named.is_empty();
    Ok(is_open.then(|| {
        format!(
            "warning: `{0}` contains {1}, and all users of this machine may read it: chmod o= {0}",
            file.display(),
            named.join(", ")
        )
    }))
}
