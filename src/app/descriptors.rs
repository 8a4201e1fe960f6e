//! File descriptors: each connection takes one, and a process that has none left can neither accept
//! a connection nor refuse it.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use authority_core::config::Config;

/// For the log, the key ring, sealing, the runtime's own, and peers that are being refused.
const RESERVE: usize = 192;
/// On the operators' own address.
pub(super) const OPS_CONNECTIONS: usize = 64;
/// Even where there is hardly room for it.
const LEAST: usize = 16;

/// Raises the limit as far as this process may, and says how many connections each of so many
/// listeners may hold: what the settings say, or less, where descriptors would run out before.
pub(super) fn connections(config: &Config, listeners: usize) -> usize {
    let wanted = config.limits.connections;
    let Some(limit) = raised() else { return wanted };
    let places = places(limit, reserved(config), listeners, wanted);
    if places < wanted {
        tracing::warn!(
            descriptors = limit,
            connections = places,
            wanted,
            "fewer connections than `limits.connections`: raise the limit of open files (ulimit -Hn)"
        );
    }
    places
}

fn places(limit: usize, reserved: usize, listeners: usize, wanted: usize) -> usize {
    let each = limit.saturating_sub(reserved) / listeners.max(1);
    each.max(LEAST).min(wanted)
}

/// What is not for the callers: the database's connections and the rest.
fn reserved(config: &Config) -> usize {
    let database = &config.database;
    database.tenant_connections
        + database.system_connections
        + database.recorder_connections
        + OPS_CONNECTIONS
        + RESERVE
}

/// The soft limit, now as high as the hard one; none where it cannot be known.
fn raised() -> Option<usize> {
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
