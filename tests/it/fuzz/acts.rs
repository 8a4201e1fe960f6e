//! The log of admin acts: each operation that changes a record logs a line with that record's id.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    mem,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use super::{
    ground::{Ground, bytes, fill, is_create},
    is_app, report,
    routes::{Route, pool, routes},
};
use crate::support::{TestApp, wire::Caller};

/// Services that write records about their operations instead of lines in this log.
const RECORDED: [&str; 3] = [
    "/authority.runtime.v1.",
    "/authority.evidence.v1.",
    "/authority.reality.v1.RealitySnapshotService/",
];
/// Operations that do not change one particular record. `src/app/acts.rs` gives the reasons.
const NAMELESS: [&str; 4] = [
    "/authority.programme.v1.PersonalDataService/WithdrawConsent",
    "/authority.programme.v1.PublicLeadService/CaptureLead",
    "/authority.registry.v1.PolicyService/ValidatePolicy",
    "/authority.states.v1.StateLibraryService/SeedStateLibrary",
];

/// The fields of one line of the log.
#[derive(Default)]
struct Members(BTreeMap<&'static str, String>);

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Collects the lines of admin acts.
#[derive(Clone, Default)]
struct Acts(Arc<Mutex<Vec<Members>>>);

impl Acts {
    fn take(&self) -> Vec<Members> {
        mem::take(&mut self.0.lock().unwrap())
    }
}

impl<S: Subscriber> Layer<S> for Acts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut members = Members::default();
        event.record(&mut members);
        if members.0.get("message").is_some_and(|message| message == "completed an admin operation")
        {
            self.0.lock().unwrap().push(members);
        }
    }
}

/// Returns the fault in the lines of a successful call, if any.
fn problem(route: &Route, path: &str, answer: &Value, lines: &[Members]) -> Option<String> {
    let is_recorded = RECORDED.iter().any(|service| route.rpc.starts_with(service));
    let [line] = lines else {
        let found = lines.iter().map(|line| &line.0).collect::<Vec<_>>();
        return (!is_recorded || !lines.is_empty()).then(|| format!("{}: {found:?}", route.rpc));
    };
    let member = |name| line.0.get(name).map_or("", String::as_str);
    let record = member("record.id");
    let is_named = !record.is_empty()
        && (path.contains(&record.replace(':', "%3A"))
            || path.contains(record)
            || answer.to_string().contains(record));
    let is_right = member("operation") == route.rpc
        && !member("actor.id").is_empty()
        && is_named != NAMELESS.contains(&route.rpc.as_str());
    (!is_right).then(|| format!("{path}: {:?}: {answer}", line.0))
}

/// Runs on one thread, because this thread's subscriber must receive every line.
#[tokio::test]
async fn each_act_has_a_line_that_names_its_record() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let routes: Vec<_> = routes(&pool()).into_iter().filter(|route| !is_app(route)).collect();
    let acts = Acts::default();
    let listening = tracing_subscriber::registry().with(acts.clone()).set_default();
    let (ground, _) = Ground::lay(&owner, &routes).await;
    let made = acts.take();
    let mut failures: Vec<String> = made
        .iter()
        .filter(|line| line.0.get("record.id").is_none_or(|record| !record.contains(':')))
        .map(|line| format!("made: {:?}", line.0))
        .collect();
    let mut seen: BTreeSet<String> =
        made.iter().filter_map(|line| line.0.get("operation").cloned()).collect();
    let mut changing: Vec<_> =
        routes.iter().filter(|route| route.verb != "GET" && !is_create(route)).collect();
    changing.sort_by_key(|route| route.verb == "DELETE");
    for route in changing {
        let path = fill(route, |name| ground.item(route, name));
        let body = Value::Object(ground.base(route));
        let body = (!route.body.is_empty()).then(|| bytes(&body));
        let (status, answer) = owner.rest(&route.verb, &path, body).await;
        let lines = acts.take();
        if (200..300).contains(&status) {
            failures.extend(problem(route, &path, &answer, &lines));
            seen.extend(lines.iter().filter_map(|line| line.0.get("operation").cloned()));
        } else {
            failures.extend(lines.first().map(|line| format!("refused: {:?}", line.0)));
        }
    }
    drop(listening);
    report(failures);
    assert!(seen.len() > 80, "{}: {seen:#?}", seen.len());
}
