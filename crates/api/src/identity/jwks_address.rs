//! The address of an issuer's keys: from the settings, or from the issuer's metadata (`jwks_uri` of
//! OIDC Discovery 1.0, 3).

use std::{error::Error as _, fmt::Write};

use http::StatusCode;
use parking_lot::RwLock;
use reqwest::{Client, Url};
use serde::Deserialize;

/// The largest document, in bytes; a JWKS is a few kilobytes.
const LARGEST: usize = 256 * 1024;

/// The address of a key document.
pub(super) enum Address {
    Set(Url),
    Described(Box<Described>),
}

/// An issuer for which the settings do not contain the address of its keys.
pub(super) struct Described {
    issuer: String,
    description: Url,
    /// The address of the keys if the metadata has none.
    usual: Url,
    /// The last address found in the metadata.
    last: RwLock<Option<Url>>,
}

/// The relevant fields of a provider's metadata.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
}

impl Address {
    /// # Errors
    /// The issuer is not a URL from which keys may be fetched.
    pub(super) fn of_issuer(issuer: &str) -> Result<Self, String> {
        let below =
            |path: &str| safe(&format!("{}/.well-known/{path}", issuer.trim_end_matches('/')));
        Ok(Self::Described(Box::new(Described {
            issuer: issuer.to_owned(),
            description: below("openid-configuration")?,
            usual: below("jwks.json")?,
            last: RwLock::default(),
        })))
    }

    /// Fetches the document.
    ///
    /// # Errors
    /// The reason for the failure, for operators, with the requested address.
    pub(super) async fn fetch(&self, http: &Client) -> Result<Vec<u8>, String> {
        let (url, remedy) = match self {
            Self::Set(url) => (url.clone(), "the address in the settings is wrong"),
            Self::Described(described) => (
                described.url(http).await?,
                "set `identity.jwks_url` to the address of the provider's keys, the `jwks_uri` of its metadata",
            ),
        };
        let (status, document) = get(http, &url).await.map_err(|why| format!("{url}: {why}"))?;
        match status {
            StatusCode::OK => Ok(document),
            // A retry would not help: the error contains advice.
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                Err(format!("{url}: the response was {status}: {remedy}"))
            }
            _ => Err(format!("{url}: the response was {status}")),
        }
    }
}

impl Described {
    /// Returns the current address of the keys. A provider without its own metadata has its keys at
    /// the usual address.
    async fn url(&self, http: &Client) -> Result<Url, String> {
        let last = || self.last.read().clone();
        let (status, document) = match get(http, &self.description).await {
            Ok(answer) => answer,
            Err(why) => return last().ok_or_else(|| format!("{}: {why}", self.description)),
        };
        let found = match status {
            StatusCode::OK => serde_json::from_slice::<Metadata>(&document).ok(),
            status if status.is_client_error() => None,
            _ => return Ok(last().unwrap_or_else(|| self.usual.clone())),
        };
        let found = found.filter(|found| found.issuer == self.issuer);
        let Some(named) = found.and_then(|found| found.jwks_uri) else {
            return Ok(self.usual.clone());
        };
        let url = safe(&named).map_err(|why| format!("{} names {why}", self.description))?;
        *self.last.write() = Some(url.clone());
        Ok(url)
    }
}

/// Parses an address from which keys may be fetched: `https`, or `http` on this machine.
///
/// # Errors
/// The text is any other address.
pub(super) fn safe(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
    if url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url) {
        Ok(url)
    } else {
        Err(format!("`{url}`: keys may come over https only"))
    }
}

async fn get(http: &Client, url: &Url) -> Result<(StatusCode, Vec<u8>), String> {
    let mut answer = http.get(url.clone()).send().await.map_err(whole)?;
    let mut document = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(whole)? {
        if document.len() + chunk.len() > LARGEST {
            return Err("it is over 256 KiB".to_owned());
        }
        document.extend_from_slice(&chunk);
    }
    Ok((answer.status(), document))
}

/// Returns the error with all of its causes. The outermost error only reports that an error
/// occurred.
fn whole(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {deeper}");
        cause = deeper.source();
    }
    text
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}
