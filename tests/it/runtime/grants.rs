//! The grant chain of an entity: the active grants, and why the others are not active.

use authority_model::proto::runtime::{
    GetAuthorityRequest, authority_service_client::AuthorityServiceClient,
};
use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::demo;
use crate::support::{Client, TestApp};

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:support-bot";

/// Returns the grant with this id.
async fn grant(client: &Client, id: &str) -> Value {
    let (status, found) = client.get(&format!("/v1/authority/{AGENT}")).await;
    assert_eq!(status, 200, "{found:#}");
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
        let path = format!("/api/v1/delegations/{delegation}");
        let (_, found) = app.owner().get(&path).await;
        let human = found["delegation"]["delegator_id"].as_str().unwrap().to_owned();
        Self { app, client, human }
    }

    async fn made(&self, path: &str, key: &str, body: Value) -> String {
        let (status, made) = self.app.owner().post(path, body).await;
        assert_eq!(status, 201, "{made:#}");
        made[key]["id"].as_str().unwrap().to_owned()
    }

    async fn lend(&self, more: Value) -> String {
        let mut body = json!({"tenant_id": TENANT, "delegator_id": self.human,
                              "delegate_id": AGENT, "actions": ["ticket.*"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.made("/api/v1/delegations", "delegation", body).await
    }

    async fn act(&self, id: &str, verb: &str) {
        let path = format!("/api/v1/delegations/{id}/{verb}");
        assert_eq!(self.app.owner().post(&path, json!({})).await.0, 200);
    }

    async fn state(&self, principal: &str, state: &str) {
        let path = format!("/api/v1/principals/{principal}");
        assert_eq!(self.app.owner().patch(&path, json!({"state": state})).await.0, 200);
    }
}

fn moment(seconds: i64) -> String {
    (Clock::default().now() + TimeDelta::seconds(seconds)).to_rfc3339()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegation() {
    let acme = Acme::new().await;
    let client = &acme.client;
    let plain = acme.lend(json!({})).await;
    is(client, &plain, "active", "").await;
    let over = acme.lend(json!({"expires_at": moment(-60)})).await;
    is(client, &over, "expired", &format!("{over} expired at ")).await;
    let ahead = acme.lend(json!({"not_before": moment(3600)})).await;
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
    let path = format!("/api/v1/delegations/{root}/narrow");
    let narrow = json!({"can_delegate": false});
    assert_eq!(acme.app.owner().post(&path, narrow).await.0, 200);
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
    let (client, rows) = (&acme.client, "/api/v1/relationships");
    let uses = async |pattern: &str, more: Value| {
        let mut body = json!({"agent_id": AGENT, "used_id": pattern, "used_kind": "action"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        acme.made(&format!("{rows}/uses"), "uses", body).await
    };
    is(client, &uses("a.*", json!({})).await, "active", "").await;
    let past = json!({"since": moment(-120), "until": moment(-60)});
    is(client, &uses("b.*", past).await, "expired", "expired at ").await;
    let ahead = json!({"since": moment(3600)});
    is(client, &uses("c.*", ahead).await, "not_yet_valid", "begins at ").await;
    is(client, &uses("d.*", json!({"allowed": 0})).await, "denied", "denies").await;
    let model = json!({"tenant_id": TENANT, "model_provider": "p", "model_family": "f",
                       "version": "1"});
    let model = acme.made("/api/v1/models", "model", model).await;
    let row = uses(&model, json!({"used_kind": "model"})).await;
    is(client, &row, "active", "").await;
    let sql = format!("UPDATE models SET state = 'retired' WHERE id = '{model}'");
    acme.app.database.run(&sql).await;
    acme.app.app.graph.catch_up().await;
    is(client, &row, "unavailable", &model).await;

    for (name, more, state, reason) in [
        ("one", json!({}), "active", ""),
        ("two", json!({"since": moment(-120), "until": moment(-60)}), "expired", "expired at "),
        ("three", json!({"since": moment(3600)}), "not_yet_valid", "begins at "),
    ] {
        let body = json!({"tenant_id": TENANT, "name": name});
        let workspace = acme.made("/api/v1/workspaces", "workspace", body).await;
        let mut body = json!({"principal_id": AGENT, "workspace_id": workspace,
                              "allowed_actions_json": "[\"ticket.*\"]"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let row = acme.made(&format!("{rows}/acts-in"), "acts_in", body).await;
        is(client, &row, state, reason).await;
    }
}
