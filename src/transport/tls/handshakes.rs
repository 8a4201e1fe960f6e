//! The TLS handshakes in progress. If there are too many, the oldest is ended.
//!
//! Refusing new ones instead would let a few peers that never finish keep all others out.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(in crate::transport) struct Handshakes {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// Each handshake ends when its sender is dropped.
    handshakes: BTreeMap<u64, oneshot::Sender<Infallible>>,
}

/// The place of a handshake, until it is dropped.
pub(super) struct Place {
    all: Arc<Handshakes>,
    number: u64,
    ended: oneshot::Receiver<Infallible>,
}

impl Handshakes {
    pub(in crate::transport) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let (ends, ended) = oneshot::channel();
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.handshakes.insert(number, ends);
        if open.handshakes.len() > self.most {
            drop(open.handshakes.pop_first());
        }
        Place { all: Arc::clone(self), number, ended }
    }
}

impl Place {
    /// Completes when a newer handshake takes the place.
    pub(super) async fn lost(&mut self) {
        // The sender never sends.
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.open.lock().handshakes.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_oldest_loses_its_place() {
        let all = Handshakes::new(2);
        let (mut first, mut second) = (all.enter(), all.enter());
        assert!(first.lost().now_or_never().is_none());
        let mut third = all.enter();
        assert!(first.lost().now_or_never().is_some());
        assert!(second.lost().now_or_never().is_none() && third.lost().now_or_never().is_none());
        drop((first, second));
        let mut fourth = all.enter();
        assert!(third.lost().now_or_never().is_none() && fourth.lost().now_or_never().is_none());
        drop((third, fourth));
        assert!(all.open.lock().handshakes.is_empty());
    }
}
