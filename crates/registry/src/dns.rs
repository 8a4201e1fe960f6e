//! Looks up the TXT records by which the holder of a domain proves that it is theirs.

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

/// How long a look-up takes at most.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many TXT records of a name are read.
const MOST: usize = 100;

/// A resolver. Cheap to clone.
#[derive(Clone)]
pub struct Dns(Option<Arc<TokioResolver>>);

/// No DNS server has answered: whether there is a record is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unanswered;

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

    /// The TXT records of a name; none if its servers say that there is none.
    pub(super) async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unanswered> {
        // The last dot: the search domains of this machine do not apply.
        let Some(resolver) = &self.0 else { return Err(Unanswered) };
        let found = timeout(PATIENCE, resolver.lookup(format!("{name}."), RecordType::TXT)).await;
        let answers = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) if is_none(&error) => return Ok(Vec::new()),
            Ok(Err(error)) => {
                tracing::warn!(name, %error, "no DNS server answered");
                return Err(Unanswered);
            }
            Err(_) => {
                tracing::warn!(name, "no DNS server answered in time");
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

/// Whether a server says that there is no such name, or no such record of it.
fn is_none(error: &NetError) -> bool {
    let NetError::Dns(DnsError::NoRecordsFound(found)) = error else { return false };
    matches!(found.response_code, ResponseCode::NoError | ResponseCode::NXDomain)
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
