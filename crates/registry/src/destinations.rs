//! Where audit streams and webhooks may go.

use authority_webhook::destination::UrlRules;

/// What the installation permits.
#[derive(Default)]
pub struct Destinations {
    pub urls: UrlRules,
    /// Whether it has a NATS server.
    pub nats: bool,
}
