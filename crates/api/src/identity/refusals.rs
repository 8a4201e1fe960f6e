//! Refused credentials, for operators: counted by reason, and logged without the credential.

use std::{net::IpAddr, time::Duration};

use authority_process::log_limit::LogLimit;

use super::error::Error;

/// The minimum interval between log lines with the same reason: an attack or a broken client must
/// not fill the disk.
const LOG_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Refusals(LogLimit);

impl Refusals {
    /// Creates the counter of every reason at the start, to make its first increase visible.
    pub(super) fn new() -> Self {
        for reason in Error::REASONS {
            counter(reason).increment(0);
        }
        Self(LogLimit::new(LOG_EVERY))
    }

    /// Counts the refusal of a call to `rpc_path`, and logs it unless the same reason was logged a
    /// moment ago.
    pub(super) fn note(&self, error: &Error, rpc_path: &str, client: Option<IpAddr>) {
        let Some(reason) = error.reason() else { return };
        counter(reason).increment(1);
        if let Some(count) = self.0.pass(reason) {
            let client = client.map(tracing::field::display);
            tracing::warn!(
                %error,
                reason,
                refused = count,
                operation = rpc_path,
                client.address = client,
                "refused a credential"
            );
        }
    }
}

fn counter(reason: &'static str) -> metrics::Counter {
    metrics::counter!("authority_credentials_refused_total", "reason" => reason)
}
