//! The receivers of notifications, which share one listening connection.

use std::{fmt::Write as _, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, error::TrySendError};

/// The number of notifications that may wait for a receiver.
const WAITING: usize = 64;

/// An event of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// The listener is now listening, or this receiver was too slow. Earlier notifications, and
    /// those during a disconnection, are lost: read everything again.
    Listening,
    /// The payload of a NOTIFY.
    Received(String),
}

/// The receivers of notifications. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Receivers(Arc<Mutex<Vec<Receiver>>>);

struct Receiver {
    channel: &'static str,
    sender: mpsc::Sender<Notification>,
    /// Whether a notification was lost because too many were waiting.
    has_missed: bool,
}

impl Receiver {
    /// Sends a notification. After a lost one, the receiver must read everything again.
    fn send(&mut self, notification: Notification) {
        let next = if self.has_missed { Notification::Listening } else { notification };
        self.has_missed = matches!(self.sender.try_send(next), Err(TrySendError::Full(_)));
    }
}

impl Receivers {
    /// Adds a receiver for the notifications on a channel.
    pub(super) fn add(&self, channel: &'static str) -> mpsc::Receiver<Notification> {
        let (sender, notifications) = mpsc::channel(WAITING);
        self.0.lock().push(Receiver { channel, sender, has_missed: false });
        notifications
    }

    pub(super) fn send(&self, channel: &str, payload: &str) {
        for receiver in self.0.lock().iter_mut().filter(|receiver| receiver.channel == channel) {
            receiver.send(Notification::Received(payload.to_owned()));
        }
    }

    pub(super) fn all_listen(&self) {
        self.0.lock().iter_mut().for_each(|receiver| receiver.send(Notification::Listening));
    }

    /// Notifies the receivers that have missed a notification.
    pub(super) fn repeat_missed(&self) {
        for receiver in self.0.lock().iter_mut().filter(|receiver| receiver.has_missed) {
            receiver.send(Notification::Listening);
        }
    }

    /// Returns the SQL that listens on all channels.
    pub(super) fn sql(&self) -> String {
        let mut sql = String::new();
        for receiver in &*self.0.lock() {
            // Writing to a `String` cannot fail.
            let _ = write!(sql, "LISTEN \"{}\"; ", receiver.channel);
        }
        sql
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_missed_a_notification_reads_everything_again() {
        let receivers = Receivers::default();
        let (sender, mut stream) = mpsc::channel(1);
        receivers.0.lock().push(Receiver { channel: "a", sender, has_missed: false });
        let received = |text: &str| Ok(Notification::Received(text.to_owned()));
        receivers.send("b", "of another channel");
        receivers.send("a", "1");
        receivers.send("a", "2");
        assert_eq!(stream.try_recv(), received("1"));
        receivers.repeat_missed();
        assert_eq!(stream.try_recv(), Ok(Notification::Listening));
        receivers.repeat_missed();
        receivers.send("a", "3");
        assert_eq!(stream.try_recv(), received("3"));
    }
}
