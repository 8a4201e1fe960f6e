//! The permitted destinations of audit streams and webhooks.

use authority_webhook::destination::UrlRules;

/// The destinations that the installation permits.
#[derive(Default)]
pub struct Destinations {
    pub urls: UrlRules,
    /// Whether the installation has a NATS server.
    pub nats: bool,
}
