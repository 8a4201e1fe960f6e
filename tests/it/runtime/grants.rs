//! The grant chain of an entity: the active grants, and why the others are not active.

use authority_model::proto::runtime::{
    GetAuthorityRequest, authority_service_client::AuthorityServiceClient,
};
use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::demo;
use crate::support::{
    Answered, Client, Members, TENANT, TestApp, new_delegation, new_uses, nothing, only,
};

const AGENT: &str = "svc:agent:acme:support-bot";

/// Returns the grant with this id.
async fn grant(client: &Client, id: &str) -> Value {
    let found = client.get_authority(AGENT).await.assert_status(200);
    let grants = found["grants"].as_array().unwrap();
    grants.iter().find(|grant| grant["id"] == id).expect("no such grant").clone()
}

async fn is(client: &Client, id: &str, state: &str, reason: &str) {
    let grant = grant(client, id).await;
    assert_eq!(grant["state"], state, "{grant:#}");
    match grant["reason"].as_str() {
        None => assert!(reason.is_empty(), "{grant:#}"),
        Some(told) => assert!(!reason.is_empty() && told.contains(reason), "{grant:#}"),
    }
}

struct Acme {
    app: TestApp,
    client: Client,
    human: String,
}

impl Acme {
    async fn new() -> Self {
        let (app, client, delegation) = demo().await;
        let (_, found) = app.owner().get_delegation(&delegation).await;
        let human = found["delegation"]["delegator_id"].as_str().unwrap().to_owned();
        Self { app, client, human }
    }

    async fn lend(&self, more: Value) -> String {
        let body = new_delegation(&self.human, AGENT, &["ticket.*"]).and(&more);
        self.app.owner().create_delegation(body).await.assert_made("delegation")
    }

    async fn act(&self, id: &str, verb: &str) {
        assert_eq!(self.app.owner().act_on_delegation(id, verb, nothing()).await.0, 200);
    }

    async fn state(&self, principal: &str, state: &str) {
        assert_eq!(self.app.owner().update_principal(principal, only("state", state)).await.0, 200);
    }
}

fn moment(seconds: i64) -> String {
    (Clock::default().now() + TimeDelta::seconds(seconds)).to_rfc3339()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegation() {
    let acme = Acme::new().await;
    let client = &acme.client;
    let plain = acme.lend(nothing()).await;
    is(client, &plain, "active", "").await;
    let over = acme.lend(only("expires_at", moment(-60))).await;
    is(client, &over, "expired", &format!("{over} expired at ")).await;
    let ahead = acme.lend(only("not_before", moment(3600))).await;
    is(client, &ahead, "not_yet_valid", &format!("{ahead} begins at ")).await;
    acme.act(&plain, "suspend").await;
    is(client, &plain, "suspended", &format!("{plain} is suspended")).await;
    acme.act(&plain, "reinstate").await;
    acme.state(&acme.human, "suspended").await;
    is(client, &plain, "delegator_inactive", &acme.human).await;
    acme.state(&acme.human, "active").await;
    acme.state(AGENT, "suspended").await;
    is(client, &plain, "subject_suspended", AGENT).await;
    acme.state(AGENT, "active").await;
    is(client, &plain, "active", "").await;
    acme.act(&plain, "revoke").await;
    is(client, &plain, "revoked", &format!("{plain} is revoked")).await;

    // A problem higher up in the chain is reported on the grant below it.
    let bot = "svc:agent:acme:invoice-bot";
    let root = acme.lend(json!({"delegate_id": bot, "can_delegate": true})).await;
    let below = acme.lend(json!({"delegator_id": bot, "parent_id": root})).await;
    is(client, &below, "active", "").await;
    acme.state(bot, "suspended").await;
    is(client, &below, "delegator_inactive", bot).await;
    acme.state(bot, "active").await;
    let narrow = only("can_delegate", false);
    assert_eq!(acme.app.owner().narrow_delegation(&root, narrow).await.0, 200);
    is(client, &below, "not_delegable", &root).await;
    acme.act(&root, "revoke").await;
    is(client, &below, "revoked", &format!("{root} is revoked")).await;

    let mut grpc = AuthorityServiceClient::connect(acme.app.base_url().to_owned()).await.unwrap();
    let mut request = Request::new(GetAuthorityRequest { entity_id: AGENT.to_owned() });
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let found = grpc.get_authority(request).await.unwrap().into_inner();
    let grant = found.grants.into_iter().find(|grant| grant.id == over).unwrap();
    assert_eq!((grant.state.as_str(), grant.reason.is_some()), ("expired", true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_uses_or_acts_in_row() {
    let acme = Acme::new().await;
    let client = &acme.client;
    let uses = async |pattern: &str, more: Value| {
        let body = new_uses(AGENT, pattern).and(&more);
        acme.app.owner().create_uses(body).await.assert_made("uses")
    };
    is(client, &uses("a.*", nothing()).await, "active", "").await;
    let past = json!({"since": moment(-120), "until": moment(-60)});
    is(client, &uses("b.*", past).await, "expired", "expired at ").await;
    let ahead = only("since", moment(3600));
    is(client, &uses("c.*", ahead).await, "not_yet_valid", "begins at ").await;
    is(client, &uses("d.*", only("allowed", 0)).await, "denied", "denies").await;
    let model = json!({"tenant_id": TENANT, "model_provider": "p", "model_family": "f",
                       "version": "1"});
    let model = acme.app.owner().create_model(model).await.assert_made("model");
    let row = uses(&model, only("used_kind", "model")).await;
    is(client, &row, "active", "").await;
    let sql = format!("UPDATE models SET state = 'retired' WHERE id = '{model}'");
    acme.app.database.run(&sql).await;
    acme.app.app.graph.catch_up().await;
    is(client, &row, "unavailable", &model).await;

    for (name, more, state, reason) in [
        ("one", nothing(), "active", ""),
        ("two", json!({"since": moment(-120), "until": moment(-60)}), "expired", "expired at "),
        ("three", only("since", moment(3600)), "not_yet_valid", "begins at "),
    ] {
        let body = json!({"tenant_id": TENANT, "name": name});
        let workspace = acme.app.owner().create_workspace(body).await.assert_made("workspace");
        let body = json!({"principal_id": AGENT, "workspace_id": workspace,
                              "allowed_actions_json": "[\"ticket.*\"]"})
        .and(&more);
        let row = acme.app.owner().create_acts_in(body).await.assert_made("acts_in");
        is(client, &row, state, reason).await;
    }
}
