//! The state of the console, which every page has.

use std::{net::IpAddr, sync::Arc};

use authority_api::identity::Identity;
use authority_process::clock::Clock;
use axum::Router;
use http::Extensions;

use crate::{
    kit::latency::Latency,
    session::{Cookies, Sessions},
    sign_in::provider::Provider,
};

/// The console. Cheap to clone.
#[derive(Clone)]
pub struct Console(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// The service's own router.
    pub(crate) api: Router,
    pub(crate) identity: Identity,
    pub(crate) sessions: Sessions,
    pub(crate) clock: Clock,
    /// The providers at which people sign in, at least one.
    pub(crate) providers: Vec<Provider>,
    pub(crate) cookies: Cookies,
    /// The service's public URL, without a trailing `/`.
    pub(crate) public_url: String,
    /// The `Origin` of its own pages.
    pub(crate) origin: String,
    pub(crate) client: fn(&Extensions) -> Option<IpAddr>,
    pub(crate) latency: fn() -> Latency,
}

impl Console {
    /// The provider with this issuer, if people can sign in there.
    pub(crate) fn provider(&self, issuer: &str) -> Option<&Provider> {
        self.0.providers.iter().find(|provider| provider.issuer() == issuer)
    }
}
