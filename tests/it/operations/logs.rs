//! The content of the log at its default level.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use crate::{
    command_line::run,
    faults::process::{Folder, Service, allowed},
    support::{Client, Plain, only},
};

const SECRET: &str = "marker-77ab10";

/// Returns the log lines that have this message.
fn lines(log: &str, message: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["message"].as_str().unwrap().starts_with(message)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_has_the_start_refused_credentials_and_admin_acts() {
    let folder = Folder::new("info");
    let mut service = Service::start(&folder);
    let base = service.client.base.clone();
    let forger = Client::new(&base, &format!("svc_{SECRET}"));
    for _ in 0..5 {
        assert_eq!(forger.evaluate(allowed()).await.0, 401);
    }
    let data = folder.path().display().to_string();
    let (code, token, told) = run(&["token", "owner", "--data-dir", &data], &[]);
    assert_eq!(code, 0, "{told}");
    let owner = Client::new(&base, token.trim());
    let (change, id) = (only("notes", SECRET), "mine-\"7\"");
    let (status, changed) =
        owner.call("PATCH", "/api/v1/tenants/acme", Some(change), &[("x-request-id", id)]).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(owner.get_tenant("acme").await.0, 200);
    assert_eq!(owner.update_tenant("acme", only("wrong", 1)).await.0, 400);
    service.stop();

    let log = service.logged();
    assert!(!log.contains(SECRET), "{log}");
    let started = lines(&log, "starting");
    let [start] = &started[..] else { panic!("{log}") };
    for (member, part) in [
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("deployment.environment.name", "development"),
        ("public_url", base.as_str()),
        ("listen", base.trim_start_matches("http://")),
        ("ops", "127.0.0.1:"),
        ("database", "/authority as "),
        ("issuer", "http"),
    ] {
        assert!(
            start[member].as_str().is_some_and(|text| text.contains(part)),
            "{member}: {start}"
        );
    }

    // Five refusals in quick succession cause one or two lines. A line counts the refusals before
    // it.
    let refused = lines(&log, "refused a credential");
    assert!((1..=3).contains(&refused.len()), "lines of refusals: {refused:#?}");
    assert_eq!(refused[0]["level"], "WARN");
    assert_eq!(refused[0]["reason"], "malformed_key");
    assert_eq!(refused[0]["client.address"], "127.0.0.1");
    assert_eq!(refused[0]["operation"], "/authority.runtime.v1.RuntimeService/Evaluate");

    // Only a successful change by a caller is logged: not the service's own work at its start, a
    // refused call or a read.
    let acts = lines(&log, "completed an admin operation");
    let [act] = &acts[..] else { panic!("lines of acts: {acts:#?}") };
    assert_eq!(act["operation"], "/authority.registry.v1.TenantService/UpdateTenant");
    assert_eq!(act["record.id"], "svc:tenant:acme");
    assert_eq!((&act["request.id"], start.get("request.id")), (&json!(id), None));
    let ids: BTreeSet<_> =
        refused.iter().map(|line| line["request.id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), refused.len(), "each request has an id of its own: {refused:#?}");
    assert!(act["actor.id"].as_str().is_some_and(|actor| actor.contains("operator")), "{act}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_counts_refused_decisions_and_names_who_had_most() {
    let folder = Folder::new("refused");
    let mut service = Service::start(&folder);
    let limit = only("decisions_per_second", 1);
    let (status, answer) = service.owner(&folder).update_tenant("acme", limit).await;
    assert_eq!(status, 200, "{answer}");
    let asked = (0..20).map(|_| service.client.evaluate(allowed()));
    let answers = futures_util::future::join_all(asked).await;
    let refused = answers.iter().filter(|(status, _)| *status == 429).count();
    assert!(refused > 10, "{answers:?}");
    // The second line, which counts the later refusals, is due one second after the first.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    service.stop();
    let log = service.logged();
    let told = lines(&log, "refused calls for decisions");
    assert!((1..=3).contains(&told.len()), "lines of refusals: {told:#?}");
    let sum = |member: &str| told.iter().map(|line| line[member].as_u64().unwrap()).sum::<u64>();
    for member in ["refused", "rate_limit", "tenant.refused"] {
        assert_eq!(sum(member), u64::try_from(refused).unwrap(), "{member}: {told:#?}");
    }
    assert_eq!(sum("queue_full"), 0);
    for line in told {
        assert_eq!((line["level"].text(), line["tenants"].number()), ("WARN", 1), "{line}");
        assert_eq!(line["tenant.id"], "svc:tenant:acme", "{line}");
    }
    let runbook = include_str!("../../../docs/operations/runbook.md");
    for word in ["`refused calls for decisions`", "`tenant.id`", "`tenant.refused`"] {
        assert!(runbook.contains(word), "{word}");
    }
}
