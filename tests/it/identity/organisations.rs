//! The tenant of an organization's people while tenants are created, deleted and created again.

use serde_json::{Value, json};

use crate::support::{Answered, Client, Members, Plain, TestApp, Wishes, new_tenant, only};

const PATH: &str = "/api/v1/app/approvals";

async fn tenant(app: &TestApp, slug: &str, org: &str) {
    let body = new_tenant(slug, slug).with("idp_org_id", org);
    app.owner().create_tenant(body).await.assert_status(201);
}

async fn delete(app: &TestApp, slug: &str) {
    assert_eq!(app.owner().delete_tenant(slug).await.0, 200);
}

async fn change(app: &TestApp, slug: &str, body: Value) {
    app.owner().update_tenant(slug, body).await.assert_status(200);
}

/// Returns a person of the organization. `tenant` is the tenant that the identity provider names.
fn person(app: &TestApp, org: &str, tenant: Option<&str>) -> Client {
    let tenant = tenant.map(|slug| format!("svc:tenant:{slug}"));
    app.client(&app.token(&json!({
        "sub": "user_1", "email": "ann@example.org", "org_id": org,
        "public_metadata": {"role": "approver", "tenant_id": tenant},
    })))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organisation_that_comes_back_is_the_new_tenants() {
    let app = TestApp::start().await;
    let beside = app.beside(Wishes::default()).await;
    for pair in 0..12 {
        let org = format!("org_{pair}");
        for life in ["first", "second", "third"] {
            let slug = format!("{life}-{pair}");
            tenant(&app, &slug, &org).await;
            let (status, answer) = person(&app, &org, None).list_approvals("").await;
            assert_eq!(status, 200, "{org} as {slug}: {answer:#}");
            if life != "third" {
                delete(&app, &slug).await;
                assert_eq!(
                    person(&app, &org, None).list_approvals("").await.0,
                    403,
                    "{slug} is gone"
                );
                assert_eq!(person(&app, &org, Some(&slug)).list_approvals("").await.0, 403);
            }
        }
    }
    // The nodes that followed each change agree with a node that starts now and reads the result.
    let late = app.beside(Wishes::default()).await;
    beside.app.graph.catch_up().await;
    for pair in 0..12 {
        let token = person(&app, &format!("org_{pair}"), None).token;
        for node in [&beside, &late] {
            assert_eq!(node.client(&token).get(PATH).await.0, 200, "org_{pair}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_people_of_a_suspended_tenant_belong_to_no_other() {
    let app = TestApp::start().await;
    tenant(&app, "acme", "org_acme").await;
    tenant(&app, "other", "org_other").await;
    change(&app, "acme", only("state", "suspended")).await;
    for named in [None, Some("other"), Some("acme")] {
        let (status, answer) = person(&app, "org_acme", named).list_approvals("").await;
        assert_eq!((status, answer["error"].text()), (403, "forbidden"), "{named:?}");
        assert!(answer["message"].as_str().unwrap().contains("suspended"), "{answer:#}");
    }
    assert_eq!(person(&app, "org_other", None).list_approvals("").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organisation_moves_with_its_tenants_record() {
    let app = TestApp::start().await;
    tenant(&app, "acme", "org_old").await;
    change(&app, "acme", only("idp_org_id", "org_new")).await;
    assert_eq!(person(&app, "org_old", None).list_approvals("").await.0, 403);
    assert_eq!(person(&app, "org_new", None).list_approvals("").await.0, 200);
    change(&app, "acme", only("idp_org_id", Value::Null)).await;
    assert_eq!(person(&app, "org_new", None).list_approvals("").await.0, 403);
}

/// An empty text in the table does not count as an organization.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_organisation_matches_no_tenant() {
    let app = TestApp::start().await;
    tenant(&app, "acme", "org_acme").await;
    app.database.run("UPDATE tenants SET idp_org_id = '' WHERE slug = 'acme'").await;
    app.app.graph.catch_up().await;
    assert_eq!(person(&app, "", None).list_approvals("").await.0, 403);
    let late = app.beside(Wishes::default()).await;
    assert_eq!(late.client(&person(&app, "", None).token).get(PATH).await.0, 403);
}
