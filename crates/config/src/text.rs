//! Lists, written as a TOML list in a file or as text with commas in the environment.

use std::net::SocketAddr;

use http::HeaderValue;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

use authority_process::network::network;

use super::choices::{OpenToAll, SigningAlgorithm, TlsVersion};

#[derive(Deserialize)]
#[serde(untagged)]
enum List {
    Many(Vec<String>),
    One(String),
}

pub(super) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match List::deserialize(deserializer)? {
        List::Many(items) => items,
        // The text looks like a TOML list, but its words are not in quotes.
        List::One(text) if text.starts_with('[') => {
            return Err(D::Error::custom(
                "a list in brackets needs quotes around its words: `[\"a\", \"b\"]`; without brackets: `a, b`",
            ));
        }
        List::One(text) => {
            text.split(',').map(|item| item.trim().to_owned()).filter(|i| !i.is_empty()).collect()
        }
    })
}

pub(super) fn addresses<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SocketAddr>, D::Error> {
    let parsed = |item: String| {
        item.parse().map_err(|_| {
            D::Error::custom(format!("`{item}` is not an address with a port, `192.0.2.53:53`"))
        })
    };
    list(deserializer)?.into_iter().map(parsed).collect()
}

pub(super) fn algorithms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SigningAlgorithm>, D::Error> {
    let read = |item: String| match item.as_str() {
        "RS256" => Ok(SigningAlgorithm::Rs256),
        "ES256" => Ok(SigningAlgorithm::Es256),
        "EdDSA" => Ok(SigningAlgorithm::EdDSA),
        other => Err(D::Error::custom(format!(
            "`{other}` is not an algorithm of tokens; use RS256, ES256 or EdDSA"
        ))),
    };
    list(deserializer)?.into_iter().map(read).collect()
}

pub(super) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    list(deserializer)?
        .into_iter()
        .map(|item| {
            network(&item).ok_or_else(|| {
                D::Error::custom(format!("`{item}` is not an address or CIDR block"))
            })
        })
        .collect()
}

pub(super) fn shown<S: Serializer>(networks: &[IpNet], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(networks.iter().map(ToString::to_string))
}

/// Normalizes origins as in RFC 6454, to compare them byte for byte with the header.
pub(super) fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    list(deserializer)?
        .into_iter()
        .map(|item| {
            let origin = item.trim_end_matches('/').to_ascii_lowercase();
            let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            let whole = host.is_some_and(|host| {
                !host.is_empty() && !host.contains(['/', '?', '#', '*', '@', ' ', ','])
            });
            if whole && HeaderValue::from_str(&origin).is_ok() {
                Ok(origin)
            } else {
                Err(D::Error::custom(format!(
                    "`{item}` is not an origin; write it as `https://console.example.org`"
                )))
            }
        })
        .collect()
}

/// Reads a version of TLS, as a text or as a number: `1.3` in the environment is a number.
pub(super) fn tls_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<TlsVersion, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Version {
        Text(String),
        Number(f64),
    }
    let version = match Version::deserialize(deserializer)? {
        Version::Text(text) => text,
        Version::Number(number) => number.to_string(),
    };
    match version.as_str() {
        "1.2" => Ok(TlsVersion::Tls12),
        "1.3" => Ok(TlsVersion::Tls13),
        other => Err(D::Error::custom(format!("`{other}` is not supported; write 1.2 or 1.3"))),
    }
}

pub(super) fn open_to_all<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<OpenToAll>, D::Error> {
    let parsed = |item: String| match item.as_str() {
        "admin" => Ok(OpenToAll::Admin),
        "app" => Ok(OpenToAll::App),
        "gateway" => Ok(OpenToAll::Gateway),
        "site" => Ok(OpenToAll::Site),
        "ops" => Ok(OpenToAll::Ops),
        "health" => Ok(OpenToAll::Health),
        _ => Err(D::Error::custom(format!(
            "`{item}` is unknown; the known ones are admin, app, gateway, site, ops, health"
        ))),
    };
    list(deserializer)?.into_iter().map(parsed).collect()
}
