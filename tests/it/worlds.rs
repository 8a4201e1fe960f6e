//! Worlds: hand-written records and requests, with the one verdict that every operation must
//! return.
//!
//! `tests/worlds/*.yaml` has examples of each rule of a decision. The comment at the top of
//! `authority.yaml` explains the format. Each world is a tenant of its own on one server, created
//! through the admin API. Each request is sent to evaluate, authorize and decisions/evaluate at
//! once, over REST and over gRPC.

mod operations;
mod records;

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{evidence::golden, support::TestApp};
use operations::{Answer, Operations, Outcome, Verdict};
use records::{Names, Records};

const FILES: [(&str, &str); 11] = [
    ("authority", include_str!("../worlds/authority.yaml")),
    ("chains", include_str!("../worlds/chains.yaml")),
    ("bounds", include_str!("../worlds/bounds.yaml")),
    ("access", include_str!("../worlds/access.yaml")),
    ("purpose", include_str!("../worlds/purpose.yaml")),
    ("policies", include_str!("../worlds/policies.yaml")),
    ("gate", include_str!("../worlds/gate.yaml")),
    ("tools", include_str!("../worlds/tools.yaml")),
    ("input", include_str!("../worlds/input.yaml")),
    ("places", include_str!("../worlds/places.yaml")),
    ("combined", include_str!("../worlds/combined.yaml")),
];

/// The number of worlds that run at a time: enough to keep the server busy, few enough for its
/// limits.
const AT_ONCE: usize = 12;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct World {
    world: String,
    #[serde(default)]
    given: Vec<Map<String, Value>>,
    asks: Vec<Map<String, Value>>,
}

/// One step of a world: it creates or changes a record, or makes a request with `ask`.
struct Step {
    act: String,
    body: Value,
    expected: Expected,
}

/// The expected result of a step.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The decision and its reason code, such as `deny permission_missing`.
    then: Option<String>,
    /// The status and code of an error, such as `400 invalid_request`. `any` means 400 or 409.
    refused: Option<String>,
    /// The field that the error must name.
    names: Option<String>,
    /// The name of the API key that makes the request. If absent, the owner makes it.
    #[serde(rename = "as")]
    asker: Option<String>,
    reasons: Option<Vec<String>>,
    obligations: Option<Vec<String>>,
    stop_conditions: Option<Vec<String>>,
    /// A name for the pending approval. Requests with the same name must have the same approval.
    approval: Option<String>,
}

const EXPECTATIONS: [&str; 8] =
    ["then", "refused", "names", "as", "reasons", "obligations", "stop_conditions", "approval"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_gives_the_verdict_of_the_world() {
    let app = TestApp::start().await;
    let records = Arc::new(Records::new(&app));
    let operations = Arc::new(Operations::new(&app));
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    let mut titles = BTreeMap::new();
    for (place, (title, world)) in worlds().into_iter().enumerate() {
        let (records, operations, turns) = (records.clone(), operations.clone(), turns.clone());
        let task = running.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            live(place, world, &records, &operations).await
        });
        titles.insert(task.id(), title);
    }
    let mut failures = Vec::new();
    while let Some(ended) = running.join_next_with_id().await {
        let (id, found) = match ended {
            Ok((id, found)) => (id, found),
            Err(error) => (error.id(), vec![format!("panicked: {error}")]),
        };
        if !found.is_empty() {
            failures.push(format!("{}\n    {}", titles[&id], found.join("\n    ")));
        }
    }
    failures.sort();
    let all = titles.len();
    assert!(failures.is_empty(), "{} of {all} worlds:\n{}", failures.len(), failures.join("\n"));
    golden::every_kind_replays(&app).await;
}

#[test]
fn worlds_have_names_of_their_own_and_say_enough() {
    let worlds = worlds();
    assert!(worlds.len() >= 60, "{}", worlds.len());
    let names: std::collections::BTreeSet<_> = worlds.iter().map(|(title, _)| title).collect();
    assert_eq!(names.len(), worlds.len(), "two worlds have one name");
    for (title, world) in worlds {
        for line in world.given.into_iter().chain(world.asks) {
            let step = read(line);
            let asks = step.act == "ask";
            let says = step.expected.then.is_some() || step.expected.refused.is_some();
            assert!(!asks || says, "{title}: an ask without an expectation");
        }
    }
}

/// Returns every world with its title, which consists of its file and its name.
fn worlds() -> Vec<(String, World)> {
    let mut all = Vec::new();
    for (file, text) in FILES {
        let mut yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(text).expect(file);
        yaml.apply_merge().expect(file);
        let worlds: Vec<World> = serde_yaml_ng::from_value(yaml).expect(file);
        all.extend(worlds.into_iter().map(|world| (format!("{file}: {}", world.world), world)));
    }
    all
}

