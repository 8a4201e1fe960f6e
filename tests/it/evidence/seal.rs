//! Sealing gives each decision one pack, with the signed record and its index in the tenant's log.

use std::time::{Duration, Instant};

use authority_evidence::verify::Valid;
use futures_util::future::join_all;
use serde_json::Value;

use super::{TENANT, asking, bundle, check, decided, published, sealed, sealing};
use crate::support::{
    Answered, CHECKPOINT, Members, Plain, SEAL_DECISION, Wishes, new_tenant, only,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sealed_decision_verifies_offline() {
    let (_app, client) = sealing().await;
    let keys = published(&client).await;
    for (amount, place) in [(1200.0, "DE"), (25_000.0, "DE"), (1200.0, "US"), (0.5, "DE")] {
        let id = decided(&client, asking(amount, place)).await;
        let pack = sealed(&client, &id).await;
        assert_eq!(check(&pack, Some(&keys)), Ok(Valid::Trusted), "{pack}");
        assert!(check(&pack, None).is_err(), "no key");
        let bundle = bundle(&client, &id).await;
        assert_eq!(check(&bundle, Some(&keys)), Ok(Valid::Trusted), "{bundle}");
        assert!(matches!(check(&bundle, None), Ok(Valid::IssuerNotPinned(_))));
        // A key set without the log's keys verifies only the issuer.
        let mut issuer = keys.clone();
        issuer.retain(|kid, _| !kid.starts_with("svc-log-"));
        assert_eq!(check(&pack, Some(&issuer)), Ok(Valid::CheckpointUnchecked));
        assert_eq!(check(&bundle, Some(&issuer)), Ok(Valid::LogNotPinned));
        // A key set with another log's keys does not verify this log.
        let (kid, x) = keys.iter().find(|(kid, _)| kid.starts_with("svc-evidence-")).unwrap();
        let other = kid.replace("svc-evidence-", "svc-log-");
        issuer.insert(other, x.clone());
        for (file, member) in [(&pack, "log.proof"), (&bundle, "log_key")] {
            let refused = check(file, Some(&issuer)).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("invalid: {member}: ")), "{refused}");
        }
    }
}

/// Only callers who may read the decision learn that it is not sealed. Others get "not found".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_evidence_names_the_operation_that_seals() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    let stranger = app.client(&app.member_token("svc:tenant:other", "auditor"));
    for path in [format!("/v1/evidence/{id}"), format!("/v1/evidence/{id}?bundle=true")] {
        let (status, answer) = client.get(&path).await;
        assert_eq!((status, answer["error"].text()), (404, "not_found"), "{answer:#}");
        let told = answer["message"].as_str().unwrap();
        assert!(told.contains("not sealed yet") && told.contains(SEAL_DECISION), "{told}");
        let (status, answer) = stranger.get(&path).await;
        assert!(!answer.to_string().contains("sealed"), "{status} {answer:#}");
    }
    let other = if id.ends_with('0') { "1" } else { "0" };
    let (_, unknown) = client.get_evidence(&format!("{}{other}", &id[..id.len() - 1])).await;
    assert!(!unknown["message"].as_str().unwrap().contains("sealed"), "{unknown:#}");
    sealed(&client, &id).await;
    assert_eq!(client.get_evidence(&id).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_decided_about_a_tenant_that_does_not_exist() {
    let (app, _) = sealing().await;
    let ask = asking(1.0, "DE").with("subject", "svc:agent:nowhere:bot");
    let (status, refused) = app.owner().evaluate(ask).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "subject"), "{refused:#}");
    let (_, found) = app.owner().list_decisions("").await;
    assert!(!found.to_string().contains("svc:tenant:nowhere"), "{found:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealing_again_gives_the_same_pack_on_every_node() {
    let (app, client) = sealing().await;
    let beside = app.beside(Wishes::default()).await;
    let there = beside.client(&client.token);
    let id = decided(&client, asking(1.0, "DE")).await;
    let both = join_all((0..12).map(|n| sealed(if n % 2 == 0 { &client } else { &there }, &id)));
    let packs = both.await;
    assert!(packs.iter().all(|pack| *pack == packs[0]));
    // Other decisions are sealed at the same time, on both nodes.
    let ids = join_all((0..20).map(|n| decided(&client, asking(f64::from(n), "DE")))).await;
    let nodes = [&client, &there];
    let more = join_all(ids.iter().enumerate().map(|(n, id)| sealed(nodes[n % 2], id))).await;
    let mut places: Vec<u64> =
        more.iter().map(|pack| read(pack)["log"]["index"].as_u64().unwrap()).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=20).collect::<Vec<_>>());
    let keys = published(&client).await;
    assert!(more.iter().all(|pack| check(pack, Some(&keys)).is_ok()));
    let (_, again) = client.evidence_text(&id, "").await;
    assert_eq!(again, packs[0]);
    let evidence = id.replace("decision", "evidence");
    let (_, by_evidence) = client.evidence_text(&evidence, "").await;
    assert_eq!(by_evidence, packs[0]);
}

