//! Webhook endpoints, to which a tenant's events are sent.
//!
//! The secret is returned once and stored encrypted, like the values of headers. When an endpoint's
//! state changes, database triggers update its secrets, open deliveries and on-demand event types.
//! Triggers also pause endpoints. They run in the transaction of the change, whichever code makes
//! the change.

mod create;
mod demand;
mod enable;
mod headers;
mod holder;
mod pause;
mod position;
mod record;
mod rotate;
mod rules;
mod service;
mod update;

use super::flow::registry::Registry;

/// The service for webhook endpoints.
#[derive(Clone)]
pub struct WebhookEndpoints(pub Registry);
