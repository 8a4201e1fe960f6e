//! A tenant's slug is accepted wherever its id is.

use authority_model::proto::registry::{
    CreatePrincipalRequest, ListPrincipalsRequest, ListPrincipalsResponse, Principal,
};
use prost::Message;
use serde_json::{Value, json};

use super::document;
use crate::support::{Client, Plain, TestApp, wire::Caller};

const ACME: &str = "svc:tenant:acme";
const PRINCIPALS: &str = "/authority.registry.v1.PrincipalService";

/// Returns the paths of lists and exports that can be filtered by `tenant_id`.
fn filtered(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    let takes = |operations: &Value| {
        let parameters = operations["get"]["parameters"].as_array();
        parameters.into_iter().flatten().any(|parameter| parameter["name"] == "tenant_id")
    };
    let lists = paths.filter(|(path, operations)| {
        // A search needs a text.
        let is_list =
            !path.contains('{') && !path.ends_with(":stream") && !path.ends_with("/search");
        takes(operations) && is_list
    });
    lists.map(|(path, _)| path.clone()).collect()
}

/// The callers of each surface: the owner, an admin and an API key of acme.
struct Callers {
    owner: Client,
    admin: Client,
    key: Client,
}

impl Callers {
    async fn of(app: &TestApp) -> Self {
        let scopes = ["runtime:read", "evidence:read", "events:read", "webhooks:write"];
        let admin = app.person(ACME, "admin", "admin@acme.example");
        let key = app.client(&app.api_key(ACME, &scopes).await);
        Self { owner: app.owner(), admin, key }
    }

    fn at(&self, path: &str) -> &Client {
        match path {
            _ if path.starts_with("/api/v1/app/") => &self.admin,
            _ if path.starts_with("/v1/") => &self.key,
            _ => &self.owner,
        }
    }
}

/// Returns the ids in a list or an export, and the status.
async fn listed(client: &Client, path: &str, tenant: &str) -> (u16, Vec<String>) {
    let (status, text) = client.text("GET", &format!("{path}?tenant_id={tenant}"), None).await;
    let mut ids = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let members = line.as_object().into_iter().flat_map(|line| line.values());
        let records = members.flat_map(|member| match member {
            Value::Array(records) => records.clone(),
            record => vec![record.clone()],
        });
        let id = |record: &Value| {
            let ids = ["id", "decision_id", "event_id", "starts_at"];
            ids.iter().find_map(|id| record[*id].as_str().map(str::to_owned))
        };
        ids.extend(records.filter_map(|record| id(&record)));
    }
    (status, ids)
}