fn read(pack: &str) -> Value {
    serde_json::from_str(pack).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_decision_is_neither_sealed_nor_shown() {
    let (app, client) = sealing().await;
    let id = decided(&client, asking(1.0, "DE")).await;
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let scopes = ["evidence:read", "evidence:write"];
    let stranger = app.client(&app.api_key("svc:tenant:other", &scopes).await);
    let body = only("decision_id", &id);
    assert_eq!(stranger.post(SEAL_DECISION, body.clone()).await.0, 404);
    let (status, missing) = client.get_evidence(&id).await;
    assert_eq!(
        (status, missing["error"].text()),
        (404, "not_found"),
        "an unsealed decision has no pack"
    );
    sealed(&client, &id).await;
    for path in [format!("/v1/evidence/{id}"), CHECKPOINT.to_owned()] {
        assert_eq!(stranger.get(&path).await.0, 404, "{path}");
    }
    assert_eq!(stranger.post(SEAL_DECISION, body).await.0, 404);
    assert_eq!(stranger.mint_replay_proof(only("decision_id", &id)).await.0, 404);
    // Every user of the tenant may read a pack, but not its facts.
    for (role, bundle) in [("viewer", 403), ("auditor", 200)] {
        let member = app.person(TENANT, role, "mo@example.org");
        assert_eq!(member.get_evidence(&id).await.0, 200);
        assert_eq!(member.get_evidence_bundle(&id).await.0, bundle);
    }
    let reader = app.client(&app.api_key(TENANT, &["evidence:read"]).await);
    assert_eq!(reader.seal_decision(&id).await.0, 403);
}

/// A tenant can have all of its decisions sealed automatically.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_may_have_everything_sealed() {
    let (app, client) = sealing().await;
    let ids = join_all((0..30).map(|n| decided(&client, asking(f64::from(n), "DE")))).await;
    app.owner().update_tenant(TENANT, only("auto_seal", true)).await.assert_status(200);
    let last = decided(&client, asking(99.0, "DE")).await;
    let begun = Instant::now();
    for id in ids.iter().chain([&last]) {
        while client.get_evidence(id).await.0 != 200 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{id} is not sealed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// One tenant's log has been tampered with. Decisions of other tenants are still sealed, and
/// operators see that the worker fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_cannot_be_continued_fails_the_run_and_stops_no_other() {
    let (app, client) = sealing().await;
    let other = new_tenant("Other", "other").with("auto_seal", true);
    app.owner().create_tenant(other).await.assert_status(201);
    let id = decided(&client, asking(1.0, "DE")).await;
    assert_eq!(client.seal_decision(&id).await.0, 200);
    app.database.run("UPDATE log_heads SET size = size + 1").await;
    app.owner().update_tenant(TENANT, only("auto_seal", true)).await.assert_status(200);
    decided(&client, asking(2.0, "DE")).await;
    let key =
        app.client(&app.api_key("svc:tenant:other", &["runtime:write", "evidence:read"]).await);
    let of_other = decided(&key, asking(3.0, "DE")).await;
    let begun = Instant::now();
    loop {
        let (_, ready) = app.client("").get("/health/ready").await;
        let workers = ready["workers"].as_array().unwrap();
        let auto_seal = workers.iter().find(|worker| worker["name"] == "auto_seal").unwrap();
        let is_sealed = key.get_evidence(&of_other).await.0 == 200;
        if auto_seal["status"] != "ok" && is_sealed {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{auto_seal}, sealed: {is_sealed}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
