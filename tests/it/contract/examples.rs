//! Sends every example body of the OpenAPI document to the demonstration tenant. Each must succeed.
//!
//! In the examples, an id with `c0ffee` stands for the id of a reader's own record of the same
//! kind.

mod created;
mod held;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{document, ok::begins_with_ok};
use crate::{
    programme::dns::DnsServer,
    support::{Client, TENANT, TestApp, Wishes, asking},
};

const BOT: &str = "svc:agent:acme:invoice-bot";
const ADMIN: &str = "ann@acme.example";

/// An operation with an example of its body.
pub(super) struct Example {
    pub(super) method: String,
    pub(super) path: String,
    body: Value,
    pub(super) status: u16,
    gives: Vec<String>,
}

pub(super) fn examples(document: &Value) -> Vec<Example> {
    let mut found = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            if content["example"].is_null() {
                continue;
            }
            let responses = operation["responses"].as_object().unwrap();
            let (status, success) =
                responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
            let gives = success["headers"].as_object().cloned().unwrap_or_default();
            found.push(Example {
                method: method.to_uppercase(),
                path: path.clone(),
                body: content["example"].clone(),
                status: status.parse().unwrap(),
                gives: gives.into_iter().map(|(name, _)| name).collect(),
            });
        }
    }
    // Records without references are created first, then other records. Operations on records
    // follow.
    let rank = |example: &Example| {
        let relates = example.path.contains("/relationships/") || example.path.contains("/teams");
        (example.path.contains('{'), relates, example.path.clone())
    };
    found.sort_by_key(rank);
    found
}

/// The demonstration tenant, with the records that the examples create.
pub(super) struct World {
    pub(super) app: TestApp,
    key: Client,
    /// A client with a key that is bound to an agent. It delegates, and asks through hooks.
    delegating: Client,
    dns: DnsServer,
    known: HashMap<String, String>,
}

impl World {
    pub(super) async fn start() -> Self {
        let (dns, address) = DnsServer::start().await;
        let wishes = Wishes { push: true, dns: vec![address], ..Wishes::default() };
        let app = TestApp::wished(wishes).await;
        app.demo().await;
        let scopes = "runtime:read runtime:write runtime:stop evidence:read evidence:write \
                      webhooks:write reality:write tools:observe";
        let scopes: Vec<_> = scopes.split(' ').collect();
        // The key's creator can't approve the key's requests: another person than the approver
        // creates it.
        let maker = app.person(TENANT, "admin", "keys@acme.example");
        let body = json!({"label": "test", "scopes": scopes});
        let (_, made) = maker.post("/api/v1/app/api-keys", body).await;
        let key = app.client(made["secret"].as_str().unwrap());
        let feeder = made["api_key"]["id"].as_str().unwrap().to_owned();
        // Only the installation's owner creates keys that delegate.
        let bot = json!({"tenant_id": TENANT, "label": "bot", "principal_ids": [BOT],
            "scopes": ["delegations:write", "runtime:write"]});
        let (_, made) = app.owner().post("/api/v1/api-keys", bot).await;
        let delegating = app.client(made["secret"].as_str().unwrap());
        let mut world = Self { app, key, delegating, dns, known: HashMap::new() };
        world.known.insert("feeder".to_owned(), feeder);
        for (kind, path) in [
            ("workspace", "workspaces"),
            ("team", "teams"),
            ("resource", "resources"),
            ("policy", "policies"),
            ("principal", "principals"),
        ] {
            let (_, list) = world.app.owner().get(&format!("/api/v1/{path}")).await;
            let id = list[path][0]["id"].as_str().unwrap().to_owned();
            world.known.insert(kind.to_owned(), id);
        }
        let boss = world.known["principal"].clone();
        // An admin delegates a part of a delegation that their own principal received.
        let admin = json!({"tenant_id": TENANT, "principal_class": "human",
            "display_name": "Admin", "external_subject": format!("dev|{ADMIN}")});
        let admin = world.made("principals", admin).await;
        let held = world.delegated(&boss, &admin).await;
        world.known.insert("held".to_owned(), held);
        world.known.insert("principal".to_owned(), boss.clone());
        let parent = world.delegated(&boss, BOT).await;
        world.known.insert("parent".to_owned(), parent);
        let (_, keys) = world.app.owner().get("/api/v1/keys").await;
        let kids = keys["keys"].as_array().unwrap().iter();
        let mut kids = kids.filter_map(|key| key["kid"].as_str());
        let kid = kids.find(|kid| kid.starts_with("svc-evidence-")).unwrap().to_owned();
        world.known.insert("kid".to_owned(), kid);
        let machine = json!({"tenant_id": TENANT, "entity_class": "ticket", "states": ["open"]});
        world.made("state-machines", machine).await;
        let consultant = json!({"display_name": "First", "email": "first@advice.example"});
        world.made("consultants", consultant).await;
        let decision = world.decided(1200.0).await;
        let sealed = world.key.post("/v1/evidence/seal", json!({"decision_id": decision})).await;
        assert_eq!(sealed.0, 200, "{:#}", sealed.1);
        world.known.insert("decision".to_owned(), decision);
        world
    }

