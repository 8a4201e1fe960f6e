//! Tries each fault of the service and of the server at each step, many times: no call may reach the
//! server. The file that a call would create must be absent.

use std::{
    collections::BTreeMap,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::scripted::{Answer, Fake, Reply, Running, Script, answer, good};
use crate::mcp::service::Patience;

/// How often each fault is tried.
const REPEAT: usize = 100;

fn always(reply: Reply) -> Answer {
    answer(move |_, _| reply.clone())
}

/// A permission that is changed before it is sent.
fn changed(change: fn(&mut Value)) -> Answer {
    answer(move |fake, question| {
        let mut body = fake.signing.allow(question);
        change(&mut body);
        Reply::Json(200, body)
    })
}

/// A permission whose record is changed before it is signed.
fn signed(change: fn(&mut Value)) -> Answer {
    answer(move |fake, question| Reply::Json(200, fake.signing.allow_with(question, change)))
}

fn refusal(status: u16, code: &str) -> Reply {
    Reply::Json(status, json!({"ok": false, "error": code, "message": "no", "request_id": "7f"}))
}

/// The faults of any answer.
fn common() -> Vec<(&'static str, Reply)> {
    vec![
        ("503", refusal(503, "unavailable")),
        ("429", refusal(429, "rate_limited")),
        ("500", refusal(500, "internal")),
        ("401", refusal(401, "unauthorized")),
        ("403", refusal(403, "forbidden")),
        ("404", refusal(404, "not_found")),
        ("page of a proxy", Reply::Text(200, "<html>it works</html>".to_owned())),
        ("502 page", Reply::Text(502, "<html>bad gateway</html>".to_owned())),
        ("empty", Reply::Text(200, String::new())),
        ("null", Reply::Text(200, "null".to_owned())),
        ("half", Reply::Text(200, "{\"decision\": \"allow\"".to_owned())),
        ("cut", Reply::Cut),
        ("silence", Reply::Silence),
    ]
}

fn asking() -> Vec<(&'static str, Answer)> {
    let mut faults: Vec<(&'static str, Answer)> =
        common().into_iter().map(|(name, reply)| (name, always(reply))).collect();
    let older: Answer = {
        let kept = std::sync::Mutex::new(None);
        answer(move |fake, question| {
            let mut kept = kept.lock().unwrap();
            // The first question of this test is answered with a permission of another call.
            let other = || {
                let mut other = question.clone();
                other["client_nonce"] = json!("00000000000000000000000000000000");
                fake.signing.allow(&other)
            };
            Reply::Json(200, kept.get_or_insert_with(other).clone())
        })
    };
    let own: Vec<(&'static str, Answer)> = vec![
        ("409 decision_stopped", always(refusal(409, "decision_stopped"))),
        ("409 in progress", always(refusal(409, "idempotency_in_progress"))),
        ("422", always(refusal(422, "unprocessable"))),
        (
            "deny",
            always(Reply::Json(
                200,
                json!({"decision": "deny", "reason_code": "x", "decision_id": "d"}),
            )),
        ),
        (
            "held",
            always(Reply::Json(
                200,
                json!({"decision": "require_approval", "reason_code": "x",
            "decision_id": "d", "approval_id": "a"}),
            )),
        ),
        ("unknown decision", changed(|body| body["decision"] = json!("permit"))),
        ("no record", changed(|body| body["record"] = json!(null))),
        ("no signature", changed(|body| body["evidence_pack"]["signature"] = json!(null))),
        (
            "another id",
            changed(|body| body["decision_id"] = json!(format!("svc:decision:{}", "0".repeat(64)))),
        ),
        (
            "another digest",
            changed(|body| {
                body["evidence_pack"]["record_digest"] =
                    json!(format!("sha256:{}", "0".repeat(64)));
            }),
        ),
        (
            "one byte of the record",
            changed(|body| {
                let record = body["record"].as_str().unwrap().replace("2026", "2027");
                body["record"] = json!(record);
            }),
        ),
        ("another salt", changed(|body| body["context_salt"] = json!("AAAAAAAAAAAAAAAAAAAAAA=="))),
        ("over", changed(|body| body["valid_until"] = body["evaluated_at"].clone())),
        ("unknown obligation", changed(|body| body["obligations"] = json!(["mask.pii"]))),
        ("no time", changed(|body| body["valid_until"] = json!(null))),
        ("an older permission", older),
        ("a repetition", answer(|fake, question| Reply::Replayed(fake.signing.allow(question)))),
        (
            "another key",
            answer(|_, question| {
                Reply::Json(200, crate::mcp::tests::signing::Signing::new().allow(question))
            }),
        ),
    ];
    faults.extend(own);
    faults.extend(records());
    faults
}

/// Signed records that are not the record of the question.
fn records() -> Vec<(&'static str, Answer)> {
    vec![
        (
            "another nonce",
            signed(|record| record["request"]["client_nonce"] = json!("0".repeat(32))),
        ),
        ("another action", signed(|record| record["request"]["action"] = json!("mcp.files.read"))),
        (
            "another agent",
            signed(|record| record["request"]["subject"] = json!("svc:agent:acme:other")),
        ),
        ("another tool", signed(|record| record["request"]["tool_id"] = json!("other"))),
        ("another tenant", signed(|record| record["tenant_id"] = json!("svc:tenant:other"))),
        (
            "another context",
            signed(|record| {
                record["request"]["context_digest"] = json!(format!("sha256:{}", "0".repeat(64)));
            }),
        ),
        ("a signed denial", signed(|record| record["verdict"]["decision"] = json!("deny"))),
    ]
}

fn watching() -> Vec<(&'static str, Answer)> {
    let lines = |lines: Vec<Value>, stays| always(Reply::Lines(lines, stays));
    let mut faults: Vec<(&'static str, Answer)> =
        common().into_iter().map(|(name, reply)| (name, always(reply))).collect();
    faults.extend([
        ("409", always(refusal(409, "transition_not_allowed"))),
        ("ends at once", lines(vec![], false)),
        ("no heartbeat", lines(vec![], true)),
        (
            "stopped",
            lines(vec![json!({"kind": "stopped", "stop_condition": "actor.stop_signal"})], false),
        ),
        ("unknown event", lines(vec![json!({"kind": "news"})], true)),
        (
            "an error in the stream",
            lines(vec![json!({"ok": false, "error": "x", "message": "m"})], false),
        ),
    ]);
    faults
}

fn recorded() -> Vec<(&'static str, Answer)> {
    let with = |change: fn(&mut Value)| -> Answer {
        let mut record = crate::mcp::tests::signing::record(&["touch"]);
        change(&mut record);
        always(Reply::Json(200, record))
    };
    let mut faults: Vec<(&'static str, Answer)> =
        common().into_iter().map(|(name, reply)| (name, always(reply))).collect();
    faults.extend([
        ("revoked", with(|record| record["state"] = json!("revoked"))),
        ("quarantined", with(|record| record["tools"][0]["mcp"]["pin"] = json!("quarantined"))),
        ("drifted", with(|record| record["tools"][0]["mcp"]["pin"] = json!("drifted"))),
        ("unknown pin", with(|record| record["tools"][0]["mcp"]["pin"] = json!("fine"))),
        ("no digest", with(|record| record["tools"][0]["mcp"]["definition_digest"] = json!(null))),
        (
            "another digest",
            with(|record| {
                record["tools"][0]["mcp"]["definition_digest"] =
                    json!(format!("sha256:{}", "0".repeat(64)));
            }),
        ),
        ("no action", with(|record| record["tools"][0]["actions"] = json!([]))),
        (
            "a pattern of actions",
            with(|record| record["tools"][0]["actions"] = json!(["mcp.files.*"])),
        ),
        ("no tools", with(|record| record["tools"] = json!([]))),
    ]);
    faults
}

/// Makes many calls under a fault. None may reach the server, and each has an answer. Returns how
/// often each answer was given.
async fn nothing_runs(
    operation: &'static str,
    fault: Answer,
    script: Script,
) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    let fake = Fake::new();
    fake.set(operation, fault);
    let mut running = Running::start(fake).await;
    *running.script.lock().unwrap() = script;
    for _ in 0..REPEAT {
        let (answer, file) = running.call().await;
        let refused = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(refused, "{operation}: {answer}");
        assert!(!file.exists(), "{operation}: {answer}");
        let text = &answer["result"]["content"][0]["text"];
        let text = answer["error"]["message"].as_str().or(text.as_str()).unwrap();
        *told.entry(text.to_owned()).or_default() += 1;
    }
    let (_, folder) = running.end().await;
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    told
}

async fn table(operation: &'static str, faults: Vec<(&'static str, Answer)>) {
    let mut running = JoinSet::new();
    for (name, fault) in faults {
        running.spawn(async move { (name, nothing_runs(operation, fault, Script::Good).await) });
    }
    let mut told = BTreeMap::new();
    while let Some(done) = running.join_next().await {
        let (name, texts) = done.unwrap();
        told.insert(name, texts);
    }
    for (name, told) in told {
        figure(&format!("{operation}: {name}"), &told);
    }
}

/// Prints a line of the table of `script/faults`.
fn figure(fault: &str, told: &BTreeMap<String, usize>) {
    let counts = told.iter().map(|(text, count)| format!("{count} {text}"));
    let counts = counts.collect::<Vec<_>>().join("; ");
    println!("figure | mcp wrap, {fault}: {counts} | 0 reached the server |");
}

#[tokio::test]
async fn no_call_without_a_good_decision() {
    table("ask", asking()).await;
}

#[tokio::test]
async fn no_call_without_a_watch() {
    table("watch", watching()).await;
}

#[tokio::test]
async fn no_call_without_a_record() {
    table("record", recorded()).await;
}

#[tokio::test]
async fn no_call_without_its_resource() {
    let mut faults: Vec<_> =
        common().into_iter().map(|(name, reply)| (name, always(reply))).collect();
    for (name, body) in [
        ("no id", json!({})),
        ("null id", json!({"resource_id": null})),
        ("empty id", json!({"resource_id": ""})),
        ("a list", json!({"resource_id": ["svc:ent:acme:resource:1"]})),
    ] {
        faults.push((name, always(Reply::Json(200, body))));
    }
    table("resource", faults).await;
}

#[tokio::test]
async fn no_call_without_keys() {
    let empty = ("no keys", always(Reply::Json(200, json!({"keys": []}))));
    let faults = common().into_iter().map(|(name, reply)| (name, always(reply))).chain([empty]);
    table("keys", faults.collect()).await;
}

#[tokio::test]
async fn no_call_of_a_tool_whose_definition_is_not_known() {
    let scripts = [
        Script::Changed,
        Script::Doubled,
        Script::Unlisted,
        Script::ListError,
        Script::ListRubbish,
    ];
    for script in scripts {
        let told = nothing_runs("record", good("record"), script).await;
        figure(&format!("the server's list: {script:?}"), &told);
    }
}

#[tokio::test]
async fn a_good_call_runs_once_and_is_reported() {
    let mut running = Running::patient(Fake::new()).await;
    let mut times = Vec::new();
    for _ in 0..REPEAT {
        let began = Instant::now();
        let (answer, file) = running.call().await;
        times.push(began.elapsed());
        assert_eq!(answer["result"], json!({"content": []}));
        assert_eq!(fs::read_to_string(file).unwrap(), "called\n");
    }
    times.sort_unstable();
    // Four requests to the service, the server's list and the call itself.
    println!("a whole call: p50 {:?}, p90 {:?}", times[REPEAT / 2], times[REPEAT * 9 / 10]);
    let (fake, _folder) = running.end().await;
    let reports = fake.reports.lock().unwrap();
    let executed = reports.iter().filter(|report| report["outcome"] == "executed").count();
    assert_eq!((reports.len(), executed), (REPEAT, REPEAT));
}

#[tokio::test]
async fn a_revoked_key_is_not_trusted_after_its_age() {
    let revoked = answer(|fake, _| {
        let mut jwks = fake.signing.jwks();
        jwks["keys"][0]["revoked_at"] = json!("2026-11-30T00:00:00Z");
        Reply::Json(200, jwks)
    });
    let young = Duration::from_secs(600);
    for (keys, fault, runs) in [
        (Duration::ZERO, revoked.clone(), false),
        (Duration::ZERO, always(refusal(503, "unavailable")), false),
        (young, revoked, true),
    ] {
        let patience = Patience { keys, ..Patience::default() };
        let mut running = Running::start_with(Fake::new(), None, patience).await;
        let (answer, file) = running.call().await;
        assert!(file.exists(), "{answer}");
        running.fake.set("keys", fault);
        let (answer, file) = running.call().await;
        assert_eq!(file.exists(), runs, "{answer}");
    }
}

/// The first attempts fail after the service has decided. The last one repeats the same answer.
#[tokio::test]
async fn an_answer_that_was_lost_is_repeated_and_the_call_runs_once() {
    let fake = Fake::new();
    fake.set(
        "ask",
        answer(|fake, question| {
            let asked = fake.questions.lock().unwrap();
            let key = &asked.last().unwrap().1;
            match asked.iter().filter(|(_, other)| other == key).count() {
                1 => refusal(503, "unavailable"),
                _ => Reply::Replayed(fake.signing.allow(question)),
            }
        }),
    );
    let mut running = Running::patient(fake).await;
    for _ in 0..REPEAT {
        let (answer, file) = running.call().await;
        assert_eq!(answer["result"], json!({"content": []}));
        assert_eq!(fs::read_to_string(file).unwrap(), "called\n");
    }
    println!("503 after the decision: {REPEAT} calls ran, each once");
}

#[tokio::test]
async fn faults_of_reports_do_not_change_results() {
    for (name, reply) in common() {
        let fake = Fake::new();
        fake.set("report", always(reply));
        let mut running = Running::start(fake).await;
        let (answer, file) = running.call().await;
        assert_eq!(answer["result"], json!({"content": []}), "{name}");
        assert_eq!(fs::read_to_string(file).unwrap(), "called\n");
    }
}

#[tokio::test]
async fn a_lost_watch_stops_the_call() {
    let fake = Fake::new();
    let once = std::sync::atomic::AtomicBool::new(true);
    fake.set(
        "watch",
        answer(move |_, _| {
            if once.swap(false, std::sync::atomic::Ordering::SeqCst) {
                Reply::Lines(vec![json!({"kind": "heartbeat"})], false)
            } else {
                refusal(503, "unavailable")
            }
        }),
    );
    let mut running = Running::start(fake).await;
    *running.script.lock().unwrap() = Script::CallSilence;
    let (answer, _) = running.call().await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("watch.lost"), "{text}");
    let (fake, _folder) = running.end().await;
    assert_eq!(fake.reports.lock().unwrap()[0]["outcome"], "abandoned");
}

#[tokio::test]
async fn a_crash_between_call_and_report_is_reported_by_the_next_process() {
    let journal = tempfile::tempdir().unwrap();
    let fake = Fake::new();
    let path = Some(journal.path().to_owned());
    let patience = Patience::default();
    let mut running = Running::start_with(Arc::clone(&fake), path.clone(), patience).await;
    *running.script.lock().unwrap() = Script::CallSilence;
    let (_, file) = running.begin().await;
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.relay.abort();
    let _ = (&mut running.relay).await;
    assert!(fake.reports.lock().unwrap().is_empty());
    let next = Running::start_with(Arc::clone(&fake), path, patience).await;
    while fake.reports.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    next.end().await;
    let reports = fake.reports.lock().unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0]["outcome"], "failed");
    assert!(reports[0]["detail"].as_str().unwrap().contains("outcome unknown"));
}
