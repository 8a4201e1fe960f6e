//! Logins: the identity with which commands call a service when no token is given.
//!
//! In production the login uses the device flow of the identity provider (`device.rs`). In
//! development it is a demonstration user, and the development provider issues a token for each
//! command. All logins are stored in one file (`store.rs`).

mod device;
mod store;

use authority_config::{Secret, Sources};
use authority_process::clock::Clock;
use reqwest::Url;

use crate::{outcome::Failure, token_request::TokenRequest};
pub(crate) use device::Provider;
pub(crate) use store::{Login, Logins, Person, folder};

impl Person {
    /// The request to the development provider.
    pub(crate) fn request(&self) -> TokenRequest {
        match &self.role {
            None => TokenRequest::Owner { email: self.email.clone() },
            Some(role) => TokenRequest::Tenant {
                tenant: self.tenant.clone(),
                role: role.clone(),
                email: self.email.clone(),
            },
        }
    }
}

impl Login {
    /// The identity provider, unless it is the development provider.
    pub(crate) fn provider(&self) -> Option<&Provider> {
        match self {
            Self::Device { provider, .. } => Some(provider),
            Self::Development(_) => None,
        }
    }
}

/// Returns the token of the login to a service, refreshed if it is about to expire; `None` without
/// a login.
///
/// # Errors
/// The provider does not renew it: the person must log in again.
pub(crate) async fn token(sources: &Sources, url: &Url) -> Result<Option<Secret>, Failure> {
    // Two commands must not use the same refresh token: the second waits and reads the first
    // command's new tokens.
    let _turn = Logins::lock(sources)?;
    let mut logins = Logins::read(sources)?;
    let Some(Login::Device { provider, tokens }) = logins.of(url) else { return Ok(None) };
    if !tokens.ends_soon(Clock::default().now()) {
        return Ok(Some(Secret::new(tokens.bearer().to_owned())));
    }
    let tokens = provider.refreshed(tokens).await.map_err(|failure| {
        // A new login is not possible while the provider does not respond.
        if failure.is_unreached() {
            failure
        } else {
            failure.with(&format!("log in again: agent-authority login --url {url}"))
        }
    })?;
    let bearer = Secret::new(tokens.bearer().to_owned());
    let login = Login::Device { provider: provider.clone(), tokens };
    logins.put(url, login);
    logins.write(sources)?;
    Ok(Some(bearer))
}
