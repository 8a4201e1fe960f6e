//! A page token is valid only for the same list, filters, tenant and caller.

use authority_model::proto::registry::{ListPrincipalsRequest, ListPrincipalsResponse};
use prost::Message;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{Client, Plain, TENANT, TestApp, Wishes, asking, wire::Caller};

const AGENTS: &str = "/api/v1/app/principals?principal_class=agent";
const RPC: &str = "/authority.registry.v1.PrincipalService/ListPrincipals";

/// Returns the first page's items and its token.
async fn first(client: &Client, list: &str) -> (Vec<Value>, String) {
    let (status, page) = client.get(list).await;
    assert_eq!(status, 200, "{list}: {page:#}");
    let token = page["next_page_token"].as_str().unwrap_or_else(|| panic!("{list}: {page:#}"));
    (items(&page), token.to_owned())
}

#[track_caller]
fn items(page: &Value) -> Vec<Value> {
    page.as_object().unwrap().values().find_map(Value::as_array).unwrap().clone()
}

#[track_caller]
fn is_refused((status, refused): (u16, Value), what: &str) {
    let fault = &refused["details"][0];
    assert_eq!((status, fault["field"].text()), (400, "page_token"), "{what}: {refused:#}");
    let problem = fault["problem"].as_str().unwrap();
    assert!(problem.contains("leave it out to start again"), "{what}: {problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_token_is_for_one_list_and_one_caller() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let ann = app.person(TENANT, "admin", "ann@acme.example");
    let (begin, token) = first(&ann, &format!("{AGENTS}&limit=1")).await;
    assert!(
        token.len() < 200
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
        "{token}"
    );
    let next = |path: &str| format!("{path}&page_token={token}");
    let (status, rest) = ann.get(&next(AGENTS)).await;
    assert_eq!(status, 200, "{rest:#}");
    assert!(!items(&rest).is_empty() && !items(&rest).contains(&begin[0]), "{rest:#}");
    let (status, counted) = ann.get(&next(&format!("{AGENTS}&limit=2&count=true"))).await;
    assert_eq!(status, 200, "the size may change: {counted:#}");
    for other in [
        "/api/v1/app/principals?limit=1",
        "/api/v1/app/principals?principal_class=human",
        &format!("{AGENTS}&state=active"),
        &format!("{AGENTS}&tenant_id={TENANT}"),
        &format!("{AGENTS}&deleted=true"),
        "/api/v1/app/tools?limit=1",
        "/api/v1/app/decisions?limit=1",
        "/api/v1/app/entities/svc:agent:acme:invoice-bot/history?limit=1",
    ] {
        is_refused(ann.get(&next(other)).await, other);
    }
    let bob = app.person(TENANT, "admin", "bob@acme.example");
    is_refused(bob.get(&next(AGENTS)).await, "another admin of the tenant");
    let other = json!({"name": "Other", "slug": "other"});
    assert_eq!(app.owner().post("/api/v1/tenants", other).await.0, 201);
    let elsewhere = app.person("svc:tenant:other", "admin", "ann@acme.example");
    is_refused(elsewhere.get(&next(AGENTS)).await, "another tenant");
    let all = "/api/v1/principals?principal_class=agent";
    is_refused(app.owner().get(&next(all)).await, "the owner");
    // One other letter, at each place.
    for place in 0..token.len() {
        let mut forged = token.clone().into_bytes();
        forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).unwrap();
        is_refused(ann.get(&format!("{AGENTS}&page_token={forged}")).await, &forged);
    }
    assert_eq!(ann.get(&next(AGENTS)).await.0, 200, "a token may be used again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_started_later_continues_a_list_over_rest_and_grpc() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let list = "/api/v1/principals?principal_class=agent";
    let (_, token) = first(&app.owner(), &format!("{list}&limit=1")).await;
    let (_, rest) = app.owner().get(&format!("{list}&page_token={token}")).await;
    let beside = app.beside(Wishes::default()).await;
    let (status, page) = beside.owner().get(&format!("{list}&page_token={token}")).await;
    assert_eq!((status, items(&page)), (200, items(&rest)), "{page:#}");
    let class = Some("agent".to_owned());
    let request = |class: Option<String>| {
        let page_token = token.clone();
        ListPrincipalsRequest { principal_class: class, page_token, ..<_>::default() }
            .encode_to_vec()
    };
    let caller = Caller::owner(&beside);
    let page = ListPrincipalsResponse::decode(caller.grpc(RPC, request(class)).await.unwrap());
    let ids = page.unwrap().principals.into_iter().map(|one| json!(one.id));
    let expected = items(&rest).into_iter().map(|one| one["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let refused = caller.grpc(RPC, request(None)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    let member = beside.member_token(TENANT, "admin");
    let class = Some("agent".to_owned());
    let refused = caller.with(Some(&member)).grpc(RPC, request(class)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
}

/// An export is another list: its tokens continue only the export. The same holds for a history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_and_its_export_have_tokens_of_their_own() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let ann = app.person(TENANT, "admin", "ann@acme.example");
    let agent = "/api/v1/app/entities/svc:agent:acme:invoice-bot/history";
    let name = json!({"display_name": "Invoices"});
    let path = "/api/v1/principals/svc:agent:acme:invoice-bot";
    assert_eq!(app.owner().patch(path, name).await.0, 200);
    for (list, export) in [
        (AGENTS.to_owned(), "/api/v1/app/principals:export?principal_class=agent".to_owned()),
        (agent.to_owned(), format!("{agent}:export")),
    ] {
        let with = |path: &str, query: &str| {
            format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' })
        };
        let after = |path: &str, token: &str| with(path, &format!("page_token={token}"));
        let (_, of_list) = first(&ann, &with(&list, "limit=1")).await;
        let (status, lines) = ann.text("GET", &export, None).await;
        assert_eq!(status, 200, "{lines}");
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() > 2, "{lines:#?}");
        let of_export = lines[0]["page_token"].as_str().unwrap();
        assert_ne!(of_list, of_export);
        is_refused(ann.get(&after(&export, &of_list)).await, &export);
        is_refused(ann.get(&after(&list, of_export)).await, &list);
        let (status, rest) = ann.text("GET", &after(&export, of_export), None).await;
        assert_eq!((status, rest.lines().count()), (200, lines.len() - 1), "{rest}");
        let next: Value = serde_json::from_str(rest.lines().next().unwrap()).unwrap();
        assert_eq!(next, lines[1]);
    }
}

/// A span before now gives another time on each page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_since_a_span_continues() {
    let app = TestApp::seeded().await;
    let agent = app.client(&app.demo().await.api_key);
    for amount in [1.0, 2.0] {
        let (status, _) = agent.post("/api/v1/runtime/evaluate", asking(amount, "DE")).await;
        assert_eq!(status, 200);
    }
    let ann = app.person(TENANT, "admin", "ann@acme.example");
    let list = "/api/v1/app/decisions?since=-1h&limit=1";
    let (begin, token) = first(&ann, list).await;
    let (status, page) = ann.get(&format!("{list}&page_token={token}")).await;
    assert_eq!((status, items(&page).len()), (200, 1), "{page:#}");
    assert_ne!(items(&page), begin);
    let unbounded = format!("/api/v1/app/decisions?limit=1&page_token={token}");
    is_refused(ann.get(&unbounded).await, "without since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_key_continues_its_list_and_no_other_key_does() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let scopes = json!(["runtime:read", "runtime:write"]);
    let key = json!({"tenant_id": TENANT, "label": "asks", "scopes": scopes});
    let (status, made) = app.owner().post("/api/v1/api-keys", key).await;
    assert_eq!(status, 201, "{made:#}");
    let own = app.client(made["secret"].as_str().unwrap());
    for amount in [25_000.0, 26_000.0] {
        let (_, held) = own.post("/api/v1/runtime/evaluate", asking(amount, "DE")).await;
        assert_eq!(held["decision"], "require_approval", "{held:#}");
    }
    let (begin, token) = first(&own, "/v1/approvals?limit=1").await;
    let next = format!("/v1/approvals?limit=1&page_token={token}");
    let rotate = format!("/api/v1/api-keys/{}/rotate", made["api_key"]["id"].as_str().unwrap());
    let (status, rotated) = app.owner().post(&rotate, json!({})).await;
    assert_eq!(status, 200, "{rotated:#}");
    let rotated = app.client(rotated["secret"].as_str().unwrap());
    let (status, page) = rotated.get(&next).await;
    assert_eq!((status, items(&page).len()), (200, 1), "{page:#}");
    assert_ne!(items(&page), begin);
    let other = app.client(&app.api_key(TENANT, &["runtime:read"]).await);
    is_refused(other.get(&next).await, "another key");
}
