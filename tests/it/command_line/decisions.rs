//! `decisions export` and `watch`, `seal`, `simulate`: commands on recorded and simulated
//! decisions.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use axum::{Router, http::Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::reads::{ids, owner, spawn, with_token};
use crate::support::{TestApp, asking, new_tenant};

async fn ask(app: &TestApp, api_key: &str, amount: f64, jurisdiction: &str) -> Value {
    app.client(api_key).evaluate(asking(amount, jurisdiction)).await.1
}

fn id(made: &Value) -> &str {
    made["decision_id"].as_str().unwrap_or_else(|| panic!("{made:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_auditor_lists_and_exports_by_spans() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let allowed = ask(&app, &api_key, 12.0, "DE").await;
    ask(&app, &api_key, 12.0, "US").await;
    let auditor = app.member_token("svc:tenant:acme", "auditor");
    let (code, table, told) =
        with_token(&app, &auditor, "decisions list --since 1h --decision allow").await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert_eq!(ids(&table), [id(&allowed)]);
    assert_eq!(ids(&with_token(&app, &auditor, "decisions list --until 1h").await.1), [""; 0]);
    // The words that lists show are accepted as filters. The owner need not name the tenant if it
    // is the only one.
    for (word, count) in [("allow", 1), ("held", 0), ("denied", 1)] {
        let (code, table, told) = owner(&app, &format!("decisions list --decision {word}")).await;
        assert_eq!((code, ids(&table).len()), (0, count), "{word}: {table}{told}");
    }
    let (code, _, told) = owner(&app, "decisions list --action payment.*").await;
    assert!(code == 2 && told.contains("must be the exact action"), "{told}");
    // An error names the caller, and the roles that may perform the operation.
    let (code, _, told) = with_token(&app, &auditor, "quarantine --action a.b --reason x -y").await;
    assert!(code == 1 && told.contains("you are auditor@example.org, auditor of "), "{told}");
    assert!(told.contains("it is open to a tenant's admin"), "{told}");
    let (code, _, told) = with_token(&app, &auditor, "decisions list --since yesterday").await;
    assert!(code == 2 && told.contains("such as 90s, 15m, 1h or 7d"), "{told}");

    let (code, lines, told) = with_token(&app, &auditor, "decisions export --since 1h").await;
    assert_eq!(code, 0, "{told}");
    assert!(told.starts_with("2 decisions, complete; continue later with --after "), "{told}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["decision"]["decision_id"], allowed["decision_id"]);
    assert!(lines[0]["record"].is_object() && lines[2]["end"] == true);
}

/// A running `decisions watch`, and the lines that it prints.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(app: &TestApp, token: &str, typed: &str) -> Self {
        Self::at(app.base_url(), token, typed)
    }

    fn at(url: &str, token: &str, typed: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_agent-authority"))
            .args(typed.split(' '))
            .args(["--url", url, "--token", token])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { child, lines }
    }

    /// Returns the next line that contains this text.
    #[track_caller]
    fn line(&self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            let line = line.unwrap_or_else(|_| panic!("no line with `{part}`"));
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_watched_to_its_end() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let held = ask(&app, &demo.api_key, 25_000.0, "DE").await;
    let auditor = app.member_token("svc:tenant:acme", "auditor");
    let mut of_held = Watching::start(&app, &auditor, &format!("decisions watch {}", id(&held)));
    let line = of_held.line("require_approval");
    assert_eq!(line, "require_approval  pending");
    let approval = held["approval_id"].as_str().unwrap();
    owner(&app, &format!("approvals decline {approval} --reason no -y")).await;
    of_held.line("declined");
    let watching = tokio::task::spawn_blocking(move || of_held.child.wait().unwrap().success());
    assert!(watching.await.unwrap());

    let allowed = ask(&app, &demo.api_key, 12.0, "DE").await;
    let mut of_allowed =
        Watching::start(&app, &auditor, &format!("decisions watch {}", id(&allowed)));
    of_allowed.line("in force");
    owner(&app, &format!("delegations revoke {} -y", demo.delegation_id)).await;
    let line = of_allowed.line("stopped");
    assert!(line.contains("delegation.revoked"), "{line}");
    assert!(of_allowed.child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_decisions_of_a_tenant_are_watched_as_they_come() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let auditor = app.member_token("svc:tenant:acme", "auditor");
    let all = Watching::start(&app, &auditor, "decisions watch");
    // Allowed decisions appear only once the stream is open.
    let seen = loop {
        let made = ask(&app, &api_key, 12.0, "DE").await;
        if let Ok(line) = all.lines.recv_timeout(Duration::from_millis(500)) {
            break (line, made);
        }
    };
    assert!(seen.0.contains("allowed") && seen.0.contains("svc:decision:"), "{}", seen.0);
    let denied = ask(&app, &api_key, 12.0, "US").await;
    let line = all.line("denied");
    assert!(line.contains(id(&denied)) && line.contains("jurisdiction_unsupported"), "{line}");
    // The owner need not name the tenant if it is the only one.
    let own = Watching::start(&app, app.owner_token(), "decisions watch");
    let seen = loop {
        let made = ask(&app, &api_key, 13.0, "US").await;
        if let Ok(line) = own.lines.recv_timeout(Duration::from_millis(500)) {
            break (line, made);
        }
    };
    assert!(seen.0.contains("denied"), "{}", seen.0);
}

/// An id implies the tenant. Without an id, and with several tenants, the error names the flags.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_named_only_if_several_can_be_meant() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let denied = ask(&app, &api_key, 12.0, "US").await;
    let tenant = new_tenant("Second", "second");
    assert_eq!(app.owner().create_tenant(tenant).await.0, 201);
    let filter = "--reason-code jurisdiction_unsupported";
    for typed in [
        format!("decisions list {filter} --subject svc:agent:acme:invoice-bot"),
        format!("decisions list {filter} --subject invoice-bot"),
        format!("decisions list {filter} --tenant acme"),
        format!("decisions list {filter} --since 1h"),
    ] {
        let (code, table, told) = owner(&app, &typed).await;
        assert_eq!((code, &*ids(&table)), (0, &[id(&denied)][..]), "{typed}: {told}");
    }
    for (typed, flags) in [
        (format!("decisions list {filter}"), &["--tenant", "--since"][..]),
        (format!("decisions export {filter}"), &["--tenant", "--since"]),
        ("decisions watch".to_owned(), &["--tenant"]),
        // A quarantine without a filter is of a whole tenant, which the user must name.
        ("quarantine --reason review --yes".to_owned(), &["tenant"]),
    ] {
        let (code, _, told) = owner(&app, &typed).await;
        assert!(code != 0 && flags.iter().all(|flag| told.contains(flag)), "{typed}: {told}");
    }
}

/// This server ends each stream after one event and records the requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_is_opened_again_where_it_was() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let answer = async move |uri: Uri| {
        let mut seen = seen.lock();
        seen.push(uri.query().unwrap_or_default().to_owned());
        let event = json!({"event_type": "svc.decision.denied", "occurred_at": "2026-11-21T00:48:45Z",
            "reason_code": format!("reason_{}", seen.len()), "data": {}});
        format!("\n{}\n", json!({"sequence": 40 + seen.len(), "event": event}))
    };
    tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await });
    // `e30` is base64url for `{}`. A token of this form belongs to a tenant user.
    let watching = Watching::at(&url, "e30.e30.x", "decisions watch --utc");
    assert_eq!(watching.line("reason_1"), "2026-11-21T00:48:45Z  denied            reason_1");
    watching.line("reason_2");
    let asked = asked.lock();
    assert!(!asked[0].contains("after=") && asked[1].contains("after=41&"), "{asked:?}");
    assert!(asked[1].contains("event_type=svc.decision.allowed&"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_decision_verifies_offline() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let made = ask(&app, &api_key, 12.0, "DE").await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (bundle, pack, jwks) = (file("bundle.json"), file("pack.json"), file("jwks.json"));
    let typed = format!("seal {} --bundle {bundle} --pack {pack}", id(&made));
    let (code, printed, told) = with_token(&app, &api_key, &typed).await;
    assert_eq!(code, 0, "{told}");
    assert!(printed.starts_with("svc:evidence:") && printed.contains("index 0"), "{printed}");
    assert!(told.contains(&format!("agent-authority verify {bundle} --jwks jwks.json")), "{told}");
    // The output also has the command that fetches the keys.
    let fetch = format!("curl -s {}/.well-known/jwks.json > jwks.json", app.base_url());
    assert!(told.contains(&fetch), "{told}");
    let (_, keys) = app.client("").text("GET", "/.well-known/jwks.json", None).await;
    std::fs::write(&jwks, keys).unwrap();
    let about = [
        format!("decision   {}", id(&made)),
        "outcome    allow".to_owned(),
        "who        svc:agent:acme:invoice-bot".to_owned(),
        "what       payment.execute".to_owned(),
    ];
    for file in [&bundle, &pack] {
        let args = ["verify", file, "--jwks", &jwks].map(str::to_owned).to_vec();
        let (code, printed, told) = spawn(args, Vec::new()).await;
        assert_eq!((code, printed.as_str()), (0, "valid\n"), "{told}");
        // The facts about the decision are printed to standard error.
        assert!(about.iter().all(|line| told.contains(line)), "{told}");
        assert!(!told.contains("was not checked"), "{told}");
    }
    let args = ["verify", &bundle].map(str::to_owned).to_vec();
    let (code, printed, told) = spawn(args, Vec::new()).await;
    assert!(code == 0 && printed.starts_with("consistent; issuer not pinned: "), "{printed}");
    let last = told.trim_end().lines().last().unwrap();
    assert!(last.starts_with("The issuer was not verified: "), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_shows_what_would_be_and_what_was() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let held = ask(&app, &api_key, 25_000.0, "DE").await;
    let typed = format!("simulate {} --amount 9000", id(&held));
    let (code, shown, told) = with_token(&app, &api_key, &typed).await;
    assert_eq!(code, 0, "{told}");
    for part in [
        "would be   allow_with_constraints: permission_granted: ",
        "was        require_approval: approval_threshold_breach: ",
        "stage      authority ",
        "not recorded",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // Simulates the decision with a policy that does not exist yet.
    let folder = tempfile::tempdir().unwrap();
    let cedar = folder.path().join("none.cedar");
    std::fs::write(&cedar, "forbid (principal, action, resource);").unwrap();
    let allowed = ask(&app, &api_key, 12.0, "DE").await;
    let typed = format!("simulate {} --policy {}", id(&allowed), cedar.display());
    let (code, shown, told) = with_token(&app, &api_key, &typed).await;
    assert!(code == 0 && shown.starts_with("would be   deny: "), "{shown}{told}");
    // Simulates a request that was never made.
    let request = folder.path().join("request.json");
    std::fs::write(&request, asking(12.0, "US").to_string()).unwrap();
    let typed = format!("simulate --request {}", request.display());
    let (code, shown, told) = with_token(&app, &api_key, &typed).await;
    assert!(code == 0 && shown.contains("deny: jurisdiction_unsupported"), "{shown}{told}");
    assert!(shown.contains("\nto change  "), "{shown}");
}
