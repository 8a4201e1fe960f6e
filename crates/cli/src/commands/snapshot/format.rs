//! The formats of the content of a snapshot.

use chrono::{DateTime, Utc};
use clap::ValueEnum;
use serde_json::Value;

use crate::{
    commands::snapshot::{
        document::{Document, observation},
        ecb,
    },
    outcome::Failure,
    text::plain,
};

/// The format of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON; --observe selects the observed values
    Json,
    /// XML of the European Central Bank's daily reference rates; every rate is observed
    Ecb,
}

/// Reads content in the given format, or in the format suggested by its first character.
pub(super) fn read(
    bytes: &[u8],
    format: Option<Format>,
    observed: &[String],
    now: DateTime<Utc>,
) -> Result<Document, Failure> {
    match format.unwrap_or_else(|| Format::of(bytes)) {
        Format::Json => json(bytes, observed),
        Format::Ecb if observed.is_empty() => {
            let text = str::from_utf8(bytes).map_err(|_| failed("is not UTF-8"))?;
            ecb::read(text, now).map_err(|why| failed(&why))
        }
        Format::Ecb => Err(Failure::usage(
            "--observe: only with --format json; with reference rates every rate is observed",
        )),
    }
}

impl Format {
    fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        if bytes.trim_ascii_start().starts_with(b"<") { Self::Ecb } else { Self::Json }
    }
}

fn failed(why: &str) -> Failure {
    Failure::new(format!("--from: {}", plain(why)))
}

fn json(bytes: &[u8], observed: &[String]) -> Result<Document, Failure> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| {
        failed(&format!("is neither JSON ({error}) nor XML; set the expected format with --format"))
    })?;
    let observations = observed.iter().map(|pointer| match document.pointer(pointer) {
        Some(value) => Ok(observation(pointer, value.clone())),
        None if pointer.starts_with('/') => {
            Err(Failure::new(format!("--observe: the document has no `{pointer}`")))
        }
        None => Err(Failure::usage(format!("--observe: `{pointer}` must begin with `/`"))),
    });
    let observations = observations.collect::<Result<_, _>>()?;
    Ok(Document { observations, ..Document::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, format: Option<Format>, observed: &[&str]) -> Result<Document, Failure> {
        let observed: Vec<_> = observed.iter().map(ToString::to_string).collect();
        super::read(text.as_bytes(), format, &observed, DateTime::UNIX_EPOCH)
    }

    fn problem(text: &str, format: Option<Format>, observed: &[&str]) -> String {
        format!("{:?}", read(text, format, observed).unwrap_err())
    }

    #[test]
    fn what_is_named_in_json_is_observed() {
        let text = r#" {"balance": {"EUR": 12.50, "a/b": [null, "x"]}} "#;
        let found = read(text, None, &["/balance/EUR", "/balance/a~1b/1", "/balance/a~1b/0"]);
        let expected = [
            observation("/balance/EUR", json!(12.5)),
            observation("/balance/a~1b/1", json!("x")),
            observation("/balance/a~1b/0", Value::Null),
        ];
        assert_eq!(found.unwrap().observations, expected);
        assert_eq!(read("[1]", None, &[]).unwrap(), Document::default());
        assert!(problem(text, None, &["/balance/USD"]).contains("--observe"));
        assert!(problem(text, None, &["balance"]).contains("must begin with"));
    }

    #[test]
    fn the_format_is_that_of_the_content_unless_it_is_given() {
        assert!(problem("<html/>", None, &[]).contains("--from"));
        assert!(problem("\u{feff}<html/>", None, &[]).contains("no day"));
        assert!(problem("<html/>", Some(Format::Json), &[]).contains("neither JSON"));
        assert!(problem("EUR;1.15", None, &[]).contains("neither JSON"));
        assert!(problem("{}", Some(Format::Ecb), &[]).contains("not XML"));
        assert!(problem("<html/>", None, &["/a"]).contains("--observe"));
    }
}
