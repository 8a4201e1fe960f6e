//! The cancellation token for shutdown, cancelled by a signal.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancelled by SIGTERM, SIGINT or SIGHUP (a closed terminal); a second signal ends the process at
/// once.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let shutdown = CancellationToken::new();
    let told = shutdown.clone();
    // Not a worker: it waits for the second signal while the workers end.
    tokio::spawn(async move {
        for again in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {}
            }
            if again {
                std::process::exit(1);
            }
            tracing::info!("stopping");
            told.cancel();
        }
    });
    Ok(shutdown)
}
