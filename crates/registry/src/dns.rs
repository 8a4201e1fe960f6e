//! Looks up the TXT records that prove the ownership of a domain.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hickory_resolver::{
    Resolver, TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig},
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{RData, RecordType},
    },
};
use tokio::time::timeout;

/// The longest time for a look-up.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of TXT records that are read for a name.
const MOST: usize = 100;

/// A DNS resolver. Cheap to clone.
#[derive(Clone)]
pub struct Dns(Option<Arc<TokioResolver>>);

/// The error if no DNS server answered. It is then unknown whether there is a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unanswered;

impl Dns {
    /// Creates a resolver for these servers. An empty list selects the system's servers. If the
    /// system's configuration can't be read, look-ups fail.
    pub fn new(servers: &[SocketAddr]) -> Self {
        match resolver(servers) {
            Ok(resolver) => Self(Some(Arc::new(resolver))),
            Err(error) => {
                tracing::error!(%error, "found no DNS resolver; set dns.servers");
                Self(None)
            }
        }
    }

    /// Returns the TXT records of a name. The list is empty if a server reports that there are
    /// none.
    pub(super) async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unanswered> {
        // The trailing dot keeps the machine's search domains from being applied.
        let Some(resolver) = &self.0 else { return Err(Unanswered) };
        let found = timeout(PATIENCE, resolver.lookup(format!("{name}."), RecordType::TXT)).await;
        let answers = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) if is_none(&error) => return Ok(Vec::new()),
            Ok(Err(error)) => {
                tracing::warn!(%error, dns.question.name = name, "failed to look up a DNS name");
                return Err(Unanswered);
            }
            Err(_) => {
                tracing::warn!(dns.question.name = name, "failed to look up a DNS name in time");
                return Err(Unanswered);
            }
        };
        let texts = answers.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        });
        Ok(texts.take(MOST).collect())
    }
}

/// Whether a server reports that the name does not exist or has no TXT record.
fn is_none(error: &NetError) -> bool {
    let NetError::Dns(DnsError::NoRecordsFound(found)) = error else { return false };
    matches!(found.response_code, ResponseCode::NoError | ResponseCode::NXDomain)
}

/// The resolver does not cache. A record is found as soon as it is published.
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
