//! Idle connections, kept for further requests.

use std::{collections::HashMap, net::IpAddr};

use authority_webhook::destination::EndpointUrl;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    super::places::RUNNING,
    WHOLE,
    connect::{Connection, LIFE, Target},
};

/// The most idle connections for each host and address: as many as can be in use at once.
const MOST: usize = RUNNING.host;

#[derive(Default)]
pub(super) struct Idle(Mutex<HashMap<Target, Vec<Connection>>>);

impl Idle {
    /// Takes a connection to the URL's host at a vetted address.
    ///
    /// The connection's remaining lifetime is enough for a whole attempt.
    pub(super) fn take(&self, url: &EndpointUrl, vetted: &[IpAddr]) -> Option<Connection> {
        let mut kept = self.0.lock();
        let mut of_address = |address: &IpAddr| {
            let connections = kept.get_mut(&Target::of(url, *address))?;
            std::iter::from_fn(|| connections.pop())
                .find(|one| is_young(one) && one.sender.is_ready())
        };
        let found = vetted.iter().find_map(&mut of_address)?;
        Some(Connection { reused: true, ..found })
    }

    /// Keeps a connection after its response was read to the end.
    pub(super) fn put(&self, connection: Connection) {
        let mut kept = self.0.lock();
        kept.retain(|_, connections| {
            connections.retain(|one| is_young(one) && !one.sender.is_closed());
            !connections.is_empty()
        });
        let connections = kept.entry(connection.target.clone()).or_default();
        if connections.len() < MOST && is_young(&connection) {
            connections.push(connection);
        }
    }
}

fn is_young(connection: &Connection) -> bool {
    Instant::now() + WHOLE <= connection.opened + LIFE
}
