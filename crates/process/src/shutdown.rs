//! The cancellation token for shutdown by signals.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long further signals count as the first one.
///
/// One stop often reaches the process several times: from the terminal, from a launcher that forwards
/// it, or from a service manager that signals a whole group.
const SAME_STOP: Duration = Duration::from_secs(1);

/// Returns a token that is cancelled by SIGTERM, SIGINT or SIGHUP (a closed terminal).
///
/// A further signal ends the process immediately, if it comes at least a second after the first.
pub fn on_signal() -> io::Result<CancellationToken> {
    let signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hangup: signal(SignalKind::hangup())?,
    };
    let shutdown = CancellationToken::new();
    // Not a worker, because it waits for a further signal while the workers end.
    tokio::spawn(stop(signals, shutdown.clone()));
    Ok(shutdown)
}

async fn stop(mut signals: Signals, told: CancellationToken) {
    signals.next().await;
    tracing::info!("stopping");
    told.cancel();
    let first = Instant::now();
    loop {
        signals.next().await;
        if first.elapsed() >= SAME_STOP {
            std::process::exit(1);
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    /// A second stop would end the process of this test.
    #[tokio::test]
    async fn a_stop_that_arrives_several_times_is_one() {
        let shutdown = on_signal().unwrap();
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            kill_process(getpid(), signal).unwrap();
        }
        shutdown.cancelled().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
