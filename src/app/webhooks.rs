//! Deliveries to webhook endpoints, as the settings describe them.

use std::sync::Arc;

use authority_core::{clock::Clock, config::Config, graph::Graph, keys::Keys, store::Store};
use authority_events::{
    Sequencer,
    delivery::{Deliveries, Parts},
};

use super::{Error, named};

pub(super) fn deliveries(
    config: &Config,
    store: &Store,
    keys: &Keys,
    graph: &Arc<Graph>,
    clock: &Clock,
    sequencer: &Sequencer,
) -> Result<Deliveries, Error> {
    Ok(Deliveries::new(Parts {
        store: store.clone(),
        keys: keys.clone(),
        graph: Arc::clone(graph),
        clock: clock.clone(),
        rules: named::url_rules(config)?,
        roots: named::webhook_roots(config)?,
        issuer: config.public_url(),
        numbered: sequencer.numbered(),
    })?)
}
