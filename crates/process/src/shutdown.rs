//! The cancellation token for shutdown by signals.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that is cancelled by SIGTERM, SIGINT or SIGHUP (a closed terminal).
///
/// A second signal ends the process immediately.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let shutdown = CancellationToken::new();
    let told = shutdown.clone();
    // Not a worker, because it waits for the second signal while the workers end.
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