    /// Returns a client that may call this path: the owner, unless the path needs another caller.
    pub(super) fn client(&self, path: &str) -> Client {
        if path.starts_with("/api/v1/app/") {
            return self.app.person(TENANT, "admin", ADMIN);
        }
        if path.starts_with("/v1/delegations") || path.starts_with("/v1/hooks/") {
            return self.delegating.clone();
        }
        if path.starts_with("/v1/") || path.starts_with("/api/v1/runtime/") {
            return self.key.clone();
        }
        self.app.owner()
    }

    /// Prepares the records that the example needs; returns its path and its body.
    pub(super) async fn ready(&mut self, example: &Example) -> (String, Value) {
        let mut path = example.path.clone();
        if path.starts_with("/v1/reality-snapshots") {
            self.fed_anchor().await;
        }
        let delegates = ["/v1/delegations", "/api/v1/app/delegations"];
        if delegates.iter().any(|own| path.starts_with(own)) || path.ends_with("/renew") {
            let lift = "UPDATE stop_signals SET state = 'lifted'; \
                        UPDATE quarantines SET state = 'released'";
            self.app.database.run(lift).await;
        }
        if let Some(address) = self.relationship(&path) {
            path = address;
        } else if path.contains('{') {
            path = self.filled(&path).await;
        }
        if path.ends_with("/state-transitions") {
            // A new state machine has no transitions yet: the example's transition is possible.
            let machine = json!({"tenant_id": TENANT, "entity_class": "x", "states": ["open"]});
            self.made("state-machines", machine).await;
        }
        let mut body = self.own(&example.body);
        // Names and slugs are unique: the owner's operation creates the same example.
        match path.as_str() {
            "/api/v1/app/principals" => body["name"] = json!("team-bot"),
            "/api/v1/app/purposes" => body["slug"] = json!("team-travel"),
            "/api/v1/app/delegations" => body["parent_id"] = json!(self.known["held"]),
            // An admin creates and grants only MCP servers.
            "/api/v1/app/external-apps" => {
                body["connector_kind"] = "mcp".into();
                body["mcp"] = json!({"slug": "team-crm"});
            }
            "/api/v1/app/relationships/uses" => {
                body["used_id"] = json!(self.mcp_server("granted").await);
                body["used_kind"] = "external_app".into();
            }
            _ if path.ends_with("/pin") => {
                body["definition_digest"] = json!(self.known["definition_digest"]);
            }
            _ => {}
        }
        (path, body)
    }

    /// Stores the ids of records that an example created, for later examples that refer to them.
    pub(super) fn settle(&mut self, example: &Example, answer: &Value) {
        if !example.path.contains('{') {
            self.remember(answer);
        }
    }

    async fn decided(&self, amount: f64) -> String {
        let (_, answer) = self.key.post("/api/v1/runtime/evaluate", asking(amount, "DE")).await;
        answer["decision_id"].as_str().unwrap().to_owned()
    }

    /// Creates an anchor without snapshots that names the public key of the examples.
    async fn fed_anchor(&mut self) -> String {
        let owner = self.known["principal"].clone();
        let body = json!({
            "tenant_id": TENANT, "anchor_type": "risk_context", "display_name": "fed",
            "authority": {"owner_entity_id": owner},
            "source": {"feeder_key_ids": [self.known["feeder"]]},
        });
        self.made("reality-anchors", body).await
    }

    /// Creates a record as the owner; returns its id.
    async fn made(&mut self, path: &str, body: Value) -> String {
        let (status, made) = self.app.owner().post(&format!("/api/v1/{path}"), body).await;
        assert_eq!(status, 201, "{made:#}");
        self.remember(&made);
        id_of(&made)
    }

    /// Creates a webhook endpoint and deletes the earlier ones, because a tenant may have only a
    /// few; returns its id.
    async fn endpoint(&mut self) -> String {
        let delete = "UPDATE webhook_endpoints SET state = 'deleted' WHERE state <> 'deleted'";
        self.app.database.run(delete).await;
        let body = json!({"tenant_id": TENANT, "url": "https://hooks.example.com/authority"});
        self.made("webhook-endpoints", body).await
    }

