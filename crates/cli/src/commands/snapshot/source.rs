//! The source of a snapshot's content: a file, an address, the standard input.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
    time::Duration,
};

use authority_client::{TO_CONNECT, is_loopback};
use authority_process::clock::Clock;
use chrono::{DateTime, Utc};
use reqwest::{Client, Url, redirect::Policy};

use crate::{http::deepest, outcome::Failure};

/// The maximum size of the content, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;
/// The timeout of the whole response.
const PATIENCE: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;
/// Some servers refuse a client without a user agent.
const NAME: &str = concat!("agent-authority/", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Debug)]
pub(crate) enum Source {
    StandardInput,
    File(PathBuf),
    Address(Url),
}

/// The content that was read.
pub(crate) struct Content {
    pub(super) bytes: Vec<u8>,
    /// The modification time of a file; otherwise the time of reading.
    pub(super) at: DateTime<Utc>,
}

/// Parses `--from`.
pub(super) fn parse(text: &str) -> Result<Source, String> {
    match text {
        "" => Err("is empty".to_owned()),
        "-" => Ok(Source::StandardInput),
        text if !text.contains("://") => Ok(Source::File(text.into())),
        text => {
            let url = Url::parse(text).map_err(|error| error.to_string())?;
            if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
                return Err("only https, or http on this machine".to_owned());
            }
            if !url.username().is_empty() || url.password().is_some() {
                let advice = "no user or password in an address: fetch it yourself, and give `-`";
                return Err(advice.to_owned());
            }
            Ok(Source::Address(url))
        }
    }
}

impl Source {
    pub(super) async fn read(&self) -> Result<Content, Failure> {
        let now = || Clock::default().now();
        match self {
            Self::StandardInput => {
                let bytes = limited(io::stdin()).map_err(|why| failed("standard input", &why))?;
                Ok(Content { bytes, at: now() })
            }
            Self::File(path) => {
                let name = path.display().to_string();
                let read = || {
                    let file = File::open(path).map_err(|error| error.to_string())?;
                    let written = file.metadata().and_then(|of| of.modified());
                    let written = written.map_err(|error| error.to_string())?;
                    Ok(Content { bytes: limited(file)?, at: written.into() })
                };
                read().map_err(|why: String| failed(&name, &why))
            }
            Self::Address(url) => {
                let bytes = fetch(url).await.map_err(|why| failed(url.as_str(), &why))?;
                Ok(Content { bytes, at: now() })
            }
        }
    }
}

fn failed(name: &str, why: &str) -> Failure {
    Failure::new(format!("--from: {name}: {why}"))
}

fn too_large() -> String {
    format!("is larger than {} MiB", LARGEST / 1024 / 1024)
}

fn limited(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from.take(LARGEST as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() > LARGEST { Err(too_large()) } else { Ok(bytes) }
}

async fn fetch(url: &Url) -> Result<Vec<u8>, String> {
    let http = Client::builder()
        .user_agent(NAME)
        .timeout(PATIENCE)
        .connect_timeout(TO_CONNECT)
        .redirect(to_https());
    let http = if is_loopback(url) { http.no_proxy() } else { http };
    let http = http.build().map_err(deepest)?;
    let mut answer = http.get(url.clone()).send().await.map_err(deepest)?;
    if !answer.status().is_success() {
        return Err(format!("answers with status {}", answer.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(deepest)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LARGEST {
            return Err(too_large());
        }
    }
    Ok(bytes)
}

/// A policy that follows redirects only to https: content over http could be changed in transit.
fn to_https() -> Policy {
    Policy::custom(|attempt| {
        if attempt.previous().len() > MOST_REDIRECTS {
            attempt.error("redirects too often")
        } else if attempt.url().scheme() == "https" {
            attempt.follow()
        } else {
            attempt.error("redirects to an address that is not https")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_on_this_machine() {
        for good in ["https://a.example/rates.xml", "http://127.0.0.1:80/", "http://localhost/a"] {
            assert!(matches!(parse(good), Ok(Source::Address(_))), "{good}");
        }
        for bad in ["http://a.example/", "ftp://a.example/", "https://u:p@a.example/", "://", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(matches!(parse("-"), Ok(Source::StandardInput)));
        assert!(matches!(parse("rates.xml"), Ok(Source::File(_))));
    }

    #[test]
    fn content_has_a_limit() {
        assert_eq!(limited(&vec![b' '; LARGEST][..]).unwrap().len(), LARGEST);
        assert!(limited(&vec![b' '; LARGEST + 1][..]).unwrap_err().contains("4 MiB"));
    }
}
