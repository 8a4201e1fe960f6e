//! Looks up the TXT records by which the holder of a domain proves that it is theirs.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hickory_resolver::{
    Resolver, TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::{RData, RecordType},
};
use tokio::time::timeout;

/// How long a look-up takes at most.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many TXT records of a name are read.
const MOST: usize = 100;

/// A resolver. Cheap to clone.
#[derive(Clone)]
pub struct Dns(Option<Arc<TokioResolver>>);

impl Dns {
    /// A resolver that asks these servers, or those of the system if there are none. Without a readable
    /// configuration of the system it finds nothing.
    pub fn new(servers: &[SocketAddr]) -> Self {
        match resolver(servers) {
            Ok(resolver) => Self(Some(Arc::new(resolver))),
            Err(error) => {
                tracing::warn!(%error, "names cannot be resolved; set `dns.servers`");
                Self(None)
            }
        }
    }

    /// The TXT records of a name; none if it has none, or no server answers.
    pub(super) async fn texts(&self, name: &str) -> Vec<Vec<u8>> {
        // The last dot: the search domains of this machine do not apply.
        let Some(resolver) = &self.0 else { return Vec::new() };
        let found = timeout(PATIENCE, resolver.lookup(format!("{name}."), RecordType::TXT)).await;
        let answers = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::info!(name, %error, "no TXT record was found");
                return Vec::new();
            }
            Err(_) => {
                tracing::info!(name, "no TXT record was found in time");
                return Vec::new();
            }
        };
        let texts = answers.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        });
        texts.take(MOST).collect()
    }
}

/// It keeps no answers, so that a record is found as soon as it is published.
fn resolver(servers: &[SocketAddr]) -> Result<TokioResolver, NetError> {
    let provider = TokioRuntimeProvider::default();
    let mut builder = if servers.is_empty() {
        Resolver::builder(provider)?
    } else {
        let servers = servers.iter().copied().map(server).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        Resolver::builder_with_config(config, provider)
    };
    let options = builder.options_mut();
    options.cache_size = 0;
    options.timeout = Duration::from_secs(2);
    options.attempts = 2;
    builder.build()
}

fn server(address: SocketAddr) -> NameServerConfig {
    let [mut udp, mut tcp] = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    udp.port = address.port();
    tcp.port = address.port();
    NameServerConfig::new(address.ip(), true, vec![udp, tcp])
}
