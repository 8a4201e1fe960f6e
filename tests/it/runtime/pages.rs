//! Every page of a list is small enough for every client. It is limited in bytes and in items, and
//! the next page continues exactly where it ended.

use authority_model::proto::registry::{ListToolsRequest, ListToolsResponse};
use prost::Message;
use serde_json::{Value, json};

use crate::support::{Client, TENANT, TestApp, only, wire::Caller};

/// The largest size of a page in bytes, encoded for gRPC. Clients accept twice as much.
const LARGEST: usize = (2 << 20) + 4096;

/// Returns a schema of about 190 kB.
fn schema(mark: usize) -> Value {
    json!({"type": "object", "description": format!("{mark} {}", "x".repeat(190_000))})
}

async fn tool(owner: &Client, number: usize) -> String {
    let tool = json!({"tenant_id": TENANT, "name": format!("t{number}"), "function_signature": "f()",
                      "input_schema": schema(number)});
    let (status, made) = owner.create_tool(tool).await;
    assert_eq!(status, 201, "{made}");
    made["tool"]["id"].as_str().unwrap().to_owned()
}

/// Returns the items of all pages, and the number of pages.
async fn pages(client: &Client, path: &str, list: &str) -> (Vec<Value>, usize) {
    let (mut items, mut token, mut count) = (Vec::new(), String::new(), 0);
    loop {
        let begin = if path.contains('?') { '&' } else { '?' };
        let (status, page) = client.get(&format!("{path}{begin}page_token={token}")).await;
        assert_eq!(status, 200, "{page}");
        let found = page[list].as_array().unwrap();
        assert!(!found.is_empty(), "a page has an item");
        assert!(page[list].to_string().len() < LARGEST + 100_000, "{path}");
        items.extend(found.iter().cloned());
        count += 1;
        match page["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => return (items, count),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_large_records_is_one_that_clients_take() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let owner = app.owner();
    let mut made = Vec::new();
    for number in 0..24 {
        made.push(tool(&owner, number).await);
    }
    let (found, count) =
        pages(&owner, &format!("/api/v1/tools?tenant_id={TENANT}&count=true"), "tools").await;
    let ids: Vec<&str> = found.iter().map(|tool| tool["id"].as_str().unwrap()).collect();
    let large: Vec<&str> =
        ids.iter().copied().filter(|id| made.iter().any(|own| own == id)).collect();
    assert_eq!(large, made, "each once, in order");
    assert!(count >= 3, "{count} pages");

    let (rpc, mut token) = ("/authority.registry.v1.ToolService/ListTools", String::new());
    let mut by_grpc = Vec::new();
    loop {
        let request = ListToolsRequest { page_token: token, limit: Some(500), ..<_>::default() };
        let answer = Caller::owner(&app).grpc(rpc, request.encode_to_vec()).await.unwrap();
        assert!(answer.len() < LARGEST, "{}", answer.len());
        let page = ListToolsResponse::decode(answer).unwrap();
        by_grpc.extend(page.tools.into_iter().map(|tool| tool.id));
        let Some(next) = page.next_page_token else { break };
        token = next;
    }
    assert_eq!(by_grpc, ids);
}

/// Lists the versions of a record and of a policy's text, which use separate code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_large_versions_is_one_that_clients_take() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let owner = app.owner();
    let id = tool(&owner, 0).await;
    for number in 1..24 {
        let change = only("input_schema", schema(number));
        let (status, changed) = owner.update_tool(&id, change).await;
        assert_eq!(status, 200, "{changed}");
    }
    let (found, count) = pages(&owner, &format!("/api/v1/entities/{id}/history"), "versions").await;
    let marks: Vec<&str> = found
        .iter()
        .map(|version| version["record"]["input_schema"]["description"].as_str().unwrap())
        .map(|text| text.split(' ').next().unwrap())
        .collect();
    let wanted: Vec<String> = (0..24).rev().map(|number: u32| number.to_string()).collect();
    assert_eq!(marks, wanted);
    // The last version on a page also shows its changes since the previous version, although the
    // previous version is on the next page.
    assert!(found[..23].iter().all(|one| one["changed"].to_string().contains("input_schema")));
    assert!(count >= 3, "{count} pages");

    let text = |number: usize| {
        let rule = "forbid (principal, action in Svc::Action::\"payment\", resource)\n\
                    unless { context has amount };";
        format!("@id(\"v{number}\")\n{rule}\n//{}", "x".repeat(60_000))
    };
    let policy = json!({"tenant_id": TENANT, "regime": "x", "cedar": text(0), "state": "draft"});
    let (status, made) = owner.create_policy(policy).await;
    assert_eq!(status, 201, "{made}");
    let id = made["policy"]["id"].as_str().unwrap().to_owned();
    for number in 1..45 {
        let (status, changed) = owner.update_policy(&id, only("cedar", text(number))).await;
        assert_eq!(status, 200, "{changed}");
    }
    let (found, count) =
        pages(&owner, &format!("/api/v1/policies/{id}/versions"), "versions").await;
    let numbers: Vec<i64> = found.iter().map(|one| one["version"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (1..46).collect::<Vec<_>>());
    assert!(count >= 2, "{count} pages");
}
