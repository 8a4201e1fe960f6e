//! Every family of metrics, with its help text.
//!
//! Counters and levels without labels exist from the start, to make their first increase visible.
//! Families with labels exist from their first value.

use ::metrics::{counter, gauge};

use Kind::{Count, CountBy, Gauge, Histogram, Level};

#[derive(Clone, Copy)]
enum Kind {
    Count,
    /// A counter with labels.
    CountBy,
    Gauge,
    /// A gauge that is counted up and down.
    Level,
    Histogram,
}

/// Name, kind and help. Units are in the names. A test compares this list with the code's metrics.
#[rustfmt::skip] // a line for each
const FAMILIES: &[(&str, Kind, &str)] = &[
    ("authority_request_seconds", Histogram, "Time to the head of the response, by operation, transport (grpc or rest) and status: the HTTP status, or for gRPC the equivalent HTTP status."),
    ("authority_refusals_total", CountBy, "Calls that were answered with an error, by its code."),
    ("authority_credentials_refused_total", CountBy, "Refused credentials, by reason."),
    ("authority_decisions_total", CountBy, "Recorded decisions, by decision and reason."),
    ("authority_policy_observations_total", CountBy, "What decisions would have been with an observing policy version in force, by decision and would_be."),
    ("authority_decisions_waiting", Gauge, "Decisions that wait for a place to start."),
    ("authority_decisions_working", Gauge, "Decisions in progress: evaluated or recorded."),
    ("authority_decisions_oldest_waiting_seconds", Gauge, "Age of the oldest waiting decision; 0 if none waits."),
    ("authority_decisions_refused_total", CountBy, "Calls for decisions that were refused, by reason: queue_full or rate_limit."),
    ("authority_decision_stage_seconds", Histogram, "Time of a decision's stages: wait (for a place), gather, load, decide, sign, record."),
    ("authority_recorder_batch_size", Histogram, "Decisions in one transaction of the recorder."),
    ("authority_recorder_batch_age_seconds", Gauge, "How long the recorder has been writing its current batch; 0 if idle."),
    ("authority_ready", Gauge, "Whether the node is ready: 1 or 0. GET /health/ready lists the failed checks."),
    ("authority_recorder_ready", Gauge, "Whether decisions can be recorded: 1 or 0."),
    ("authority_database_connections_in_use", Gauge, "Connections of the pool that are handed out."),
    ("authority_database_connections_idle", Gauge, "Open connections of the pool that are not handed out."),
    ("authority_database_connections_max", Gauge, "The most connections of the pool."),
    ("authority_database_connections_waiting", Gauge, "Work that waits for a connection of the pool."),
    ("authority_database_errors_total", CountBy, "Errors of database calls, by class. A conflict or a missing row may be a client's mistake."),
    ("authority_approvals_pending", Gauge, "Approval requests that wait for people, up to 100,000."),
    ("authority_approvals_oldest_seconds", Gauge, "Age of the oldest pending approval request."),
    ("authority_seal_lag_decisions", Gauge, "Decisions of tenants with auto_seal that are not sealed yet, up to 10,000 for each tenant."),
    ("authority_seal_lag_seconds", Gauge, "Age of the oldest unsealed decision of tenants with auto_seal."),
    ("authority_log_epochs_total", Count, "Logs that began a new epoch, as after a restore of the database."),
    ("authority_worker_runs_total", CountBy, "Runs of background workers, by name and success."),
    ("authority_worker_age_seconds", Gauge, "Time since a worker's last success. The age grows while a worker has no work."),
    ("authority_worker_late", Gauge, "Whether a worker is late or being restarted: 1 or 0."),
    ("authority_graph_age_seconds", Gauge, "Age of the authority graph in memory. Beyond decide.max_staleness_seconds decisions are refused."),
    ("authority_clock_ahead_seconds", Gauge, "How far this node's clock is ahead of the database's; negative if behind."),
    ("authority_compute_refused_total", Count, "Simulations, replays and checks that were refused because all compute threads were busy."),
    ("authority_live_streams", Level, "Open streams of decisions and stop conditions."),
    ("authority_event_streams", Level, "Open streams of events."),
    ("authority_event_outbox_age_seconds", Gauge, "Age of the oldest event that has no number yet."),
    ("authority_webhook_attempts_total", CountBy, "Attempts of webhook deliveries, by class of the outcome."),
    ("authority_webhook_place_seconds", Histogram, "How long a request to a receiver held its place, by kind: delivery, test, audit_stream, push or message."),
    ("authority_webhook_due_deliveries", Gauge, "Due deliveries that are not held, by lane, up to 1,000 for each endpoint."),
    ("authority_webhook_held_deliveries", Gauge, "Deliveries that would be due but are held, by cause: breaker, retry_after, endpoint (paused or disabled) or tenant (not active)."),
    ("authority_webhook_oldest_due_seconds", Gauge, "Waiting time of the oldest due delivery that is not held and not limited by its endpoint or tenant."),
    ("authority_webhook_dead_deliveries", Gauge, "Failed deliveries without further attempts, which can be sent again."),
    ("authority_webhook_endpoints", Gauge, "Webhook endpoints, by state."),
    ("authority_webhook_cursor_lag_events", Gauge, "Events not yet delivered to the slowest active endpoint that is not held."),
    ("authority_webhook_filter_errors_total", Count, "Filters of endpoints that failed on an event."),
    ("authority_webhook_events_lost_total", Count, "Events that were deleted by age before they reached an endpoint."),
    ("authority_audit_stream_events_total", Count, "Events that audit streams delivered."),
    ("authority_audit_stream_failures_total", CountBy, "Failed deliveries of audit streams, by sink."),
    ("authority_audit_stream_events_lost_total", Count, "Events that were deleted by age before they reached an audit stream."),
    ("authority_audit_stream_lag_events", Gauge, "Events not yet delivered by the slowest audit stream with a working sink."),
    ("authority_audit_streams_failing", Gauge, "Audit streams with a failed last delivery."),
    ("authority_message_attempts_total", CountBy, "Attempts of messages about approvals, by kind of channel and class of the outcome."),
    ("authority_push_attempts_total", CountBy, "Attempts of Web Push, by class of the outcome."),
    ("authority_transport_connections_total", Count, "Accepted connections."),
    ("authority_transport_connections", Level, "Open connections."),
    ("authority_transport_connections_cut_total", Count, "Connections that were cut because all connections together held too many unread bytes."),
    ("authority_transport_connections_refused_total", Count, "Connections that were refused because there were too many."),
    ("authority_transport_handshakes_total", CountBy, "TLS handshakes, by result: completed, failed, plain (no TLS), late, silent (no request followed) or displaced (by newer ones)."),
    ("authority_tls_certificate_expires_seconds", Gauge, "When the certificate in use expires, in seconds since 1970."),
    ("authority_tls_files_refused", Gauge, "Whether changed files of TLS can't be used, and the earlier ones stay in use: 1 or 0."),
    ("authority_transport_answers_unread_total", Count, "Responses that were dropped because the peer did not read."),
    ("authority_transport_panics_total", Count, "Panics of request handlers."),
    ("authority_transport_streams_stalled_total", Count, "Streams that were cut off because the peer did not read."),
    ("authority_transport_unsent_bytes", Gauge, "Bytes of responses that peers have not read."),
];