fn read(mut line: Map<String, Value>) -> Step {
    let expected: Map<String, Value> =
        EXPECTATIONS.iter().filter_map(|key| line.remove_entry(*key)).collect();
    let expected = serde_json::from_value(Value::Object(expected)).expect("expectation");
    assert_eq!(line.len(), 1, "one act a step: {line:?}");
    let (act, body) = line.into_iter().next().expect("an act");
    let body = if body.is_null() { Value::Object(Map::new()) } else { body };
    Step { act, body, expected }
}

/// Runs one world and returns where it differs from its expectations.
async fn live(
    place: usize,
    world: World,
    records: &Records,
    operations: &Operations,
) -> Vec<String> {
    let mut names = match records.settle(place).await {
        Ok(names) => names,
        Err(problem) => return vec![problem],
    };
    let mut found = Vec::new();
    let mut approvals = BTreeMap::new();
    for line in world.given.into_iter().chain(world.asks) {
        let step = read(line);
        if step.act == "ask" {
            ask(&step, operations, &names, &mut approvals, &mut found).await;
            continue;
        }
        let what = format!("{} {}", step.act, step.body);
        let (status, answer) = records.act(&step.act, step.body, &mut names).await;
        let wanted = step.expected.refused.as_deref();
        let problem = match wanted {
            None if status < 300 => continue,
            None => Some(format!("status {status}")),
            Some(wanted) => refusal(wanted, step.expected.names.as_deref(), status, &answer),
        };
        if let Some(problem) = problem {
            found.push(format!("{what}: {problem}: {answer}"));
            if wanted.is_none() {
                break; // later steps would fail because of it
            }
        }
    }
    found
}

