//! If a person's principal is suspended or deleted, the person is refused everywhere, on every
//! node.

use authority_model::proto::runtime::{
    GetAuthorityRequest, authority_service_client::AuthorityServiceClient,
};
use serde_json::{Value, json};
use tonic::{Code, Request, metadata::MetadataValue};

use crate::support::{
    AGENT, Answered, Client, Members, Plain, TENANT, TestApp, Wishes, new_principal, new_tenant,
    only,
};

const NORA: &str = "nora@acme.example";

/// Creates a human principal and returns its id.
async fn principal(app: &TestApp, subject: Option<&str>, email: Option<&str>) -> String {
    let body =
        new_principal("human", "Nora").with("external_subject", subject).with("email", email);
    let made = app.owner().create_principal(body).await.assert_status(201);
    made["principal"]["id"].as_str().unwrap().to_owned()
}

async fn set(app: &TestApp, id: &str, state: &str) {
    app.owner().update_principal(id, only("state", state)).await.assert_status(200);
}

async fn delete(app: &TestApp, id: &str) {
    assert_eq!(app.owner().delete_principal(id).await.0, 200);
}

/// Returns the statuses of a person's two reads and one write over REST, and of one read over gRPC.
async fn statuses(app: &TestApp, person: &Client, approval: &str) -> (u16, u16, u16, Code) {
    let list = person.list_approvals("").await.0;
    let read = person.get_authority(AGENT).await.0;
    // The body is invalid: an authorized caller gets an error about the body.
    let acted = person.act_on_approval(approval, "approve", only("nonsense", true)).await.0;
    let mut grpc = AuthorityServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let mut request = Request::new(GetAuthorityRequest { entity_id: AGENT.to_owned() });
    let bearer: MetadataValue<_> = format!("Bearer {}", person.token).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let code = grpc.get_authority(request).await.err().map_or(Code::Ok, |status| status.code());
    (list, read, acted, code)
}

const IN: (u16, u16, u16, Code) = (200, 200, 400, Code::Ok);
const OUT: (u16, u16, u16, Code) = (403, 403, 403, Code::PermissionDenied);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_or_deleted_person_neither_reads_nor_approves() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let held = crate::support::asking(25_000.0, "DE");
    let client = app.client(&demo.api_key);
    let (_, held) = client.evaluate(held).await;
    let approval = held["approval_id"].as_str().unwrap();
    let beside = app.beside(Wishes::default()).await;
    for by_subject in [true, false] {
        let address = if by_subject { NORA } else { "nina@acme.example" };
        let subject = format!("dev|{address}");
        let (subject, email) = if by_subject {
            (Some(subject.as_str()), None)
        } else {
            (None, Some("Nina@ACME.example"))
        };
        let nora = app.person(TENANT, "approver", address);
        assert_eq!(statuses(&app, &nora, approval).await, IN, "she has no principal");
        let id = principal(&app, subject, email).await;
        assert_eq!(statuses(&app, &nora, approval).await, IN);
        for state in ["suspended", "pending"] {
            set(&app, &id, state).await;
            assert_eq!(statuses(&app, &nora, approval).await, OUT, "{state}");
            beside.app.graph.catch_up().await;
            assert_eq!(statuses(&beside, &nora, approval).await, OUT, "{state}, another node");
            set(&app, &id, "active").await;
            assert_eq!(statuses(&app, &nora, approval).await, IN);
        }
        delete(&app, &id).await;
        assert_eq!(statuses(&app, &nora, approval).await, OUT, "deleted");
        let late = app.beside(Wishes::default()).await;
        assert_eq!(statuses(&late, &nora, approval).await, OUT, "a node that starts later");
        // If the deleted principal had only an email address, another person who now has this
        // address is refused too, until their own subject has a principal.
        let user = format!("user of {address}");
        let other = app.client(&app.token(&json!({
            "sub": user, "email": address,
            "public_metadata": {"role": "approver", "tenant_id": TENANT},
        })));
        let before = if by_subject { IN } else { OUT };
        assert_eq!(statuses(&app, &other, approval).await, before);
        principal(&app, Some(&user), None).await;
        assert_eq!(statuses(&app, &other, approval).await, IN);
    }
}

/// The refusal has an error code, but no data about the principal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_refusal_says_no_more_than_that() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let id = principal(&app, Some(&format!("dev|{NORA}")), None).await;
    set(&app, &id, "suspended").await;
    let nora = app.person(TENANT, "approver", NORA);
    let (status, answer): (u16, Value) = nora.list_approvals("").await;
    assert_eq!((status, answer["error"].text()), (403, "forbidden"), "{answer:#}");
    assert!(!answer.to_string().contains(&id) && !answer.to_string().contains("suspended"));
    // She can call public operations like any other caller. Her suspension does not apply in
    // another tenant.
    assert_eq!(nora.get("/health").await.0, 200);
    assert_eq!(app.owner().create_tenant(new_tenant("Other", "other")).await.0, 201);
    let there = app.person("svc:tenant:other", "approver", NORA);
    assert_eq!(there.list_approvals("").await.0, 200);
}