    /// Creates a dead delivery of a stored event.
    async fn dead_letter(&mut self) -> String {
        let endpoint = self.endpoint().await;
        let dead = format!(
            "WITH event AS ( \
                 INSERT INTO events (id, tenant_id, last_sequence, event_types, bodies) \
                 VALUES ('svc:event:0198dead' || gen_random_uuid(), '{TENANT}', 1000001, 'x', '') \
                 RETURNING id) \
             INSERT INTO webhook_deliveries (id, tenant_id, endpoint_id, event_id, event_type, \
                 sequence, state, ended_at) \
             SELECT 'svc:delivery:0198c0ffee' || gen_random_uuid(), '{TENANT}', '{endpoint}', event.id, \
                 'x', 1, 'dead', now() \
             FROM event"
        );
        self.app.database.run(&dead).await;
        let path = format!("/api/v1/webhook-endpoints/{endpoint}/dead-letters");
        let (_, dead) = self.app.owner().get(&path).await;
        dead["dead_letters"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Returns the path with ids of records on which the operation can succeed.
    async fn filled(&mut self, path: &str) -> String {
        let id = if let Some(id) = self.of_events(path).await {
            id
        } else if path.contains("/approvals/") {
            self.held(path).await
        } else if path.contains("/delegations/") {
            self.delegation(path).await
        } else if path.contains("/quarantines/") {
            let body = json!({"tenant_id": TENANT, "action": "never.*", "reason": "a test"});
            self.made("quarantines", body).await
        } else if path.contains("/stop-signals/") {
            let actor = "svc:agent:acme:support-bot";
            let body = json!({"tenant_id": TENANT, "actor_id": actor, "reason": "a test"});
            self.made("stop-signals", body).await
        } else if path == "/api/v1/app/policies/{id}/activate"
            || path.contains("/policies/") && path.ends_with("observe")
        {
            self.draft(path).await
        } else if path.contains("/api-keys/") {
            let body = json!({"tenant_id": TENANT, "label": "x", "scopes": ["runtime:read"]});
            self.made("api-keys", body).await
        } else if path.contains("/key-rotation/") {
            let made = self.app.owner().post("/api/v1/keys", json!({"alg": "ES256"})).await.1;
            let body = json!({"kid": made["key"]["kid"]});
            let (status, made) = self.app.owner().post("/api/v1/key-rotation", body).await;
            assert_eq!(status, 201, "{made:#}");
            id_of(&made)
        } else if path.contains("/domains/") && path.ends_with("/verify") {
            let body = json!({"tenant_id": TENANT, "fqdn": "verified.example"});
            let (_, made) = self.app.owner().post("/api/v1/domains", body).await;
            let token = made["domain"]["verification_token"].as_str().unwrap();
            self.dns.set("_svc-challenge.verified.example", &[token]);
            id_of(&made)
        } else if path.contains("/mcp-servers/") {
            self.mcp_server("observed").await;
            "observed".to_owned()
        } else if path.ends_with("/pin") {
            self.quarantined_tool().await
        } else if path.starts_with("/v1/hooks/") {
            "claude-code?purpose=invoice-settlement".to_owned()
        } else if path.contains(":report") {
            self.decided(1200.0).await
        } else if path.contains(":replay") {
            self.known["decision"].clone()
        } else {
            let collection = path.split("/{").next().unwrap().rsplit('/').next().unwrap();
            let kind = match collection {
                "policies" => "policy".to_owned(),
                "legal-entities" => "legal_entity".to_owned(),
                "reality-coupling-checks" => "coupling_check".to_owned(),
                "stable-drift-events" => "drift_event".to_owned(),
                "consultant-certifications" => "certification".to_owned(),
                "consultant-tenant-links" => "link".to_owned(),
                "consultant-leads" => "lead".to_owned(),
                plain => plain.trim_end_matches('s').replace('-', "_"),
            };
            self.known[&kind].clone()
        };
        let (before, rest) = path.split_once('{').unwrap();
        format!("{before}{id}{}", rest.split_once('}').unwrap().1)
    }

    /// Creates a delegation that may be delegated further; returns its id.
    async fn delegated(&mut self, from: &str, to: &str) -> String {
        let body = json!({
            "tenant_id": TENANT, "delegator_id": from, "delegate_id": to,
            "actions": ["payment.*"], "purposes": ["invoice-settlement"], "max_amount": "100",
            "currency": "EUR", "can_delegate": true,
        });
        self.made("delegations", body).await
    }

    /// Creates a draft of a policy, because later examples change the policy that the example of its
    /// creation makes. It observes if the operation ends an observation.
    async fn draft(&self, path: &str) -> String {
        let body = json!({"tenant_id": TENANT, "regime": "internal", "state": "draft",
            "cedar": "forbid (principal, action, resource) unless { context has amount };"});
        let id = id_of(&self.app.owner().post("/api/v1/policies", body).await.1);
        if path.ends_with("/unobserve") {
            let observe = format!("/api/v1/policies/{id}/observe");
            assert_eq!(self.app.owner().post(&observe, json!({})).await.0, 200);
        }
        id
    }

    /// Returns the id of a delegation in a state that permits the path's operation.
    async fn delegation(&mut self, path: &str) -> String {
        let id = if path == "/api/v1/app/delegations/{id}/renew" {
            self.lent("held").await
        } else if path.starts_with("/v1/") {
            self.lent("parent").await
        } else {
            self.delegated(BOT, "svc:agent:acme:support-bot").await
        };
        let before = [("/reinstate", "suspend"), ("/withdraw", "approve")];
        if let Some((_, verb)) = before.iter().find(|(verb, _)| path.ends_with(verb)) {
            let path = format!("/api/v1/delegations/{id}/{verb}");
            assert_eq!(self.app.owner().post(&path, json!({})).await.0, 200);
        }
        id
    }

    /// Returns the id of an endpoint, a notification, a delivery or an event, if the path has one.
    async fn of_events(&mut self, path: &str) -> Option<String> {
        let id = if path.contains("/webhook-endpoints/") {
            let id = self.endpoint().await;
            if path.ends_with(":enable") {
                let fail = "UPDATE webhook_endpoints SET state = 'disabled' WHERE id = ";
                self.app.database.run(&format!("{fail}'{id}'")).await;
            }
            id
        } else if path.contains("/notifications/") {
            // Creating an endpoint notifies the tenant's admins.
            let body = json!({"tenant_id": TENANT, "url": "https://hooks.example.com/authority"});
            self.made("webhook-endpoints", body).await;
            let admin = self.client("/api/v1/app/notifications");
            let (_, list) = admin.get("/api/v1/app/notifications?limit=1").await;
            list["notifications"][0]["id"].as_str().unwrap().to_owned()
        } else if path.contains("/deliveries/") {
            self.dead_letter().await
        } else if path.contains("/events/") {
            let (endpoint, id) =
                (self.endpoint().await, format!("svc:event:0198c0ffee{}", path.len()));
            self.known.insert("endpoint".to_owned(), endpoint);
            let event = format!(
                "INSERT INTO events (id, tenant_id, last_sequence, event_types, bodies) \
                 VALUES ('{id}', '{TENANT}', 1000000, 'x', '')"
            );
            self.app.database.run(&event).await;
            id
        } else {
            return None;
        };
        Some(id)
    }

    /// Returns the example with the ids of the test's own records.
    fn own(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.contains("c0ffee") => {
                let parts: Vec<_> = text.split(':').collect();
                let kind = match parts[..] {
                    ["svc", "ent", _, kind, _] | ["svc", kind, _] => kind,
                    ["svc", "del", _, _] => "parent",
                    _ => "kid",
                };
                self.known[kind].clone().into()
            }
            Value::Array(items) => items.iter().map(|item| self.own(item)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                members
                    .map(|(name, value)| (name.clone(), self.own(value)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            other => other.clone(),
        }
    }
}

#[track_caller]
fn id_of(answer: &Value) -> String {
    let mut records = answer.as_object().unwrap().values();
    records.find_map(|record| record["id"].as_str()).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_in_the_document_has_its_success() {
    let mut world = World::start().await;
    let examples = examples(&document(&world.app).await);
    assert!(examples.len() > 70, "{}", examples.len());
    let mut wrong = Vec::new();
    for example in examples {
        let client = world.client(&example.path);
        let (path, body) = world.ready(&example).await;
        let method = example.method.parse().unwrap();
        let request = client.http.request(method, format!("{}{path}", client.base));
        let sent = request.bearer_auth(&client.token).json(&body).send().await.unwrap();
        let (status, headers) = (sent.status().as_u16(), sent.headers().clone());
        let answer: Value = sent.json().await.unwrap_or_default();
        if status != example.status {
            wrong.push(format!("{} {path} {body}: {status} {answer}", example.method));
            continue;
        }
        if let Some(location) = headers.get("location") {
            let location = location.to_str().unwrap();
            let (found, record) = client.get(location).await;
            if found != 200 {
                wrong.push(format!("Location of {path}: {location}: {found} {record}"));
            }
        }
        let sometimes = ["Idempotency-Replayed", "RateLimit", "RateLimit-Policy"];
        for name in example.gives.iter().filter(|name| !sometimes.contains(&name.as_str())) {
            if !headers.contains_key(name.as_str()) {
                wrong.push(format!("{} {path} lacks {name}", example.method));
            }
        }
        let is_json = headers.get("content-type").is_some_and(|kind| kind == "application/json");
        if is_json && answer.is_object() && (answer["ok"] == true) != begins_with_ok(&example.path)
        {
            wrong.push(format!("{} {path}: {answer}", example.method));
        }
        world.settle(&example, &answer);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
