//! One word to stop, heard by every listener and worker.

use std::{io, sync::Arc};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Clones hear the same word.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Shutdown {
    /// Said by SIGTERM, SIGINT or SIGHUP (a terminal that was closed); a second one ends the process
    /// at once, as the impatient expect.
    pub fn on_signal() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let shutdown = Self::default();
        let heard = shutdown.clone();
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
                heard.begin();
            }
        });
        Ok(shutdown)
    }

    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    pub fn begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves once the word is said, at once if it was.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut said = self.0.subscribe();
        async move {
            // The sender lives in every clone; if all are gone, no one is left to serve either.
            let _ = said.wait_for(|said| *said).await;
        }
    }
}
