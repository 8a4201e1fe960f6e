//! Selects the server to use if the URL has several. A standby may become the primary.
//!
//! tokio-postgres tries the servers in turn. It waits without a limit for a server that accepts the
//! connection and then stays silent, like a stopped process. Here, each server is tried separately,
//! with a limit on the whole attempt.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{
    Config,
    config::{Host, TargetSessionAttrs},
};

use super::fault::Fault;

/// The limit of a connection attempt, from resolving the address to the end of the login.
const LIMIT: Duration = Duration::from_secs(3);
/// How much earlier the last used server is tried than the other servers.
const HEAD_START: Duration = Duration::from_millis(250);
/// The pause before a refusing server is tried again, while another server is still silent.
const PAUSE: Duration = Duration::from_millis(250);

/// The servers of a URL. Clones share the index of the last used server.
#[derive(Clone)]
pub(super) struct Servers {
    each: Arc<[Config]>,
    last: Arc<AtomicUsize>,
}

impl Servers {
    pub(super) fn of(config: &Config) -> Self {
        let count = config.get_hosts().len();
        Self { each: (0..count).map(|at| alone(config, at)).collect(), last: Arc::default() }
    }

    /// Returns the first connection that `dial` makes.
    ///
    /// Fails as soon as all servers have refused. While a server is silent, the refusing servers
    /// are tried again, because a standby may become the primary.
    ///
    /// # Errors
    /// A server's response to the login or, without one, the reason why no server was reached.
    pub(super) async fn first<'s, T, F>(
        &'s self,
        dial: impl Fn(&'s Config) -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let deadline = Instant::now() + LIMIT;
        let attempt = |(at, server): (usize, &'s Config), pause| {
            let dialled = dial(server);
            async move {
                sleep(pause).await;
                let dialled = timeout_at(deadline, dialled).await;
                (at, server, dialled.unwrap_or(Err(Fault::Silent)))
            }
        };
        let last = self.last.load(Ordering::Relaxed);
        let mut silent: HashSet<usize> = (0..self.each.len()).collect();
        let starts = self.each.iter().enumerate();
        let mut attempts: FuturesUnordered<_> = starts
            .map(|(at, server)| {
                attempt((at, server), if at == last { Duration::ZERO } else { HEAD_START })
            })
            .collect();
        let mut reason = Fault::Silent;
        while let Some((at, server, dialled)) = attempts.next().await {
            let fault = match dialled {
                Ok(dialled) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(dialled);
                }
                Err(fault) => fault,
            };
            silent.remove(&at);
            if !silent.is_empty() && Instant::now() + PAUSE < deadline {
                attempts.push(attempt((at, server), PAUSE));
            }
            if fault.answer().is_some() || (reason.answer().is_none() && !fault.is_silence()) {
                reason = fault;
            }
        }
        Err(reason)
    }
}

/// Returns the configuration with only this server.
///
/// The configuration requires a writable session: the service writes, and a standby is of no use.
fn alone(config: &Config, at: usize) -> Config {
    let mut alone = Config::new();
    match config.get_hosts().get(at) {
        Some(Host::Tcp(name)) => alone.host(name),
        Some(Host::Unix(folder)) => alone.host_path(folder),
        None => &mut alone,
    };
    if let Some(address) = config.get_hostaddrs().get(at) {
        alone.hostaddr(*address);
    }
    if let Some(port) = port(config, at) {
        alone.port(port);
    }
    if let Some(user) = config.get_user() {
        alone.user(user);
    }
    if let Some(password) = config.get_password() {
        alone.password(password);
    }
    if let Some(database) = config.get_dbname() {
        alone.dbname(database);
    }
    if let Some(options) = config.get_options() {
        alone.options(options);
    }
    if let Some(name) = config.get_application_name() {
        alone.application_name(name);
    }
    alone.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    alone.channel_binding(config.get_channel_binding());
    alone.load_balance_hosts(config.get_load_balance_hosts());
    alone.target_session_attrs(TargetSessionAttrs::ReadWrite);
    // A name may have several addresses, and the connect timeout applies to each of them. The
    // kernel notices within 11 s that a peer has disappeared. A peer that is connected but does
    // not respond is handled in `silence.rs`.
    alone.connect_timeout(Duration::from_secs(2)).tcp_user_timeout(Duration::from_secs(10));
    alone.keepalives_idle(Duration::from_secs(5)).keepalives_retries(3);
    alone.keepalives_interval(Duration::from_secs(2));
    alone
}

/// Returns the port of this server, if the URL has one for it.
pub(super) fn port(config: &Config, at: usize) -> Option<u16> {
    let ports = config.get_ports();
    ports.get(at).or(ports.first()).copied()
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn three() -> Servers {
        let config: Config = "host=a,b,c port=1,2,3 user=u password=p".parse().unwrap();
        Servers::of(&config)
    }

    fn refused() -> Fault {
        Fault::Failed("port=none".parse::<Config>().unwrap_err())
    }

    fn is(server: &Config, name: &str) -> bool {
        server.get_hosts() == [Host::Tcp(name.to_owned())]
    }

    #[tokio::test]
    async fn the_server_that_served_last_is_tried_first() {
        let servers = three();
        for name in ["c", "b"] {
            let let_in =
                |server| async move { if is(server, name) { Ok(()) } else { pending().await } };
            servers.first(let_in).await.ok().unwrap();
            let first = servers.first(|server| ready(Ok(is(server, name)))).await;
            assert!(first.is_ok_and(|is_last| is_last), "{name}");
        }
    }

    #[tokio::test]
    async fn a_standby_that_becomes_the_primary_is_found_while_another_server_is_silent() {
        let asked = AtomicUsize::new(0);
        let servers = three();
        let promoted = servers.first(|server| {
            let is_early = is(server, "c") && asked.fetch_add(1, Ordering::Relaxed) < 3;
            async move {
                match is(server, "c") {
                    true if is_early => Err(refused()),
                    true => Ok(()),
                    false => pending().await,
                }
            }
        });
        assert!(promoted.await.is_ok());
    }

    #[tokio::test]
    async fn refusals_are_told_at_once_and_silence_after_the_limit() {
        let servers = three();
        let begun = Instant::now();
        let told = servers.first(|_| ready(Err::<(), _>(refused()))).await;
        assert!(begun.elapsed() < LIMIT / 2 && matches!(told, Err(Fault::Failed(_))));
        let begun = Instant::now();
        let told = servers.first(|_| pending::<Result<(), Fault>>()).await;
        assert!(begun.elapsed() >= LIMIT && matches!(told, Err(Fault::Silent)));
    }
}
