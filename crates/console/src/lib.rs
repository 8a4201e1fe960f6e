//! The console at `/console`: pages for the people who are responsible for agents.
//!
//! The server writes the pages, which are complete without a script. A page reads and changes data
//! only through the service's own operations, with the person's own token (`kit/calls.rs`). The console
//! therefore never shows or permits more than the API. The browser has only a cookie: tokens stay
//! in the service (`session/`). The origin of every form is checked (`kit/form.rs`), and values are
//! shown with their invisible characters (`kit/escape.rs`).

mod administration;
mod console;
mod decisions;
mod dev_provider;
mod inbox;
mod kit;
mod overview;
mod policies;
mod search;
mod session;
mod sign_in;
mod stop;
mod texts;

pub use console::Console;
pub use kit::latency::Latency;

use std::{net::IpAddr, sync::Arc, time::Duration};

use authority_api::identity::{
    Identity,
    dev_provider::{DevProvider, ISSUER},
};
use authority_config::{Config, ConsoleClient};
use authority_keys::Keys;
use authority_process::{clock::Clock, worker::Worker};
use authority_store::Store;
use axum::{Router, routing::any};
use http::{Extensions, Uri};

use console::Inner;
use dev_provider::{CLIENT_ID, DevPages};
use session::{Cookies, Sessions};
use sign_in::provider::{Client, Provider};

/// The dependencies of the console.
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    pub clock: Clock,
    pub identity: Identity,
    /// The development provider, if it runs.
    pub provider: Option<DevProvider>,
    /// Reads a request's client address, which the transport put into the extensions.
    pub client: fn(&Extensions) -> Option<IpAddr>,
    /// Returns the time of decisions on this node.
    pub latency: fn() -> Latency,
}

/// The interval at which sessions that have ended are deleted.
const SWEPT: Duration = Duration::from_secs(300);

/// Returns the console's pages and the worker that deletes its old sessions. `api` is the service's own
/// router. `None` if the settings turn the console off.
///
/// # Errors
/// The identity provider's client cannot be set up.
pub fn build(
    parts: Parts,
    config: &Config,
    api: Router,
) -> Result<Option<(Router, Worker)>, String> {
    if !config.console() {
        return Ok(None);
    }
    let Parts { store, keys, clock, identity, provider, client, latency } = parts;
    let public_url = config.public_url();
    let dev_pages =
        provider.map(|provider| DevPages::new(provider, clock.clone(), &public_url).router());
    let mut providers = Vec::new();
    for (name, issuer, client) in config.sign_ins() {
        let ConsoleClient { client_id, client_secret, scopes } = client;
        let name = name.map(str::to_owned);
        let client = Client { name, client_id, client_secret, scopes };
        providers.push(Provider::remote(issuer.to_owned(), client, clock.clone())?);
    }
    match &dev_pages {
        _ if !providers.is_empty() => {}
        Some(pages) => {
            let (pages, clock) = (pages.clone(), clock.clone());
            providers.push(Provider::development(ISSUER, CLIENT_ID, &public_url, pages, clock));
        }
        None => return Ok(None),
    }
    let sessions = Sessions { store, keys };
    let console = Console(Arc::new(Inner {
        api,
        identity,
        sessions: sessions.clone(),
        clock: clock.clone(),
        providers,
        cookies: Cookies { https: config.https() },
        origin: origin(&public_url),
        public_url,
        client,
        latency,
    }));
    let sweeper = Worker::periodic("console_sessions", SWEPT, move || {
        let (sessions, now) = (sessions.clone(), clock.now());
        async move { sessions.sweep(now).await }
    });
    Ok(Some((console.router().merge(dev_pages.unwrap_or_default()), sweeper)))
}

impl Console {
    fn router(self) -> Router {
        let pages = Router::new()
            .merge(kit::assets::router())
            .merge(sign_in::router())
            .merge(overview::router())
            .merge(search::router())
            .merge(inbox::router())
            .merge(decisions::router())
            .merge(stop::router())
            .merge(policies::router())
            .merge(administration::router())
            .route("/console/{*rest}", any(kit::nowhere::nowhere));
        pages.with_state(self)
    }
}

/// The origin of a URL, as browsers write it: without the scheme's own port.
fn origin(url: &str) -> String {
    let Ok(uri) = url.parse::<Uri>() else { return String::new() };
    let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
    let usual = if scheme == "https" { 443 } else { 80 };
    let port = uri.port_u16().filter(|port| *port != usual);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_origin_is_as_browsers_write_it() {
        for (url, origin) in [
            ("https://Authority.example.org", "https://authority.example.org"),
            ("https://authority.example.org:443/base", "https://authority.example.org"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(super::origin(url), origin);
        }
    }
}