/// Creates the families that exist from the start, in the installed recorder.
pub(super) fn begin() {
    for (name, kind, _) in FAMILIES.iter().copied() {
        match kind {
            Count => drop(counter!(name)),
            Level => drop(gauge!(name)),
            CountBy | Gauge | Histogram => {}
        }
    }
}

/// The help of a family.
pub(super) fn help(name: &str) -> Option<&'static str> {
    FAMILIES.iter().find(|(of, ..)| *of == name).map(|(.., help)| *help)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The code that precedes a family's name where the family is measured.
    const MEASURES: &[&str] = &[
        "counter!(",
        "gauge!(",
        "histogram!(",
        "counter(",
        "gauge(",
        "histogram(",
        "NAME: &str =",
    ];

    /// Collects the string literals of the code in a folder, each with the code before it. Tests
    /// are left out.
    fn literals(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                literals(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && !path.ends_with("families.rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let parts: Vec<_> = text.split('"').collect();
                let pairs = parts.windows(2).map(|pair| (pair[0].trim_end(), pair[1]));
                found.extend(pairs.map(|(before, text)| (before.to_owned(), text.to_owned())));
            }
        }
    }

    fn of_the_code() -> Vec<(String, String)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for folder in ["src", "crates"] {
            literals(&root.join(folder), &mut found);
        }
        found
    }

    #[test]
    fn what_is_described_is_measured() {
        let found: BTreeSet<_> = of_the_code().into_iter().map(|(_, text)| text).collect();
        let names = FAMILIES.iter().map(|(name, ..)| (*name).to_owned());
        let idle: Vec<_> = names.filter(|name| !found.contains(name)).collect();
        assert!(idle.is_empty(), "the code never measures {idle:?}");
    }

    /// Also covers metrics that are too rare to appear in the scrape of a test.
    #[test]
    fn what_is_measured_is_described() {
        let measured: BTreeSet<_> = of_the_code()
            .into_iter()
            .filter(|(before, _)| MEASURES.iter().any(|end| before.ends_with(end)))
            .map(|(_, text)| text)
            .filter(|text| text.starts_with("authority_"))
            .collect();
        assert!(measured.len() > FAMILIES.len() - 5, "{measured:?}");
        let described: BTreeSet<_> = FAMILIES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let bare: Vec<_> = measured.difference(&described).collect();
        assert!(bare.is_empty(), "no help for {bare:?}");
    }
}
