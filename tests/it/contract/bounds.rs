//! Lists that limit a record: only null removes such a bound, and an empty list is refused. The
//! removal causes an event.

use std::time::{Duration, Instant};

use authority_model::{
    proto::{
        delegation::{Delegation, NarrowDelegationRequest},
        keys::{ApiKey, UpdateApiKeyRequest},
        registry::{Purpose, UpdatePurposeRequest},
    },
    wire::FieldMask,
};
use prost::Message;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{Client, Plain, TENANT, TestApp, wire, wire::Caller};

const BOT: &str = "svc:agent:acme:invoice-bot";
const OTHER: &str = "svc:agent:acme:support-bot";
const UPDATE_KEY: &str = "/authority.keys.v1.ApiKeyService/UpdateApiKey";
const UPDATE_PURPOSE: &str = "/authority.registry.v1.PurposeService/UpdatePurpose";
const NARROW: &str = "/authority.delegation.v1.DelegationService/NarrowDelegation";

/// The lists that limit each kind of record.
const OF_DELEGATIONS: [&str; 4] = ["purposes", "jurisdictions", "resource_ids", "workspace_ids"];
const OF_PURPOSES: [&str; 2] = ["principal_classes", "jurisdictions"];
const OF_KEYS: [&str; 2] = ["principal_ids", "ip_allowlist"];

struct World {
    app: TestApp,
    delegation: String,
    purpose: String,
    /// The id of a key that is bound to an agent and to an address.
    key: String,
}

async fn made(client: &Client, path: &str, body: Value) -> (String, Value) {
    let (status, made) = client.post(path, body).await;
    assert_eq!(status, 201, "{path}: {made:#}");
    let record = made.as_object().unwrap().values().find(|member| member.is_object()).unwrap();
    (record["id"].as_str().unwrap().to_owned(), made)
}

fn key() -> Value {
    json!({"tenant_id": TENANT, "label": "k", "scopes": ["runtime:write"],
           "principal_ids": [BOT], "ip_allowlist": ["127.0.0.0/8", "::1"]})
}

fn purpose(slug: &str) -> Value {
    json!({"tenant_id": TENANT, "slug": slug, "name": slug, "allowed_actions": ["payment.*"],
           "principal_classes": ["agent"], "jurisdictions": ["DE"]})
}

impl World {
    async fn start() -> Self {
        let app = TestApp::seeded().await;
        let delegation = app.demo().await.delegation_id;
        let (key, _) = made(&app.owner(), "/api/v1/api-keys", key()).await;
        let (purpose, _) = made(&app.owner(), "/api/v1/purposes", purpose("settling")).await;
        Self { app, delegation, purpose, key }
    }

