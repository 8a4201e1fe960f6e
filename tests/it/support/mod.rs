//! The support code of the tests.

mod answers;
pub(crate) mod app;
mod callers;
pub(crate) mod coder;
pub(crate) mod database;
mod grpc_web;
pub(crate) mod issuer;
mod limits;
mod line;
mod operations;
pub(crate) mod provider;
mod redacted;
mod requests;
mod seeded;
pub(crate) mod shown;
pub(crate) mod smtp;
pub(crate) mod tls;
pub(crate) mod wire;

use authority_process::worker::{Supervisor, Worker};
use tokio::sync::Mutex;

pub(crate) use answers::{Answered, Plain};
pub(crate) use app::{Client, TestApp, Wishes, http};
pub(crate) use limits::Limits;
pub(crate) use line::Line;
pub(crate) use operations::{
    AUTHORIZE, BATCH_EVALUATE, CHECKPOINT, EVALUATE, EVALUATE_DECISION, MINT_REPLAY_PROOF,
    SEAL_DECISION, SIMULATE_DECISION, STREAM_EVENTS, STREAM_NOTIFICATIONS,
};
pub(crate) use redacted::{redacted, redacted_text};
pub(crate) use requests::{
    AGENT, Members, TENANT, asking, evaluate, new_agent, new_api_key, new_delegation, new_policy,
    new_principal, new_purpose, new_stop, new_tenant, new_tool, new_uses, nothing, only,
};

/// SQL for all numbered events: `tenant_id`, `sequence`, `body` (text) and `event` (jsonb). A row of
/// the table `events` has several.
pub(crate) const LOGGED: &str = "(SELECT tenant_id, last_sequence - size + place AS sequence, \
        body, body::jsonb AS event \
     FROM events CROSS JOIN unnest(string_to_array(convert_from(bodies, 'UTF8'), E'\\n')) \
         WITH ORDINALITY AS each (body, place)) AS logged";

/// The lock for tests that load the whole machine or measure its speed. They run one at a time.
pub(crate) static WHOLE_MACHINE: Mutex<()> = Mutex::const_new(());

/// Runs background work until the test's runtime ends.
pub(crate) fn run_workers(workers: impl IntoIterator<Item = Worker>) {
    Supervisor::default().run(workers);
}

/// If the failure is in an `async fn`, the output still shows the test's line.
#[tokio::test]
async fn a_failure_in_a_helper_leads_to_the_line_of_its_test() {
    async fn helper() -> Vec<String> {
        tokio::task::yield_now().await;
        callers::lines_of_tests(&std::backtrace::Backtrace::force_capture())
    }
    let (line, found) = (line!(), helper().await);
    let own = format!("{}:{line}:", file!());
    assert!(found.iter().any(|place| place.contains(&own)), "no {own} in {found:?}");
}
