//! The flags with which a command named its service. Commands in advice need the same flags.

use authority_config::Sources;
use reqwest::Url;

/// Returns the flags with a space before each, such as ` --data-dir d --listen 127.0.0.1:1`. A
/// token is replaced by the word `TOKEN`.
pub(crate) fn flags(sources: &Sources, url: Option<&Url>, has_token: bool) -> String {
    let mut given = Vec::new();
    if let Some(url) = url {
        given.push(("--url", url.to_string()));
    } else {
        if let Some(file) = &sources.file {
            given.push(("--config", file.display().to_string()));
        }
        for (setting, value) in &sources.flags {
            match *setting {
                "listen.main" => given.push(("--listen", value.clone())),
                "data_dir" => given.push(("--data-dir", value.clone())),
                _ => {}
            }
        }
    }
    if has_token {
        given.push(("--token", "TOKEN".to_owned()));
    }
    let words = given.iter().map(|(flag, value)| format!(" {flag} {}", quoted(value)));
    words.collect::<Vec<_>>().concat()
}

/// The program as it was called; it might not be on the PATH.
pub fn program() -> String {
    std::env::args().next().map_or_else(|| "agent-authority".to_owned(), |name| quoted(&name))
}

/// Quotes a word for a POSIX shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_advised_command_goes_where_its_own_went() {
        let sources = Sources {
            file: Some(PathBuf::from("a b.toml")),
            flags: vec![
                ("listen.main", "127.0.0.1:1".to_owned()),
                ("data_dir", "it's".to_owned()),
                ("environment", "production".to_owned()),
            ],
            ..Sources::default()
        };
        assert_eq!(
            flags(&sources, None, false),
            r" --config 'a b.toml' --listen 127.0.0.1:1 --data-dir 'it'\''s'"
        );
        // These settings do not apply to a service given with `--url`.
        let url = Url::parse("https://a.example/under/").unwrap();
        assert_eq!(
            flags(&sources, Some(&url), true),
            " --url https://a.example/under/ --token TOKEN"
        );
        assert_eq!(flags(&Sources::default(), None, false), "");
    }
}