    /// Returns the calls that create and change records with such lists: caller, method, path,
    /// other fields, and the names of the lists.
    async fn writes(&self) -> Vec<(Client, &'static str, String, Value, &'static [&'static str])> {
        let (owner, admin) =
            (self.app.owner(), self.app.client(&self.app.member_token(TENANT, "admin")));
        let mut agent = key();
        agent["scopes"] = json!(["delegations:write"]);
        let (_, agent) = made(&owner, "/api/v1/api-keys", agent).await;
        let agent = self.app.client(agent["secret"].as_str().unwrap());
        let part = json!({"parent_id": self.delegation, "delegate_id": OTHER,
                          "actions": ["payment.execute"]});
        let whole = json!({"tenant_id": TENANT, "delegator_id": BOT, "delegate_id": OTHER,
                           "actions": ["payment.execute"]});
        let (delegations, keys) = ("/api/v1/delegations", "/api/v1/api-keys");
        let of_key = format!("api-keys/{}", self.key);
        vec![
            (owner.clone(), "POST", delegations.to_owned(), whole, &OF_DELEGATIONS),
            (agent, "POST", "/v1/delegations".to_owned(), part, &OF_DELEGATIONS),
            (
                owner.clone(),
                "POST",
                format!("{delegations}/{}/narrow", self.delegation),
                json!({}),
                &OF_DELEGATIONS,
            ),
            (owner.clone(), "POST", "/api/v1/purposes".to_owned(), purpose("other"), &OF_PURPOSES),
            (
                owner.clone(),
                "PATCH",
                format!("/api/v1/purposes/{}", self.purpose),
                json!({}),
                &OF_PURPOSES,
            ),
            (owner.clone(), "POST", keys.to_owned(), key(), &OF_KEYS),
            (owner, "PATCH", format!("/api/v1/{of_key}"), json!({}), &OF_KEYS),
            (admin.clone(), "POST", "/api/v1/app/api-keys".to_owned(), key(), &OF_KEYS),
            (admin, "PATCH", format!("/api/v1/app/{of_key}"), json!({}), &OF_KEYS),
        ]
    }

    /// Returns a list of the key, read as the owner.
    async fn of_key(&self, list: &str) -> Value {
        self.app.owner().get(&format!("/api/v1/api-keys/{}", self.key)).await.1["api_key"][list]
            .clone()
    }
}

/// A client sends an empty list if its two lists have no common item, or after removing the last
/// item.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_list_is_refused_wherever_it_would_bound_nothing() {
    let world = World::start().await;
    for (client, method, path, body, lists) in world.writes().await {
        for list in lists {
            // Sends the empty list with other fields, of which one may be invalid.
            for (value, more) in [("[]", ""), ("[ \n\t]", ""), ("[]", ", \"notes\": 7")] {
                let mut members = body.as_object().unwrap().clone();
                members.remove(*list);
                let mut text = Value::Object(members).to_string();
                text.pop();
                let comma = if text == "{" { "" } else { ", " };
                let text = format!("{text}{comma}\"{list}\": {value}{more}}}");
                let sent =
                    client.http.request(method.parse().unwrap(), format!("{}{path}", client.base));
                let sent =
                    sent.header("content-type", "application/json").bearer_auth(&client.token);
                let answer = sent.body(text.clone()).send().await.unwrap();
                let (status, refused): (u16, Value) =
                    (answer.status().as_u16(), answer.json().await.unwrap());
                assert_eq!(status, 400, "{method} {path} {text}: {refused:#}");
                let fault =
                    refused["details"].as_array().unwrap().iter().find(|at| at["field"] == *list);
                let problem =
                    fault.unwrap_or_else(|| panic!("{text}: {refused:#}"))["problem"].as_str();
                assert!(problem.unwrap().contains("leave it out for no bound"), "{refused:#}");
            }
        }
    }
    for list in OF_KEYS {
        assert_ne!(world.of_key(list).await, Value::Null, "the key must not change");
    }
}

