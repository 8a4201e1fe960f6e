//! Sends the examples of the documentation to the demonstration tenant.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Plain, TestApp};

/// Returns the first JSON object of a documentation page that begins with this text.
#[track_caller]
fn example(page: &str, begins: &str) -> Value {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(&page).unwrap();
    let at = text.find(begins).unwrap_or_else(|| panic!("{} has no `{begins}`", page.display()));
    let mut found = serde_json::Deserializer::from_str(&text[at..]).into_iter();
    found.next().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_authorizes_with_the_answer_that_is_shown() {
    let app = TestApp::seeded().await;
    let delegation = app.demo().await.delegation_id;
    let key = app.client(&app.api_key("svc:tenant:acme", &["runtime:write"]).await);
    let mut body = example("docs/reference/access.md", "{\"actor\"");
    body["acting_on_behalf_of"]["delegation_id"] = json!(delegation);
    let (status, answer) = key.post("/v1/runtime/authorize", body).await;
    assert_eq!(status, 200, "{answer:#}");
    let shown = example("docs/reference/access.md", "{\"decision\"");
    for (member, value) in shown.as_object().unwrap() {
        assert_eq!(answer[member], *value, "{member} in {answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_delegates_on_the_demonstrations_delegation() {
    let app = TestApp::seeded().await;
    let parent = app.demo().await.delegation_id;
    let bot = json!({"tenant_id": "svc:tenant:acme", "label": "bot",
        "scopes": ["delegations:write"], "principal_ids": ["svc:agent:acme:invoice-bot"]});
    let (_, made) = app.owner().post("/api/v1/api-keys", bot).await;
    let key = app.client(made["secret"].as_str().unwrap());
    let mut body = example("docs/guides/delegations.md", "{\"parent_id\"");
    body["parent_id"] = json!(parent);
    let (status, lent) = key.post("/v1/delegations", body.clone()).await;
    assert_eq!(status, 201, "{lent:#}");
    // Leaving out a bound is refused. The error contains the value that the caller can copy.
    let members = body.as_object_mut().unwrap();
    members.remove("purposes");
    members.remove("max_amount");
    let (status, refused) = key.post("/v1/delegations", body).await;
    let unbounded = |field: &str, what: &str, value: &str| {
        json!({"field": field, "problem": format!("is unbounded where the parent's is {what}: \
            {value}; it is not inherited, so give this or less")})
    };
    assert_eq!((status, refused["error"].text()), (409, "delegation_exceeds_parent"));
    assert_eq!(
        refused["details"],
        json!([
            unbounded("purposes", "a list", "[\"invoice-settlement\"]"),
            unbounded("max_amount", "bounded", "\"50000\""),
        ])
    );
}