/// Returns the error without the request's id and without the tenant that it names.
async fn refused(client: &Client, path: &str, tenant: &str) -> (u16, Value) {
    let (status, mut error) = client.get(&format!("{path}?tenant_id={tenant}")).await;
    error["request_id"] = Value::Null;
    let slug = tenant.trim_start_matches("svc:tenant:");
    let text = error.to_string().replace(&format!("svc:tenant:{slug}"), "…");
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slug_filters_every_list_like_its_id() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let body = json!({"name": "Other", "slug": "other"});
    assert_eq!(app.owner().post("/api/v1/tenants", body).await.0, 201);
    let callers = Callers::of(&app).await;
    let lists = filtered(&document(&app).await);
    assert!(lists.len() > 60, "{lists:?}");
    let (mut shown, mut wrong) = (0, Vec::new());
    for path in &lists {
        let client = callers.at(path);
        let by_id = listed(client, path, ACME).await;
        if by_id.0 == 403 {
            // This list requires a key that is bound to agents. This key is not.
            continue;
        }
        let by_slug = listed(client, path, "acme").await;
        if by_id.0 != 200 || by_id != by_slug {
            wrong.push(format!("{path}: {by_id:?}, by slug {by_slug:?}"));
        }
        shown += by_id.1.len();
        let unknown = refused(client, path, "svc:tenant:nobody").await;
        // For an unknown tenant, a list of records is empty, as the interface specification requires.
        // Any other operation is refused.
        let members = unknown.1.as_object().into_iter().flat_map(|answer| answer.values());
        let is_empty = unknown.0 == 200 && members.filter_map(Value::as_array).all(Vec::is_empty);
        let is_refused = [400, 404].contains(&unknown.0);
        // An unknown slug gets the same error. Callers of a tenant get it for any other tenant.
        let mut same = vec!["nobody"];
        if path.starts_with("/v1/") || path.starts_with("/api/v1/app/") {
            same.extend(["svc:tenant:other", "other"]);
        }
        for tenant in same {
            let other = refused(client, path, tenant).await;
            if !(is_empty || is_refused) || other != unknown {
                wrong.push(format!("{path} of {tenant}: {other:?}, unknown {unknown:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(shown > 50, "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slug_creates_and_exchanges_like_its_id() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let body = json!({"name": "Other", "slug": "other"});
    assert_eq!(app.owner().post("/api/v1/tenants", body).await.0, 201);
    let Callers { owner, admin, key } = Callers::of(&app).await;
    let hook = |tenant: &str| json!({"tenant_id": tenant, "url": "https://hooks.example.com/x"});
    let signal =
        |tenant: &str| json!({"tenant_id": tenant, "action": "never.*", "reason": "a test"});
    for (client, path, body) in [
        (&owner, "/api/v1/webhook-endpoints", hook("acme")),
        (&owner, "/api/v1/quarantines", signal("acme")),
        (&admin, "/api/v1/app/quarantines", signal("acme")),
        (&key, "/v1/webhook-endpoints", hook("acme")),
    ] {
        let (status, made) = client.post(path, body).await;
        let record = made.as_object().unwrap().values().find(|record| record.is_object());
        assert_eq!((status, record.unwrap()["tenant_id"].text()), (201, ACME), "{path}: {made:#}");
    }
    // The credential decides: another tenant's slug gets the same error as an unknown slug.
    for (client, path, body) in [
        (&admin, "/api/v1/app/quarantines", signal as fn(&str) -> Value),
        (&key, "/v1/webhook-endpoints", hook as fn(&str) -> Value),
    ] {
        let mut answers = Vec::new();
        for tenant in ["other", "svc:tenant:other", "nobody"] {
            let (status, mut refused) = client.post(path, body(tenant)).await;
            refused["request_id"] = Value::Null;
            let text = refused.to_string().replace("other", "nobody");
            answers.push((status, text));
        }
        assert_eq!(answers[0].0, 400, "{path}: {answers:?}");
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{path}: {answers:?}");
    }
    let lead = json!({"submitter_email": "ann@example.org"});
    let (status, made) = owner.post("/api/v1/consultant-leads", lead).await;
    assert_eq!(status, 201, "{made:#}");
    let path = format!("/api/v1/consultant-leads/{}/convert", made["lead"]["id"].as_str().unwrap());
    let (status, lead) = owner.post(&path, json!({"converted_tenant_id": "other"})).await;
    let converted = &lead["lead"]["converted_tenant_id"];
    assert_eq!((status, converted), (200, &json!("svc:tenant:other")), "{lead:#}");
}

/// gRPC messages are completed as well, and only in requests: a record's own texts stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slug_works_over_grpc() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let owner = Caller::owner(&app);
    let principal = Principal {
        tenant_id: "acme".to_owned(),
        principal_class: "human".to_owned(),
        display_name: "acme".to_owned(),
        ..Principal::default()
    };
    let create = CreatePrincipalRequest { principal: Some(principal) };
    let made = owner.grpc(&format!("{PRINCIPALS}/CreatePrincipal"), create.encode_to_vec()).await;
    let made = Principal::decode(made.unwrap()).unwrap();
    assert_eq!((made.tenant_id.as_str(), made.display_name.as_str()), (ACME, "acme"));
    let list = |tenant: &str| {
        let request =
            ListPrincipalsRequest { tenant_id: Some(tenant.to_owned()), ..<_>::default() };
        let (owner, request) = (owner.clone(), request.encode_to_vec());
        async move { owner.grpc(&format!("{PRINCIPALS}/ListPrincipals"), request).await }
    };
    let found = ListPrincipalsResponse::decode(list("acme").await.unwrap()).unwrap();
    assert!(found.principals.iter().any(|one| one.id == made.id), "{found:?}");
    for unknown in ["nobody", "svc:tenant:nobody", "ACME"] {
        let none = ListPrincipalsResponse::decode(list(unknown).await.unwrap()).unwrap();
        assert_eq!(none.principals.len(), 0, "{unknown}");
    }
    for unreadable in ["acme:x", "svc:agent:acme:invoice-bot"] {
        let refused = list(unreadable).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{unreadable}: {refused:?}");
    }
}
