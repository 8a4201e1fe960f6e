//! A stop that names any delegation of a line applies to the delegation in force.

use serde_json::json;

use super::{
    super::{demo, watch::Lines},
    act, answer, lend, quarantine, read, reason, release, renew, try_renew, under,
};
use crate::support::{Plain, Wishes, http, nothing, only};
use authority_process::clock::Clock;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_of_any_of_the_line_applies_to_all() {
    let (app, client, first) = demo().await;
    let decided = answer(&client, under(&first, 1.0)).await;
    let second = renew(&app, &first, nothing()).await;
    let third = renew(&app, &second, nothing()).await;
    for named in [&first, &second, &third] {
        let (mut lines, _) = Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await;
        let made = quarantine(&app, named).await;
        let (_, shown) = app.owner().get_quarantine(&made).await;
        assert_eq!(shown["quarantine"]["delegation_id"], json!(third), "{shown:#}");
        // As if the delegation was renewed while the quarantine was written.
        let race = format!(
            "BEGIN; SELECT set_config('role', authority_role('system'), true); \
             SET LOCAL authority.actor = 'test'; \
             UPDATE quarantines SET delegation_id = '{named}' WHERE id = '{made}'; COMMIT"
        );
        app.database.run(&race).await;
        app.app.graph.catch_up().await;
        for asked in [&first, &second, &third] {
            assert_eq!(reason(&client, asked).await, "capability_quarantined", "{named} {asked}");
        }
        let ended = lines.last().await;
        assert_eq!(ended["stop_condition"], "capability.quarantined", "{ended:#}");
        let (status, refused) = try_renew(&app, &third, nothing()).await;
        assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
        assert!(refused["message"].as_str().unwrap().contains(&made), "{refused:#}");
        // A node that starts now reads the same from the tables.
        let beside = app.beside(Wishes::default()).await;
        let there = beside.client(&client.token);
        assert_eq!(reason(&there, &third).await, "capability_quarantined");
        release(&app, &made).await;
    }
    assert_eq!(reason(&client, &first).await, "permission_granted");
    renew(&app, &third, nothing()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ending_any_of_the_line_ends_the_one_in_force() {
    let (app, client, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let second = renew(&app, &first, nothing()).await;
    act(&app, &first, "suspend").await;
    assert_eq!(read(&app, &second).await["state"], "suspended");
    for name in [&first, &second] {
        assert_eq!(reason(&client, name).await, "delegation_suspended");
    }
    act(&app, &first, "reinstate").await;
    assert_eq!(reason(&client, &first).await, "permission_granted");
    let (_, radius) = app.owner().get_blast_radius(&first).await;
    assert_eq!(radius["delegations"][0]["id"], json!(second), "{radius:#}");
    act(&app, &first, "revoke").await;
    assert_eq!(read(&app, &second).await["state"], "revoked");
    for name in [&first, &second] {
        assert_eq!(reason(&client, name).await, "delegation_revoked");
    }
    let again = app.owner().revoke_delegation(&first, None).await;
    assert_eq!((again.0, again.1["error"].text()), (409, "record_is_final"));
}

/// A client that stops the delegation that it read, under the condition that it is as read, does not
/// know of a successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_version_of_a_renewed_delegation_matches() {
    let (app, _, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let path = |id: &str| format!("{}/api/v1/delegations/{id}", app.base_url());
    let version = async |id: &str| {
        let read = http().get(path(id)).bearer_auth(app.owner_token()).send().await.unwrap();
        read.headers()["etag"].to_str().unwrap().to_owned()
    };
    let before = version(&first).await;
    let second = renew(&app, &first, nothing()).await;
    let (named, newest) = (version(&first).await, version(&second).await);
    assert_ne!(before, named);
    let to = async |id: &str, verb: &str, version: &str| {
        let call = http().post(format!("{}/{verb}", path(id))).bearer_auth(app.owner_token());
        let call = call.header("if-match", version).json(&nothing());
        call.send().await.unwrap().status().as_u16()
    };
    assert_eq!(to(&first, "suspend", &before).await, 412);
    assert_eq!(to(&second, "suspend", &named).await, 412);
    assert_eq!(to(&first, "suspend", &newest).await, 200);
    assert_eq!(to(&first, "reinstate", &named).await, 412);
    let suspended = version(&second).await;
    assert_eq!(to(&first, "reinstate", &suspended).await, 200);
    assert_eq!(to(&first, "revoke", &named).await, 200);
    assert_eq!(read(&app, &second).await["state"], "revoked");
}

/// The filter by a delegation finds the quarantines of its whole line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quarantines_are_found_by_any_delegation_of_the_line() {
    let (app, _, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let before = quarantine(&app, &first).await;
    release(&app, &before).await;
    let second = renew(&app, &first, nothing()).await;
    let now = quarantine(&app, &first).await;
    let other = quarantine(&app, &demo).await;
    for (named, wanted) in [
        (&first, vec![&before, &now]),
        (&second, vec![&before, &now]),
        (&demo, vec![&other]),
        (&now, vec![]),
    ] {
        for path in ["", ":export"] {
            let path = format!("/api/v1/quarantines{path}?delegation_id={named}");
            let (status, found) = app.owner().text("GET", &path, None).await;
            assert_eq!(status, 200, "{found}");
            for made in [&before, &now, &other] {
                assert_eq!(found.contains(made.as_str()), wanted.contains(&made), "{path} {found}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_delegation_in_force_is_renewed() {
    let (app, client, demo) = demo().await;
    let refused = async |delegation: &str, word: &str| {
        let (status, refused) = try_renew(&app, delegation, nothing()).await;
        assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"), "{word}");
        assert!(refused["message"].as_str().unwrap().contains(word), "{refused:#}");
    };
    let soon = Clock::default().now() + chrono::TimeDelta::seconds(1);
    let expiring = lend(&app, &demo, only("expires_at", soon.to_rfc3339())).await;
    let first = lend(&app, &demo, nothing()).await;
    act(&app, &first, "suspend").await;
    refused(&first, "suspended").await;
    act(&app, &first, "revoke").await;
    refused(&first, "revoked").await;
    let left = soon - Clock::default().now();
    tokio::time::sleep(left.to_std().unwrap_or_default()).await;
    refused(&expiring, "expired").await;
    assert_eq!(reason(&client, &expiring).await, "delegation_expired");
    // A renewal needs `expires_at`, in the future or null, and can't change the principals.
    let second = lend(&app, &demo, nothing()).await;
    for (body, member) in [
        (only("max_amount", "5"), "expires_at"),
        (only("expires_at", "2020-01-01T00:00:00Z"), "expires_at"),
        (json!({"expires_at": null, "delegate_id": "svc:agent:acme:support-bot"}), "delegate_id"),
        (json!({"expires_at": null, "line_id": second}), "line_id"),
        (json!({"expires_at": null, "jurisdictions": ["UK"]}), "jurisdictions[0]"),
    ] {
        let (status, refused) = app.owner().renew_delegation(&second, body.clone()).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, member), "{body}");
    }
    let (status, made) = app.owner().renew_delegation(&second, json!({"expires_at": null})).await;
    assert_eq!((status, &made["delegation"]["expires_at"]), (200, &json!(null)), "{made:#}");
}
