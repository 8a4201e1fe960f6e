//! The settings of a coding agent with its hooks.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use authority_decision::hooks::Client;
use serde_json::{Map, Value, json};

use crate::outcome::Failure;

/// The settings of a coding agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    client: Client,
    all: Map<String, Value>,
}

impl Settings {
    /// Reads a file; without the file, the settings are empty.
    pub(super) fn read(client: Client, file: &Path) -> Result<Self, Failure> {
        let all = match fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| fault(file, &error))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(fault(file, &error)),
        };
        Ok(Self { client, all })
    }

    /// The settings with this hook as the only hook of this service. It is for every tool.
    ///
    /// # Errors
    /// The hooks of the settings have an unknown form.
    pub(super) fn with(&self, handler: &Value) -> Result<Self, Failure> {
        let mut groups = Vec::new();
        for group in self.groups()? {
            let mut group = group.clone();
            let is_emptied = match handlers(self.client, &mut group) {
                Some(handlers) => {
                    handlers.retain(|own| !self.is_own(own));
                    handlers.is_empty()
                }
                None => self.is_own(&group),
            };
            if !is_emptied {
                groups.push(group);
            }
        }
        groups.push(match self.client {
            Client::ClaudeCode => json!({"hooks": [handler]}),
            Client::Cursor => handler.clone(),
        });
        let mut changed = self.clone();
        if self.client == Client::Cursor {
            changed.all.entry("version").or_insert(1.into());
        }
        let hooks = changed.all.entry("hooks").or_insert_with(|| json!({}));
        hooks[self.event()] = groups.into();
        Ok(changed)
    }

    /// The hooks of this service.
    pub(super) fn own(&self) -> Result<Vec<Value>, Failure> {
        let mut own = Vec::new();
        for group in self.groups()? {
            let mut group = group.clone();
            match handlers(self.client, &mut group) {
                Some(handlers) => own.append(handlers),
                None => own.push(group),
            }
        }
        own.retain(|handler| self.is_own(handler));
        Ok(own)
    }

    /// Whether the settings switch off all hooks.
    pub(super) fn is_off(&self) -> bool {
        self.all.get("disableAllHooks").is_some_and(|off| *off != Value::Bool(false))
    }

    /// Replaces the file as a whole, and keeps its mode. A coding agent never reads a part of it.
    pub(super) fn write(&self, file: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&self.all).map_err(Failure::new)?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let written = folder.map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| replace(file, &(text + "\n")));
        written.map_err(|error| fault(file, &error))
    }

    const fn event(&self) -> &'static str {
        match self.client {
            Client::ClaudeCode => "PreToolUse",
            Client::Cursor => "preToolUse",
        }
    }

    fn groups(&self) -> Result<&[Value], Failure> {
        let unknown =
            |what: &str| Failure::new(format!("`{what}` of the settings has an unknown form"));
        match self.all.get("hooks") {
            None => Ok(&[]),
            Some(Value::Object(hooks)) => match hooks.get(self.event()) {
                None => Ok(&[]),
                Some(Value::Array(groups)) => Ok(groups),
                Some(_) => Err(unknown(self.event())),
            },
            Some(_) => Err(unknown("hooks")),
        }
    }

    /// Whether a hook is of this service.
    fn is_own(&self, handler: &Value) -> bool {
        let has = |member: &str, part: &str| {
            handler[member].as_str().is_some_and(|text| text.contains(part))
        };
        let word = self.client.word();
        has("url", &format!("/v1/hooks/{word}"))
            || has("command", &format!(" hook {word} ")) && has("command", "agent-authority")
    }
}

/// The hooks of a group. Cursor has no groups.
fn handlers(client: Client, group: &mut Value) -> Option<&mut Vec<Value>> {
    match client {
        Client::ClaudeCode => group.get_mut("hooks")?.as_array_mut(),
        Client::Cursor => None,
    }
}

/// Writes into a file next to this one, which then takes its place. The file next to it is always
/// new: what others left there, such as a link, is removed and not written through.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let old = found(fs::metadata(file))?;
    let next = file.with_extension("next");
    found(fs::remove_file(&next))?;
    // Settings can contain credentials.
    let mode = if old.is_some() { 0o600 } else { 0o644 };
    let mut new = OpenOptions::new().create_new(true).write(true).mode(mode).open(&next)?;
    new.write_all(text.as_bytes())?;
    if let Some(old) = old {
        new.set_permissions(old.permissions())?;
    }
    fs::rename(&next, file)
}

/// The result for a file that may be absent.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn fault(file: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    fn settings(client: Client, all: &Value) -> Settings {
        Settings { client, all: all.as_object().unwrap().clone() }
    }

    #[test]
    fn installing_again_changes_nothing_and_other_hooks_stay() {
        let (old, new) = (
            json!({"type": "http", "url": "http://a/v1/hooks/claude-code?purpose=x"}),
            json!({"type": "command", "command": "/bin/agent-authority hook claude-code --url b"}),
        );
        let other = json!({"type": "command", "command": "lint"});
        let before = settings(
            Client::ClaudeCode,
            &json!({"model": "m", "hooks": {"Stop": [], "PreToolUse": [
                {"matcher": "Bash", "hooks": [other, old]}, {"matcher": "Edit", "hooks": [old]}]}}),
        );
        assert_eq!(before.own().unwrap(), [old.clone(), old]);
        let after = before.with(&new).unwrap();
        let expected = json!({"model": "m", "hooks": {"Stop": [], "PreToolUse": [
            {"matcher": "Bash", "hooks": [other]}, {"hooks": [new]}]}});
        assert_eq!(Value::Object(after.all.clone()), expected);
        assert_eq!(after.with(&new).unwrap(), after);
        for all in [json!({"hooks": []}), json!({"hooks": {"PreToolUse": {}}})] {
            assert!(settings(Client::ClaudeCode, &all).with(&new).is_err());
        }
    }

    /// Installs a hook in a file.
    fn install(file: &Path) {
        let read = Settings::read(Client::ClaudeCode, file).unwrap();
        let after = read.with(&json!({"command": "agent-authority hook claude-code "})).unwrap();
        after.write(file).unwrap();
        assert_eq!(Settings::read(Client::ClaudeCode, file).unwrap(), after);
    }

    #[test]
    fn the_file_keeps_its_mode() {
        for mode in [0o600, 0o444, 0o640] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("settings.json");
            fs::write(&file, r#"{"env": {"TOKEN": "secret"}}"#).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            install(&file);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[test]
    fn a_planted_link_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("settings.json"), folder.path().join("other"));
        for has_file in [false, true] {
            assert_eq!(file.exists(), has_file);
            fs::write(&other, "theirs").unwrap();
            symlink(&other, folder.path().join("settings.next")).unwrap();
            install(&file);
            assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
            assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
        }
    }

    #[test]
    fn cursors_hooks_are_a_list() {
        let (old, new) = (
            json!({"command": "agent-authority hook cursor --url a"}),
            json!({"command": "agent-authority hook cursor --url b", "failClosed": true}),
        );
        let before =
            settings(Client::Cursor, &json!({"hooks": {"preToolUse": [{"command": "lint"}, old]}}));
        let after = before.with(&new).unwrap();
        let expected = json!({"hooks": {"preToolUse": [{"command": "lint"}, new]}, "version": 1});
        assert_eq!(Value::Object(after.all.clone()), expected);
        assert_eq!(after.with(&new).unwrap(), after);
    }
}
