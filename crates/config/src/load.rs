//! Loads the settings. A flag overrides the environment, which overrides the file, which overrides
//! the default.
//!
//! An unknown name is an error that suggests a similar name or lists the known names. If it were
//! ignored, the default would silently replace a misspelt limit.

use std::{ffi::OsString, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{
    Config,
    values::{self, Kind, Node, Table, Unfit},
};

/// The prefix of environment variables that are settings: `AGENT_AUTHORITY__SECTION__KEY`.
const PREFIX: &str = "AGENT_AUTHORITY__";

const SECRETS: [&str; 4] =
    ["database.url", "database.owner_url", "keys.ring", "console.client_secret"];

/// Environment variables with common names on hosting platforms.
const ALIASES: [(&str, &str); 2] =
    [("DATABASE_URL", "database.url"), ("DATABASE_OWNER_URL", "database.owner_url")];

/// The inputs of [`Config::load`], lowest priority first.
#[derive(Debug, Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The process's environment. Variables that are not settings are ignored.
    pub environment: Vec<(String, String)>,
    /// Settings by name: `("listen.main", "127.0.0.1:8080")`.
    pub flags: Vec<(&'static str, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("configuration file `{0}` not found")]
    NoFile(PathBuf),
    #[error("{0}")]
    Unread(String),
    #[error("{}", .0.join("\n"))]
    Unfit(Vec<String>),
}

impl Sources {
    /// Returns sources with the environment of this process.
    pub fn process() -> Self {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self { environment: environment.collect(), ..Self::default() }
    }

    /// Whether a source has this setting, or this section, even with the default's value.
    pub fn sets(&self, name: &str) -> Result<bool, Error> {
        Ok(self.merged()?.contains_key(name))
    }

    fn merged(&self) -> Result<Table, Error> {
        let mut table = Table::new();
        if let Some(file) = &self.file {
            if !file.is_file() {
                return Err(Error::NoFile(file.clone()));
            }
            let place = file.display();
            let text = fs::read_to_string(file)
                .map_err(|fault| Error::Unread(format!("{place}: {fault}")))?;
            // The error has the line's number but not its text, which may contain a secret.
            table = basic_toml::from_str(&text)
                .map_err(|fault| Error::Unread(format!("{place}: {fault}")))?;
        }
        for (name, value) in &self.environment {
            if let Some((_, key)) = ALIASES.iter().find(|(alias, _)| alias == name)
                && !value.is_empty()
            {
                values::set(&mut table, key, Value::from(value.as_str()));
            }
        }
        // A section's variable comes before the variables of its settings.
        let mut sorted: Vec<_> = self.environment.iter().collect();
        sorted.sort();
        for (name, value) in sorted {
            if let Some(key) = name.strip_prefix(PREFIX) {
                let key = key.to_ascii_lowercase().replace("__", ".");
                values::set(&mut table, &key, parsed(&key, value));
            }
        }
        for (key, value) in &self.flags {
            values::set(&mut table, key, parsed(key, value));
        }
        Ok(table)
    }
}

impl Config {
    /// Reads and merges the sources. Call [`Config::validate`] before serving.
    pub fn load(sources: &Sources) -> Result<Self, Error> {
        let table = sources.merged()?;
        Self::deserialize(Node(table.into())).map_err(|unfit| Error::Unread(message(&unfit)))
    }
}

/// Parses a value. A secret is always a string.
fn parsed(key: &str, text: &str) -> Value {
    let is_secret = SECRETS.contains(&key)
        || (key.starts_with("console.issuers.") && key.ends_with(".client_secret"));
    if is_secret { Value::from(text) } else { values::parsed(text) }
}

/// Returns the error text with the setting's name. For an unknown name or word, the text suggests
/// a similar one or lists the known ones.
fn message(unfit: &Unfit) -> String {
    let place = unfit.place();
    match &unfit.kind {
        Kind::UnknownName(name, known) => {
            let whole = |name: &str| match place.as_str() {
                "" => name.to_owned(),
                section => format!("{section}.{name}"),
            };
            let hint = match meant(name, known) {
                Some(meant) => format!("did you mean `{}`?", whole(meant)),
                None => format!("the known ones are {}", known.join(", ")),
            };
            format!("unknown setting `{}`; {hint}", whole(name))
        }
        Kind::UnknownWord(word, known) => {
            format!("`{place}` is `{word}`; it must be {}", known.join(" or "))
        }
        Kind::Other(message) if place.is_empty() => message.clone(),
        Kind::Other(message) => format!("`{place}`: {message}"),
    }
}

/// Returns the known name that a misspelt name was probably meant to be.
///
/// The two names are within an edit distance of two and mostly equal, or one is a prefix of the
/// other. A suggestion for a weaker match would mislead.
fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let begins = |one: &str| name.len() > 2 && (one.starts_with(name) || name.starts_with(one));
    let slips = |one: &&'k str| (strsim::osa_distance(name, one), *one);
    let (slips, nearest) = known.iter().map(slips).min()?;
    if slips <= 2 && slips * 2 < name.len() {
        return Some(nearest);
    }
    known.iter().copied().find(|one| begins(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    fn sources(environment: &[(&str, &str)]) -> Sources {
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Sources { environment: environment.collect(), ..Sources::default() }
    }

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn flag_beats_environment_beats_file_beats_default() {
        let (_folder, path) = file(
            "environment = \"production\"\n[decide]\nmax_staleness_seconds = 1\n\
             valid_for_seconds = 2\n[listen]\nmain = \"127.0.0.1:1\"\nops = \"127.0.0.1:2\"",
        );
        let mut sources = sources(&[
            ("AGENT_AUTHORITY__LISTEN__MAIN", "127.0.0.1:3"),
            ("AGENT_AUTHORITY__DECIDE__VALID_FOR_SECONDS", "4"),
            ("AGENT_AUTHORITY_CONFIG", "is clap's"),
            ("PATH", "/bin"),
        ]);
        sources.file = Some(path);
        sources.flags = vec![("listen.main", "[::1]:5".to_owned())];
        let config = Config::load(&sources).unwrap();
        assert_eq!(config.listen.main, "[::1]:5".parse().unwrap());
        assert_eq!(config.listen.ops, "127.0.0.1:2".parse().unwrap());
        assert_eq!(config.decide.valid_for_seconds, 4);
        assert_eq!(config.decide.max_staleness_seconds, 1);
        assert_eq!(config.limits.drain_seconds, 10);
        assert_eq!(config.environment, Environment::Production);
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion_or_the_known_names() {
        for (name, told) in [
            (
                "AGENT_AUTHORITY__LISTEN__MIAN",
                "unknown setting `listen.mian`; did you mean `listen.main`?",
            ),
            (
                "AGENT_AUTHORITY__DATABSE__URL",
                "unknown setting `databse`; did you mean `database`?",
            ),
            (
                "AGENT_AUTHORITY__LIMITS__DRAIN",
                "unknown setting `limits.drain`; did you mean `limits.drain_seconds`?",
            ),
            // No known name is similar: no suggestion.
            (
                "AGENT_AUTHORITY__LOGS__LEVEL",
                "unknown setting `logs.level`; the known ones are format, filter",
            ),
            (
                "AGENT_AUTHORITY__KEYS__KEK",
                "unknown setting `keys.kek`; the known ones are ring_file, ring",
            ),
        ] {
            let error = Config::load(&sources(&[(name, "x")])).unwrap_err();
            assert_eq!(error.to_string(), told);
        }
        let (_folder, path) = file("[limits]\ndrain_second = 3");
        let error = Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap_err();
        let told = "unknown setting `limits.drain_second`; did you mean `limits.drain_seconds`?";
        assert_eq!(error.to_string(), told);
    }

    #[test]
    fn a_wrong_value_names_its_setting_and_never_shows_a_secret() {
        let load = |name, value| Config::load(&sources(&[(name, value)]));
        let error = load("AGENT_AUTHORITY__LIMITS__STREAMS", "many").unwrap_err().to_string();
        assert!(error.starts_with("`limits.streams`: "), "{error}");
        let error = load("AGENT_AUTHORITY__DECIDE__DURABILITY", "full").unwrap_err().to_string();
        assert_eq!(error, "`decide.durability` is `full`; it must be strict or relaxed");
        let error = load("AGENT_AUTHORITY__LISTEN", "here").unwrap_err().to_string();
        assert!(error.starts_with("`listen`: "), "{error}");
        let error = load("AGENT_AUTHORITY__CORS__ORIGINS", "*").unwrap_err().to_string();
        assert!(error.contains("`*` is not an origin"), "{error}");

        // Every setting in this list gets a value of the wrong type.
        for (name, value) in [
            ("AGENT_AUTHORITY__DATABASE", "postgres://u:hush@h/d"),
            ("AGENT_AUTHORITY__DATABASE__TENANT_CONNECTIONS", "hush"),
            ("AGENT_AUTHORITY__DATABASE__TENANT_CONNECTIONS", "[\"hush\"]"),
            ("AGENT_AUTHORITY__CORS__ORIGINS", "[hush]"),
        ] {
            let error = load(name, value).unwrap_err().to_string();
            assert!(error.starts_with('`') && !error.contains("hush"), "{name}: {error}");
        }
        let error = load("AGENT_AUTHORITY__LIMITS__STREAMS", "-1").unwrap_err().to_string();
        assert!(!error.contains("-1"), "{error}");

        let (_folder, path) = file("[keys]\nring = [\"hush\"]");
        let error = Config::load(&Sources { file: Some(path), ..Sources::default() }).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");

        let config = load("AGENT_AUTHORITY__KEYS__RING", "{hush}").unwrap();
        assert_eq!(config.keys.ring.as_ref().unwrap().reveal(), "{hush}");
        let shown = format!("{config:?}{}", basic_toml::to_string(&config).unwrap());
        assert!(!shown.contains("hush") && shown.contains("***"), "{shown}");
    }

    #[test]
    fn a_section_may_be_toml_or_json() {
        for text in [r#"{"staff" = "admin"}"#, r#"{"staff":"admin"}"#] {
            let config = Config::load(&sources(&[("AGENT_AUTHORITY__IDENTITY__ROLES", text)]));
            let roles = config.unwrap().identity.roles;
            let role = roles.get("staff").map(String::as_str);
            assert_eq!((role, roles.len()), (Some("admin"), 1), "{text}");
        }
    }

    /// A secret may look like a number or a section.
    #[test]
    fn a_secret_is_text() {
        for text in ["42", r#"{"hush":1}"#] {
            for name in ["KEYS__RING", "CONSOLE__CLIENT_SECRET"] {
                let name = format!("AGENT_AUTHORITY__{name}");
                let config = Config::load(&sources(&[(&name, text)])).unwrap();
                let secret = config.keys.ring.or(config.console.client_secret).unwrap();
                assert_eq!(secret.reveal(), text);
            }
        }
    }

    #[test]
    fn a_sections_variable_does_not_replace_the_variables_of_its_settings() {
        let config = Config::load(&sources(&[
            ("AGENT_AUTHORITY__CONSOLE__ISSUERS__STAFF__CLIENT_SECRET", "42"),
            ("AGENT_AUTHORITY__CONSOLE__ISSUERS", r#"{"staff": {"client_id": "console"}}"#),
        ]));
        let staff = config.unwrap().console.issuers.remove("staff").unwrap();
        assert_eq!(staff.client_id, "console");
        assert_eq!(staff.client_secret.unwrap().reveal(), "42");
    }

    /// A text with more than one TOML value is a string. It cannot set a second setting.
    #[test]
    fn a_value_sets_nothing_else() {
        let value = "4\nvalid_for_seconds = 5";
        let sources = sources(&[("AGENT_AUTHORITY__DECIDE__MAX_STALENESS_SECONDS", value)]);
        let error = Config::load(&sources).unwrap_err().to_string();
        assert!(error.starts_with("`decide.max_staleness_seconds`: "), "{error}");
    }

    #[test]
    fn a_file_that_is_not_toml_says_where() {
        let (_folder, path) = file("[keys]\nring = = \"hush\"");
        let sources = Sources { file: Some(path.clone()), ..Sources::default() };
        let error = Config::load(&sources).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains("line 2"), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }

    #[test]
    fn lists_may_be_text_and_database_url_is_honoured() {
        let config = Config::load(&sources(&[
            ("DATABASE_URL", "postgres://a"),
            ("DATABASE_OWNER_URL", "postgres://o"),
            ("AGENT_AUTHORITY__CORS__ORIGINS", "https://A.example, http://localhost:3000/"),
            ("AGENT_AUTHORITY__TRUSTED_PROXIES", "10.0.0.0/8,::1"),
        ]))
        .unwrap();
        assert_eq!(config.database.url.unwrap().reveal(), "postgres://a");
        assert_eq!(config.database.owner_url.unwrap().reveal(), "postgres://o");
        assert_eq!(config.cors.origins, ["https://a.example", "http://localhost:3000"]);
        assert_eq!(config.trusted_proxies.len(), 2);
        let config = Config::load(&sources(&[
            ("AGENT_AUTHORITY__DATABASE__URL", "postgres://b"),
            ("DATABASE_URL", "postgres://a"),
        ]));
        assert_eq!(config.unwrap().database.url.unwrap().reveal(), "postgres://b");
    }
}