/// Lists with a single empty item, and other empty values, are refused like an empty list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_nothing_is_refused_like_an_empty_one() {
    let world = World::start().await;
    for (client, method, path, body, lists) in world.writes().await {
        for list in lists {
            for nothing in
                [json!([""]), json!([" "]), json!([null]), json!([[]]), json!({}), json!("")]
            {
                let mut body = body.clone();
                body[*list] = nothing.clone();
                let (status, refused) = client.call(method, &path, Some(body), &[]).await;
                assert_eq!(status, 400, "{method} {path} {list} {nothing}: {refused:#}");
                assert!(refused.to_string().contains(list), "{refused:#}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn null_takes_a_bound_away_and_that_is_an_event() {
    let world = World::start().await;
    let admin = world.app.client(&world.app.member_token(TENANT, "admin"));
    let owner = world.app.owner();
    let of_key = format!("/api/v1/app/api-keys/{}", world.key);
    let of_purpose = format!("/api/v1/purposes/{}", world.purpose);
    for (client, path, kind, id, lists) in [
        (&admin, &of_key, "api_key", &world.key, &OF_KEYS),
        (&owner, &of_purpose, "purpose", &world.purpose, &OF_PURPOSES),
    ] {
        let (status, other) = client.patch(path, json!({"notes": "n"})).await;
        assert_eq!(status, 200, "{other:#}");
        for list in lists {
            assert!(
                other[kind][*list].is_array(),
                "fields that are not named must not change: {other:#}"
            );
            let (status, changed) = client.patch(path, json!({*list: null, "notes": null})).await;
            assert_eq!(status, 200, "{changed:#}");
            assert_eq!(
                (&changed[kind][*list], &changed[kind]["notes"]),
                (&Value::Null, &Value::Null)
            );
            let event = told(&world.app, id, list).await;
            assert_eq!(
                (event["data"]["kind"].text(), &event["data"]["authority_id"]),
                (kind, &json!(id))
            );
            let again = client.patch(path, json!({*list: null})).await;
            assert_eq!(again.0, 200, "{:#}", again.1);
        }
        let (status, history) = owner.get(&format!("/api/v1/entities/{id}/history")).await;
        assert_eq!(status, 200);
        let text = history.to_string();
        assert!(text.contains(&format!("\"{}\":null", lists[0])), "{history:#}");
        let (_, entity) = owner.get(&format!("/v1/entities/{id}")).await;
        assert_eq!(entity["record"][lists[1]], Value::Null, "{entity:#}");
        let taken =
            events(&world.app).await.into_iter().filter(|event| event["subject_ref"] == **id);
        let taken = taken.filter(|event| event["data"]["unbound"].is_string()).count();
        assert_eq!(taken, 2, "one event per list; none for lists without a bound");
    }
}

/// A delegation's bounds are never removed, only narrowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn null_is_wider_where_only_less_is_permitted() {
    let world = World::start().await;
    let narrow = format!("/api/v1/delegations/{}/narrow", world.delegation);
    let (_, before) =
        world.app.owner().get(&format!("/api/v1/delegations/{}", world.delegation)).await;
    for list in OF_DELEGATIONS {
        let (status, answer) = world.app.owner().post(&narrow, json!({list: null})).await;
        let is_bound = before["delegation"][list].is_array();
        assert_eq!(status, if is_bound { 409 } else { 200 }, "{list}: {answer:#}");
        if !is_bound {
            assert_eq!(answer["delegation"][list], Value::Null);
        }
    }
}

fn mask(paths: &[&str]) -> FieldMask {
    FieldMask { paths: paths.iter().map(ToString::to_string).collect() }
}

/// In gRPC's encoding, an absent list and an empty list are the same bytes. A separate mask
/// therefore removes the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_grpc_an_empty_list_in_the_mask_is_refused() {
    let world = World::start().await;
    let caller = Caller::owner(&world.app);
    let refused = async |rpc: &str, request: Vec<u8>, member: &str| {
        let status = caller.grpc(rpc, request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert_eq!(wire::named(&status), [member], "{status:?}");
    };
    let of_key = |api_key: ApiKey, named: &[&str], cleared: &[&str]| {
        let (update_mask, clear) = (Some(mask(named)), Some(mask(cleared)));
        UpdateApiKeyRequest { id: world.key.clone(), api_key: Some(api_key), update_mask, clear }
    };
    for list in OF_KEYS {
        let member = format!("api_key.{list}");
        for named in [&[list][..], &["label", list], &[list, list]] {
            let key = ApiKey { label: "other".to_owned(), ..ApiKey::default() };
            refused(UPDATE_KEY, of_key(key, named, &[]).encode_to_vec(), &member).await;
        }
        refused(UPDATE_KEY, of_key(ApiKey::default(), &[list], &[list]).encode_to_vec(), &member)
            .await;
    }
    for list in OF_PURPOSES {
        let purpose = Some(Purpose::default());
        let (id, update_mask) = (world.purpose.clone(), Some(mask(&[list])));
        let request = UpdatePurposeRequest { id, purpose, update_mask, clear: None };
        refused(UPDATE_PURPOSE, request.encode_to_vec(), &format!("purpose.{list}")).await;
    }
    for list in OF_DELEGATIONS {
        let delegation = Some(Delegation::default());
        let (id, update_mask) = (world.delegation.clone(), Some(mask(&[list])));
        let request = NarrowDelegationRequest { id, delegation, update_mask, clear: None };
        refused(NARROW, request.encode_to_vec(), &format!("delegation.{list}")).await;
    }
    // The mask that removes bounds can't clear other fields.
    refused(UPDATE_KEY, of_key(ApiKey::default(), &[], &["expires_at"]).encode_to_vec(), "clear")
        .await;
    assert_eq!(world.of_key("principal_ids").await, json!([BOT]));

    // If the mask names a list twice, the list is set and not emptied.
    let other = ApiKey { principal_ids: vec![OTHER.to_owned()], ..ApiKey::default() };
    let twice = of_key(other, &["principal_ids", "principal_ids"], &[]).encode_to_vec();
    caller.grpc(UPDATE_KEY, twice).await.unwrap();
    assert_eq!(world.of_key("principal_ids").await, json!([OTHER]));
    let cleared = of_key(ApiKey::default(), &[], &["principal_ids"]);
    let answer: ApiKey = world.app.owner().grpc_web(UPDATE_KEY, &cleared).await;
    assert!(answer.principal_ids.is_empty() && !answer.ip_allowlist.is_empty());
    assert_eq!(world.of_key("principal_ids").await, Value::Null);
}

/// The same rules apply to the JSON text of a grant. A stored empty list does not grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_list_in_constraints_grants_nothing() {
    let world = World::start().await;
    let owner = world.app.owner();
    let row = |constraints: &str| {
        json!({"agent_id": OTHER, "used_id": "invoice.read", "used_kind": "action",
               "constraints_json": constraints})
    };
    let uses = "/api/v1/relationships/uses";
    for constraints in [
        r#"{"jurisdictions": []}"#,
        "{\"jurisdictions\":[\n]}",
        r#"{"jurisdictions": ["DE"], "jurisdictions": []}"#,
        r#"{"jurisdictions": [], "jurisdictions": ["DE"]}"#,
        r#"{"jurisdictions": [""]}"#,
        r#"{"max_uses": {"count": 1, "window_seconds": 60}, "jurisdictions": []}"#,
        r#"{"hours": {"from": "08:00", "to": "18:00", "days": []}}"#,
    ] {
        let (status, refused) = owner.post(uses, row(constraints)).await;
        assert_eq!(status, 400, "{constraints}: {refused:#}");
        assert_eq!(refused["details"][0]["field"], "constraints_json", "{refused:#}");
    }
    made(&owner, uses, row(r#"{"jurisdictions": ["DE"]}"#)).await;
    let client = world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await);
    let ask =
        json!({"subject": OTHER, "action": "invoice.read", "context": {"jurisdiction": "DE"}});
    let decided = async || client.post("/v1/decisions/evaluate", ask.clone()).await.1;
    assert_eq!(decided().await["reason_code"], "permission_granted");
    let stored = "UPDATE uses SET constraints_json = '{\"jurisdictions\": []}' WHERE used_id = 'invoice.read'";
    world.app.database.run(stored).await;
    world.app.app.graph.catch_up().await;
    let denied = decided().await;
    assert_eq!(
        (denied["decision"].text(), denied["reason_code"].text()),
        ("deny", "constraint_exceeded")
    );
}

async fn events(app: &TestApp) -> Vec<Value> {
    let path = format!("/api/v1/events?tenant_id={TENANT}&limit=500");
    let (status, page) = app.owner().get(&path).await;
    assert_eq!(status, 200, "{page:#}");
    page["events"].as_array().unwrap().clone()
}

/// Waits for the event about removing the bound of this list of the record.
async fn told(app: &TestApp, id: &str, list: &str) -> Value {
    let begun = Instant::now();
    loop {
        let found = events(app).await.into_iter().find(|event| {
            event["event_type"] == "svc.capability.granted"
                && event["subject_ref"] == id
                && event["data"]["unbound"] == list
        });
        if let Some(event) = found {
            return event;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no event of {list} of {id}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