/// Returns the fault in an error, or `None`.
fn refusal(wanted: &str, member: Option<&str>, status: u16, answer: &Value) -> Option<String> {
    let (number, code) = wanted.split_once(' ').unwrap_or((wanted, ""));
    let fits = match number {
        "any" => matches!(status, 400 | 409),
        _ => status.to_string() == number,
    };
    if !fits || (!code.is_empty() && answer["error"] != code) {
        return Some(format!("status {status}, not {wanted}"));
    }
    let details = answer["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = |member| details.iter().any(|detail| names_member(&detail["field"], member));
    match member {
        Some(member) if !named(member) => Some(format!("details do not name `{member}`")),
        _ => None,
    }
}

/// Returns whether the violation's field is this field or is within it.
fn names_member(field: &Value, member: &str) -> bool {
    let field = field.as_str().unwrap_or_default();
    field == member || field.strip_prefix(member).is_some_and(|rest| rest.starts_with(['.', '[']))
}

async fn ask(
    step: &Step,
    operations: &Operations,
    names: &Names,
    approvals: &mut BTreeMap<String, String>,
    found: &mut Vec<String>,
) {
    let body = normal_form(names, step.body.clone());
    let asker = step.expected.asker.as_deref().map(|name| names.secret(name));
    let answers = operations.ask(&body, asker).await;
    // Operations with the same difference are listed together, because then the decision itself is
    // wrong.
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for answer in &answers {
        for problem in faults(&step.expected, answer) {
            alike.entry(problem).or_default().push(answer.operation);
        }
    }
    let mut problems = String::new();
    for (problem, at) in alike {
        let at = if at.len() == answers.len() { "every operation".into() } else { at.join(", ") };
        let _ = write!(problems, "\n        {at}: {problem}");
    }
    for problem in disagreements(&answers) {
        let _ = write!(problems, "\n        {problem}");
    }
    for problem in waiting(&step.expected, &answers, approvals) {
        let _ = write!(problems, "\n        {problem}");
    }
    if !problems.is_empty() {
        found.push(format!("ask {}{problems}", Value::Object(body)));
    }
}

/// Completes the request: adds the subject and purpose if they are absent, and removes null values.
#[track_caller]
fn normal_form(names: &Names, request: Value) -> Map<String, Value> {
    let Value::Object(given) = names.fill(request) else { panic!("a request is an object") };
    let open = json!({"subject": "$bot", "purpose": "work"});
    let Value::Object(mut whole) = names.fill(open) else { return given };
    whole.extend(given);
    whole.retain(|_, value| !value.is_null());
    whole
}

/// Returns how one operation's response differs from the expectation.
fn faults(expected: &Expected, answer: &Answer) -> Vec<String> {
    match (&answer.outcome, &expected.refused) {
        (Outcome::Refused { status, body }, Some(wanted)) => {
            let body_member = expected.names.as_deref();
            let problem = refusal(wanted, body_member, *status, body);
            problem.into_iter().map(|problem| format!("{problem}: {body}")).collect()
        }
        (Outcome::Refused { status, body }, None) => vec![format!("refused {status}: {body}")],
        (Outcome::Decided(verdict), Some(wanted)) => {
            vec![format!("decided {}, not refused {wanted}", verdict.summary())]
        }
        (Outcome::Decided(verdict), None) => {
            let wanted = expected.then.as_deref().unwrap_or_default();
            judge(wanted, expected, verdict, answer.folds)
        }
    }
}

fn judge(wanted: &str, expected: &Expected, verdict: &Verdict, folds: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &dyn Fn() -> String| {
        if !holds {
            problems.push(problem());
        }
    };
    let (decision, code) = wanted.split_once(' ').unwrap_or((wanted, ""));
    let permits = decision == "allow";
    let code = if permits { "permission_granted" } else { code };
    let word = if permits && !folds { "allow_with_constraints" } else { decision };
    let right = verdict.decision == word && (code.is_empty() || verdict.reason_code == code);
    must(right, &|| format!("{}, not {word} {code}", verdict.summary()));
    let lists = [
        ("reasons", &expected.reasons, verdict.reasons.as_ref()),
        ("obligations", &expected.obligations, Some(&verdict.obligations)),
        ("stop_conditions", &expected.stop_conditions, Some(&verdict.stop_conditions)),
    ];
    for (name, wanted, given) in lists {
        if let (Some(wanted), Some(given)) = (wanted, given) {
            let in_order = name == "reasons";
            let same = if in_order { wanted == given } else { sorted(wanted) == sorted(given) };
            must(same, &|| format!("{name} {given:?}, not {wanted:?}"));
        }
    }
    if right {
        let holds = |list: &[String], word: &str| list.iter().any(|item| item == word);
        let live = holds(&verdict.obligations, "audit.emit")
            && holds(&verdict.stop_conditions, "actor.stop_signal");
        must(live || !permits, &|| "an allow without audit.emit and actor.stop_signal".to_owned());
        must(verdict.valid_until.is_some() == permits, &|| {
            format!("valid_until {:?}", verdict.valid_until)
        });
        must(verdict.approval_id.is_some() == (decision == "require_approval"), &|| {
            format!("approval_id {:?}", verdict.approval_id)
        });
        let first = verdict.reasons.as_ref().and_then(|reasons| reasons.first());
        must(verdict.reasons.is_none() || first == Some(&verdict.reason_code), &|| {
            format!("reasons {:?} do not begin with {}", verdict.reasons, verdict.reason_code)
        });
        let hex = verdict.decision_id.strip_prefix("svc:decision:").unwrap_or_default();
        let shaped = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        must(shaped, &|| format!("decision_id {}", verdict.decision_id));
    }
    problems
}

fn sorted(list: &[String]) -> Vec<&String> {
    let mut list: Vec<_> = list.iter().collect();
    list.sort();
    list
}

/// Returns differences between the operations' responses in values that must be equal.
fn disagreements(answers: &[Answer]) -> Vec<String> {
    let verdicts: Vec<_> = answers.iter().filter_map(Answer::verdict).collect();
    let mut problems = Vec::new();
    for pair in verdicts.windows(2) {
        let ((one_door, one), (other_door, other)) = (pair[0], pair[1]);
        let lists = |v: &Verdict| (v.obligations.clone(), v.stop_conditions.clone());
        if lists(one) != lists(other) || one.approval_id != other.approval_id {
            problems.push(format!("{one_door} {one:?}\n        {other_door} {other:?}"));
        }
        if one.revision != other.revision {
            let (one, other) = (one.revision, other.revision);
            problems.push(format!("{one_door} at revision {one}, {other_door} at {other}"));
        }
    }
    let mut ids: Vec<_> = verdicts.iter().map(|(_, verdict)| &verdict.decision_id).collect();
    ids.sort();
    ids.dedup();
    if ids.len() != verdicts.len() {
        problems.push("two calls have one decision_id".to_owned());
    }
    problems
}

/// Returns whether the pending approvals are the same or different ones, as the world expects.
fn waiting(
    expected: &Expected,
    answers: &[Answer],
    approvals: &mut BTreeMap<String, String>,
) -> Vec<String> {
    let Some(name) = &expected.approval else { return Vec::new() };
    let mut problems = Vec::new();
    for (operation, verdict) in answers.iter().filter_map(Answer::verdict) {
        let Some(id) = &verdict.approval_id else { continue };
        let known = approvals.entry(name.clone()).or_insert_with(|| id.clone());
        if known != id {
            problems.push(format!("{operation}: approval {id}, not {known} as before"));
        }
        if approvals.iter().any(|(other, known)| other != name && known == id) {
            problems.push(format!("{operation}: approval {id} is another request's"));
        }
    }
    problems
}
