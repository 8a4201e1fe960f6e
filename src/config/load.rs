//! Where the values come from: flag beats environment beats file beats default.
//!
//! A name that means nothing is an error that tells the nearest one that does: a misspelt limit
//! must not leave the default in force unnoticed.

use std::{ffi::OsString, path::PathBuf};

use figment::{
    Figment,
    error::Kind,
    providers::{Format, Toml},
    value::Value,
};

use super::Config;

/// Start of the variables that are settings: `AGENT_AUTHORITY__SECTION__KEY`.
const PREFIX: &str = "AGENT_AUTHORITY__";

const SECRETS: [&str; 2] = ["database.url", "keys.ring"];

/// What [`Config::load`] reads, lowest first.
#[derive(Debug, Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The process's environment; names that are not ours are passed over.
    pub environment: Vec<(String, String)>,
    /// `("listen.main", "127.0.0.1:8080")`.
    pub flags: Vec<(&'static str, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no configuration file `{0}`")]
    NoFile(PathBuf),
    #[error("{0}")]
    Unread(String),
    #[error("{}", .0.join("\n"))]
    Unfit(Vec<String>),
}

impl Sources {
    /// What this process was started with.
    pub fn process() -> Self {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self { environment: environment.collect(), ..Self::default() }
    }
}

impl Config {
    /// Reads and merges; call [`Config::validate`] before serving.
    pub fn load(sources: &Sources) -> Result<Self, Error> {
        let mut figment = Figment::new();
        if let Some(file) = &sources.file {
            if !file.is_file() {
                return Err(Error::NoFile(file.clone()));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        for (name, value) in &sources.environment {
            if name == "DATABASE_URL" && !value.is_empty() {
                figment = figment.merge(("database.url", value));
            }
        }
        for (name, value) in &sources.environment {
            if let Some(key) = name.strip_prefix(PREFIX) {
                let key = key.to_ascii_lowercase().replace("__", ".");
                figment = figment.merge((key.as_str(), parsed(&key, value)));
            }
        }
        for (key, value) in &sources.flags {
            figment = figment.merge((key, parsed(key, value)));
        }
        figment.extract().map_err(|error| Error::Unread(told(error)))
    }
}

/// Text as the TOML value that it looks like: a number, a truth, a list, else itself. A secret is
/// never anything but text.
fn parsed(key: &str, text: &str) -> Value {
    if SECRETS.contains(&key) {
        return Value::from(text);
    }
    text.parse().unwrap_or_else(|never: std::convert::Infallible| match never {})
}

/// Every fault, with its place and, for a name that means nothing, the nearest that does.
fn told(errors: figment::Error) -> String {
    let told: Vec<_> = errors.into_iter().map(|error| tell(&error)).collect();
    told.join("\n")
}

fn tell(error: &figment::Error) -> String {
    let place = error.path.join(".");
    match &error.kind {
        Kind::UnknownField(name, known) => {
            let section = place.strip_suffix(name.as_str()).unwrap_or(&place).trim_end_matches('.');
            let whole = |name: &str| match section {
                "" => name.to_owned(),
                section => format!("{section}.{name}"),
            };
            let nearest = known.iter().max_by(|a, b| {
                strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b))
            });
            match nearest {
                Some(nearest) => {
                    format!("no setting `{}`; did you mean `{}`?", whole(name), whole(nearest))
                }
                None => format!("no setting `{}`", whole(name)),
            }
        }
        kind if place.is_empty() => kind.to_string(),
        kind => format!("`{place}`: {kind}"),
    }
}
