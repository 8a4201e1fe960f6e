//! A pack is stored only as a position in the log, and is built again from its decision. Its bytes
//! never change: if a row was altered, reading the pack fails.

use authority_ids::TenantId;
use authority_ledger::stored_packs;
use authority_store::Scope;
use diesel_async::SimpleAsyncConnection;
use futures_util::future::join_all;
use serde_json::Value;

use super::{
    TENANT, asking, bundle, check, decided,
    log::{checkpoint, restore},
    published, sealed, sealing,
};
use crate::support::{Answered, Client, Plain, SEAL_DECISION, TestApp, Wishes, new_tenant, only};

/// Decision ids, each with its pack.
pub(super) type Packs = Vec<(String, String)>;

/// Seals this many decisions at once, in one or several trees.
pub(super) async fn seal_some(client: &Client, count: u32) -> Packs {
    let ids = join_all((0..count).map(|n| decided(client, asking(f64::from(n), "DE")))).await;
    let packs = join_all(ids.iter().map(|id| sealed(client, id))).await;
    ids.into_iter().zip(packs).collect()
}

/// Sealing again, reading by either id, and downloading from the receipt all return the original
/// bytes.
pub(super) async fn are_as_they_were(packs: &Packs, client: &Client) {
    for (id, pack) in packs {
        assert_eq!(sealed(client, id).await, *pack, "sealed again");
        for id in [id.clone(), id.replace("decision", "evidence")] {
            assert_eq!(client.evidence_text(&id, "").await.1, *pack);
        }
        let (_, receipt) = client.text("GET", &format!("/receipts/{id}/pack.json"), None).await;
        assert_eq!(receipt, *pack, "the receipt's");
        let first: Value = serde_json::from_str(pack).unwrap();
        let (_, proof) = client.text("GET", &format!("/receipts/{id}/proof"), None).await;
        assert_eq!(proof, first["log"]["proof"], "the receipt's");
        let bundle: Value = serde_json::from_str(&bundle(client, id).await).unwrap();
        assert_eq!(bundle["pack"], first, "the bundle's");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pack_is_the_same_bytes_ever_after() {
    let (app, client) = sealing().await;
    // The trees have one to eleven leaves and different right edges.
    let mut packs = Packs::new();
    for count in [1, 1, 1, 5, 3] {
        packs.extend(seal_some(&client, count).await);
    }
    let keys = published(&client).await;
    for (_, pack) in &packs {
        check(pack, Some(&keys)).unwrap();
    }
    are_as_they_were(&packs, &client).await;
    packs.extend(seal_some(&client, 7).await);
    are_as_they_were(&packs, &client).await;

    // Rotates the signing keys.
    let owner = app.owner();
    for purpose in ["evidence", "log"] {
        let (_, keys) = owner.list_key_rotations(&format!("scope={purpose}")).await;
        let plan = only("kid", &keys["keys"][0]["kid"]);
        let planned = owner.schedule_key_rotation(plan).await.assert_status(201);
        assert_eq!(
            owner.complete_key_rotation(planned["rotation"]["id"].as_str().unwrap()).await.0,
            200
        );
    }
    packs.extend(seal_some(&client, 2).await);
    are_as_they_were(&packs, &client).await;

    // Begins another epoch.
    let known = checkpoint(&client).await;
    let (lost, _) = seal_some(&client, 1).await.remove(0);
    restore(&app, &known).await;
    let again = sealed(&client, &lost).await;
    let origin = serde_json::from_str::<Value>(&again).unwrap()["log"]["origin"].clone();
    assert!(origin.as_str().unwrap().ends_with("/log/acme/2"), "{origin}");
    packs.push((lost, again));
    are_as_they_were(&packs, &client).await;

    // Starts another process with another public URL.
    let beside = app.beside(Wishes::default()).await;
    assert_ne!(beside.base_url(), app.base_url());
    let there = beside.client(&client.token);
    packs.extend(seal_some(&there, 2).await);
    are_as_they_were(&packs, &there).await;
    are_as_they_were(&packs, &client).await;
}

/// Runs SQL as the owner of the tables, with their triggers disabled.
async fn alter(app: &TestApp, sql: &str) {
    let sql = format!("SET session_replication_role = replica; {sql}");
    app.database.owner().await.batch_execute(&sql).await.unwrap();
}

/// Returns statements that each alter one value, with the part that the error then names. Running a
/// statement again restores the value.
fn alterations(id: &str) -> [(String, &'static str); 9] {
    let flip = |column: &str, bit: u32| {
        format!("{column} = set_bit({column}, {bit}, 1 - get_bit({column}, {bit}))")
    };
    let decision = |set: String| format!("UPDATE decisions SET {set} WHERE id = '{id}'");
    // The signature is changed and remains valid base64.
    let signature =
        "note = left(note, -25) || reverse(left(right(note, 25), 20)) || right(note, 5)";
    let place = |column: &str| {
        let most = i64::MAX;
        format!("UPDATE evidence_packs SET {column} = {most} - {column} WHERE decision_id = '{id}'")
    };
    [
        (format!("UPDATE log_checkpoints SET {signature} WHERE size = 2"), "log"),
        (place("log_index"), "log"),
        // The name of the record's first field is changed. The record remains valid JSON.
        (decision(flip("record", 16)), "record"),
        (decision(flip("signature", 0)), "pack"),
        (decision("kid = reverse(kid)".to_owned()), "pack"),
        ("UPDATE log_checkpoints SET issuer = reverse(issuer) WHERE size = 2".to_owned(), "pack"),
        ("UPDATE log_checkpoints SET note = reverse(note) WHERE size = 2".to_owned(), "log"),
        // The first statement alters the pack's own leaf, the second its sibling.
        (format!("UPDATE log_nodes SET {} WHERE first = 1", flip("hashes", 0)), "log"),
        (
            format!("UPDATE log_nodes SET {} WHERE first = 0 AND level = 0", flip("hashes", 0)),
            "log",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_altered_row_gives_no_pack_rather_than_a_wrong_one() {
    let (app, client) = sealing().await;
    let first = seal_some(&client, 1).await.remove(0);
    let second = seal_some(&client, 1).await.remove(0);
    let (id, pack) = second.clone();
    for (alteration, part) in alterations(&id) {
        alter(&app, &alteration).await;
        for path in [
            format!("/v1/evidence/{id}"),
            format!("/v1/evidence/{id}?bundle=true"),
            format!("/receipts/{id}/pack.json"),
            format!("/receipts/{id}/proof"),
        ] {
            let (status, answer) = client.text("GET", &path, None).await;
            assert_eq!(status, 500, "{alteration}: {path}: {answer}");
            assert!(!answer.contains("c2sp.org"), "{answer}");
        }
        // Another decision that is sealed at the same time still gets a pack, unless the log is
        // altered.
        let new = decided(&client, asking(1.0, "DE")).await;
        let both = [id.as_str(), new.as_str()].map(|id| only("decision_id", id));
        let both = both.map(|body| client.post(SEAL_DECISION, body));
        let statuses: Vec<u16> = join_all(both).await.iter().map(|(status, _)| *status).collect();
        let is_log = part == "log";
        assert_eq!(statuses[0], 500, "{alteration}");
        assert!(is_log || statuses[1] == 200, "{alteration}: {statuses:?}");
        let (status, proof) = client.mint_replay_proof(only("decision_id", &id)).await;
        assert_eq!((status, proof["result"].text()), (200, "mismatch"), "{proof:#}");
        assert_eq!(proof["diff"][0]["member"], part, "{alteration}");
        alter(&app, &alteration).await;
        are_as_they_were(&vec![(id.clone(), pack.clone())], &client).await;
    }
    alter(&app, "UPDATE evidence_packs SET sealed_at = sealed_at + interval '1 us'").await;
    let (_, proof) = client.mint_replay_proof(only("decision_id", &id)).await;
    assert_eq!(proof["diff"][0]["member"], "pack");
    alter(&app, "UPDATE evidence_packs SET sealed_at = sealed_at - interval '1 us'").await;
    are_as_they_were(&vec![first, second], &client).await;
}

/// An operation that reads many decisions reads their packs in one query. A tenant gets only its
/// own packs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_packs_is_read_together() {
    let (app, client) = sealing().await;
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let scopes = ["runtime:write", "evidence:write"];
    let stranger = app.client(&app.api_key("svc:tenant:other", &scopes).await);
    let mut packs = Packs::new();
    for (client, count) in [(&client, 3), (&stranger, 4), (&client, 5)] {
        packs.extend(seal_some(client, count).await);
    }
    packs.sort();
    let open = decided(&client, asking(1.0, "DE")).await;
    let page = async |scope: Scope, within: Option<TenantId>| {
        let keys = app.keys().clone();
        let ids: Vec<String> =
            packs.iter().map(|(id, _)| id.clone()).chain([open.clone()]).collect();
        let read = app.database.store().read_tx(&scope, async move |db| {
            let ids = ids.iter().map(String::as_str);
            Ok::<_, authority_store::Error>(
                stored_packs::page(db, &keys, within.as_ref(), ids).await?,
            )
        });
        let found = read.await.unwrap().into_iter();
        let mut found: Packs =
            found.map(|(id, pack)| (id.into(), pack.unwrap().text().unwrap())).collect();
        found.sort();
        found
    };
    assert_eq!(page(Scope::service(), None).await, packs);
    let own: Packs =
        packs.iter().filter(|(_, pack)| pack.contains("/log/acme\"")).cloned().collect();
    assert_eq!(own.len(), 8);
    let acme = TenantId::parse(TENANT).unwrap();
    assert_eq!(page(Scope::service(), Some(acme.clone())).await, own);
    // Only row-level security limits this page.
    let scope = Scope { tenant: Some(acme), ..Scope::service() };
    assert_eq!(page(scope, None).await, own);
}
