//! File descriptors: each connection needs one. Without a free descriptor a process can neither
//! accept nor refuse a connection.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use authority_config::Config;

/// The number of descriptors that are reserved for the log, the key ring, sealing, the async
/// runtime, and peers that are being refused.
const RESERVE: usize = 192;
/// The number of connections that are reserved for the operators' own address.
pub(super) const OPS_CONNECTIONS: usize = 64;
/// The minimum number of connections for each listener, even if descriptors are scarce.
const LEAST: usize = 16;

/// Raises the limit of file descriptors as far as this process may.
///
/// Returns the number of connections for each listener: `limits.connections`, or fewer if
/// descriptors would run out first.
pub(super) fn connections(config: &Config, listeners: usize) -> usize {
    let wanted = config.limits.connections;
    let Some(limit) = raise_limit() else { return wanted };
    let places = places(limit, reserved(config), listeners, wanted);
    if places < wanted {
        tracing::warn!(
            descriptors = limit,
            connections = places,
            wanted,
            "limited connections below limits.connections; raise the limit of open files"
        );
    }
    places
}

fn places(limit: usize, reserved: usize, listeners: usize, wanted: usize) -> usize {
    let each = limit.saturating_sub(reserved) / listeners.max(1);
    each.max(LEAST).min(wanted)
}

/// Descriptors that are not for callers: the database's connections and others.
fn reserved(config: &Config) -> usize {
    let database = &config.database;
    database.tenant_connections
        + database.system_connections
        + database.recorder_connections
        + database.event_connections
        + OPS_CONNECTIONS
        + RESERVE
}

/// Raises the soft limit to the hard limit, and returns the limit; `None` if it is unknown.
fn raise_limit() -> Option<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    usize::try_from(if raised { hard } else { soft }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_place_only_where_there_is_a_descriptor() {
        assert_eq!(places(1 << 20, 300, 1, 10_000), 10_000);
        assert_eq!(places(1024, 300, 1, 10_000), 724);
        assert_eq!(places(1024, 300, 4, 10_000), 181);
        assert_eq!(places(256, 300, 1, 10_000), LEAST);
        assert_eq!(places(256, 300, 1, 3), 3);
    }
}
