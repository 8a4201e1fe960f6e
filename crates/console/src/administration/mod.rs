//! The pages for agents, delegations, keys, webhooks, messages and all other records.

pub(crate) mod agents;
pub(crate) mod authority;
pub(crate) mod budgets;
pub(crate) mod chain;
mod definitions;
mod keys;
mod messages;
pub(crate) mod records;
mod tenant;
mod webhooks;

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .merge(agents::router())
        .merge(definitions::router())
        .merge(keys::router())
        .merge(messages::router())
        .merge(records::router())
        .merge(tenant::router())
        .merge(webhooks::router())
}
