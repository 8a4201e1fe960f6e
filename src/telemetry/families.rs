//! Every family of metrics, with its help.
//!
//! Counters and levels without labels exist from the start, so that their first increase is one; those with labels
//! begin where they are counted.

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

/// Name, kind and help. Units are in the names. A test holds them against what the code measures.
#[rustfmt::skip] // a line for each
const FAMILIES: &[(&str, Kind, &str)] = &[
    ("authority_request_seconds", Histogram, "Time to the head of the response, by operation, transport (grpc or rest) and status: the HTTP status, over gRPC the one that REST would have."),
    ("authority_refusals_total", CountBy, "Calls that were answered with an error, by its code."),
    ("authority_credentials_refused_total", CountBy, "Refused credentials, by reason."),
    ("authority_decisions_total", CountBy, "Recorded decisions, by decision and reason."),
    ("authority_decisions_waiting", Gauge, "Decisions that wait for a place, before anything is done for them."),
    ("authority_decisions_working", Gauge, "Decisions that have a place: they are made or recorded."),
    ("authority_decisions_oldest_waiting_seconds", Gauge, "How long the oldest of these calls has waited; 0 if none waits."),
    ("authority_decisions_refused_total", CountBy, "Calls for decisions that were refused, by reason: queue_full or rate_limit."),
    ("authority_decision_stage_seconds", Histogram, "Time of a decision's stages: wait (for a place), gather, load, decide, sign, record."),
    ("authority_recorder_batch_size", Histogram, "Decisions in one transaction of the recorder."),
    ("authority_recorder_batch_age_seconds", Gauge, "How long the recorder has been writing its present batch; 0 if it writes none."),
    ("authority_ready", Gauge, "Whether the node is ready: 1 or 0. GET /health/ready names what is not."),
    ("authority_recorder_ready", Gauge, "Whether decisions can be recorded: 1 or 0."),
    ("authority_database_connections_in_use", Gauge, "Connections of the pool that are handed out."),
    ("authority_database_connections_idle", Gauge, "Open connections of the pool that are not handed out."),
    ("authority_database_connections_max", Gauge, "The most connections of the pool."),
    ("authority_database_connections_waiting", Gauge, "Work that waits for a connection of the pool."),
    ("authority_database_errors_total", CountBy, "Errors of database calls, by class. A conflict or a missing row may be a client's mistake."),
    ("authority_approvals_pending", Gauge, "Approval requests that wait for people, up to 100,000."),
    ("authority_approvals_oldest_seconds", Gauge, "Age of the oldest approval request that waits."),
    ("authority_seal_lag_decisions", Gauge, "Decisions of tenants with auto_seal that are not sealed yet, up to 10,000 for each tenant."),
    ("authority_seal_lag_seconds", Gauge, "Age of the oldest of these decisions."),
    ("authority_log_epochs_total", Count, "Logs that began a new epoch, as after a restore of the database."),
    ("authority_worker_runs_total", CountBy, "Runs of background workers, by name and success."),
    ("authority_worker_age_seconds", Gauge, "Time since a worker's last success. Workers that wait for work have none for long."),
    ("authority_worker_late", Gauge, "Whether a worker is late or being restarted: 1 or 0."),
    ("authority_graph_age_seconds", Gauge, "Age of the authority graph in memory. Beyond decide.max_staleness_seconds nothing is decided."),
    ("authority_clock_ahead_seconds", Gauge, "How far this node's clock is ahead of the database's; negative if behind."),
    ("authority_compute_refused_total", Count, "Simulations, replays and checks that were refused since the threads for them were busy."),
    ("authority_live_streams", Level, "Open streams of decisions and stop conditions."),
    ("authority_event_streams", Level, "Open streams of events."),
    ("authority_event_outbox_age_seconds", Gauge, "Age of the oldest event that has no number yet."),
    ("authority_webhook_attempts_total", CountBy, "Attempts of webhook deliveries, by class of the outcome."),
    ("authority_webhook_place_seconds", Histogram, "How long a request to a receiver held its place, by kind: delivery, test, audit_stream or push."),
    ("authority_webhook_due_deliveries", Gauge, "Deliveries that are due and that nothing holds, by lane, up to 1,000 for each endpoint."),
    ("authority_webhook_held_deliveries", Gauge, "Deliveries that would be due, by what holds them: breaker, retry_after, endpoint (paused or disabled) or tenant (not active)."),
    ("authority_webhook_oldest_due_seconds", Gauge, "How long the oldest of the deliveries has waited that neither a hold nor a limit of the endpoint or its tenant keeps from being sent."),
    ("authority_webhook_dead_deliveries", Gauge, "Deliveries that were given up and can be sent again."),
    ("authority_webhook_endpoints", Gauge, "Webhook endpoints, by state."),
    ("authority_webhook_cursor_lag_events", Gauge, "Events that the last of the active endpoints that nothing holds has still to be given."),
    ("authority_webhook_filter_errors_total", Count, "Filters of endpoints that failed on an event."),
    ("authority_webhook_events_lost_total", Count, "Events that were deleted by age before an endpoint had them."),
    ("authority_audit_stream_events_total", Count, "Events that audit streams delivered."),
    ("authority_audit_stream_failures_total", CountBy, "Failed deliveries of audit streams, by sink."),
    ("authority_audit_stream_events_lost_total", Count, "Events that were deleted by age before an audit stream had them."),
    ("authority_audit_stream_lag_events", Gauge, "Events that the last audit stream whose sink takes them has still to deliver."),
    ("authority_audit_streams_failing", Gauge, "Audit streams whose last delivery failed."),
    ("authority_push_attempts_total", CountBy, "Attempts of Web Push, by class of the outcome."),
    ("transport_connections_total", Count, "Accepted connections."),
    ("transport_connections", Level, "Open connections."),
    ("transport_connections_cut_total", Count, "Connections that were cut since all together held too many unread bytes."),
    ("transport_connections_refused_total", Count, "Connections that were refused since there were too many."),
    ("transport_answers_unread_total", Count, "Responses that were dropped since the peer did not read."),
    ("transport_panics_total", Count, "Requests whose handler panicked."),
    ("transport_streams_stalled_total", Count, "Streams that were cut off since the peer read nothing."),
    ("transport_unsent_bytes", Gauge, "Bytes of responses that peers have not read."),
];

/// Begins the families that exist from the start, in the installed recorder.
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

    /// What precedes the name of a family that is measured.
    const MEASURES: &[&str] = &[
        "counter!(",
        "gauge!(",
        "histogram!(",
        "counter(",
        "gauge(",
        "histogram(",
        "NAME: &str =",
    ];

    /// The text literals of the code in a folder, each with the code before it, without what is only for tests.
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
        assert!(idle.is_empty(), "nothing measures {idle:?}");
    }

    /// Also what is counted so rarely that no scrape of a test has it.
    #[test]
    fn what_is_measured_is_described() {
        let measured: BTreeSet<_> = of_the_code()
            .into_iter()
            .filter(|(before, _)| MEASURES.iter().any(|end| before.ends_with(end)))
            .map(|(_, text)| text)
            .filter(|text| text.starts_with("authority_") || text.starts_with("transport_"))
            .collect();
        assert!(measured.len() > FAMILIES.len() - 5, "{measured:?}");
        let described: BTreeSet<_> = FAMILIES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let bare: Vec<_> = measured.difference(&described).collect();
        assert!(bare.is_empty(), "no help for {bare:?}");
    }
}
