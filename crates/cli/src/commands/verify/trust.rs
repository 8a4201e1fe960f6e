//! The keys that a verifier trusts: from a file that was saved before, or from the service.

use std::{fs, path::PathBuf};

use authority_evidence::{
    log::note::LogKey,
    verify::{KeySet, Trust, key_set},
};
use reqwest::Url;

use crate::{http::keys_address, jwks::Jwks, outcome::Failure, runtime::runtime};

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// The service's trusted public keys: a saved copy of its /.well-known/jwks.json, or its address; without
    /// them, the result is at best `consistent`
    #[arg(long, value_name = "FILE|URL", value_parser = source)]
    jwks: Option<Source>,
    /// The log's trusted key: <origin>+<id>+<key>
    #[arg(long, value_name = "VKEY")]
    checkpoint_key: Option<String>,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Url(Url),
}

fn source(text: &str) -> Result<Source, String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return keys_address(text).map(Source::Url);
    }
    Ok(Source::File(text.into()))
}

impl TrustArgs {
    pub(super) fn read(&self) -> Result<Trust, Failure> {
        let log_key = self.checkpoint_key.as_deref().map(LogKey::parse).transpose();
        Ok(Trust {
            keys: self.jwks.as_ref().map(keys).transpose()?,
            log_key: log_key.map_err(|why| Failure::usage(format!("`--checkpoint-key`: {why}")))?,
        })
    }
}

fn keys(source: &Source) -> Result<KeySet, Failure> {
    let set = match source {
        Source::File(file) => fs::read(file)
            .map_err(|why| Failure::usage(format!("unreadable: {}: {why}", file.display())))?,
        Source::Url(url) => {
            let jwks = Jwks::new(url.clone())?;
            let set = runtime()?.block_on(jwks.fetched()).map_err(Failure::usage)?;
            set.to_string().into_bytes()
        }
    };
    key_set(&set).map_err(Failure::usage)
}
