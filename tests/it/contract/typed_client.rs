//! The client of the command line, with each kind of credential and each kind of error.

use authority_client::{Base, Client, Error, SURFACE, Surface};
use serde_json::{Value, json};

use crate::support::{TENANT, TestApp};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_calls_the_paths_of_its_surface() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let approver = app.member_token(TENANT, "approver");
    let expected = [
        (app.owner_token(), Surface::Owner),
        (approver.as_str(), Surface::Tenant),
        (key.as_str(), Surface::ApiKeys),
    ];
    for (credential, of) in expected {
        let (service, surface) = app.client(credential).service();
        assert_eq!(surface, of);
        let filter = json!({"tenant_id": (of == Surface::Owner).then_some(TENANT), "limit": 5});
        let body = service.get(&surface.path(&[SURFACE, "approvals"]), &filter).await.unwrap();
        let found: Value = service.read(&body).unwrap();
        assert!(found["approvals"].is_array(), "{found:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_has_what_the_service_answered() {
    let app = TestApp::seeded().await;
    let viewer = app.client(&app.member_token(TENANT, "viewer"));
    let (service, _) = viewer.service();
    let path = ["api", "v1", "tenants"];
    let refused = service.get(&path, &()).await.unwrap_err();
    let Error::Refused(refusal) = refused else { panic!("{refused}") };
    assert_eq!((refusal.status.as_u16(), &*refusal.error.error), (403, "forbidden"));
    assert_eq!((refusal.method.as_str(), &*refusal.path), ("GET", "/api/v1/tenants"));
    assert!(refusal.error.is_of_rules() && refusal.error.request_id.is_some());

    // The error for an unknown path comes from the API, but not from its access rules.
    let missing = service.get(&["nothing", "here"], &()).await.unwrap_err();
    assert!(matches!(&missing, Error::Refused(refusal) if !refusal.error.is_of_rules()));

    // No server listens at the discard port.
    let nowhere = Client::new(Base::Named("http://127.0.0.1:9".parse().unwrap()), "t").unwrap();
    let unreached = nowhere.get(&path, &()).await.unwrap_err();
    assert!(matches!(unreached, Error::Unreached { .. }), "{unreached}");
    let of_a_header = Client::new(Base::Named("http://127.0.0.1:9".parse().unwrap()), "a\nb");
    assert!(matches!(of_a_header.err(), Some(Error::Credential)));
}
