//! Help for developers of clients: suggestions, examples, entity tags, and errors that name only
//! members of the request.

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

use crate::support::{Plain, TestApp, asking};

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    /// The message and the details.
    fn text(&self) -> String {
        format!("{} {}", self.body["message"], self.body["details"])
    }

    fn fields(&self) -> Vec<&str> {
        let details = self.body["details"].as_array().unwrap();
        details.iter().map(|detail| detail["field"].as_str().unwrap()).collect()
    }
}

struct Caller<'a> {
    app: &'a TestApp,
    token: String,
}

impl Caller<'_> {
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Option<String>>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let method: Method = method.parse().unwrap();
        let url = format!("{}{path}", self.app.base_url());
        let mut request = self.app.owner().http.request(method, url).bearer_auth(&self.token);
        if let Some(body) = body.into() {
            if !headers.iter().any(|(name, _)| *name == "content-type") {
                request = request.header("content-type", "application/json");
            }
            request = request.body(body);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default();
        Answer { status, headers, body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, &[]).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, body.to_string(), &[]).await
    }
}

fn owner(app: &TestApp) -> Caller<'_> {
    Caller { app, token: app.owner_token().to_owned() }
}

async fn agent(app: &TestApp) -> Caller<'_> {
    Caller { app, token: app.demo().await.api_key }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_path_gets_the_nearest_one() {
    let app = TestApp::shared().await;
    let owner = owner(app);
    for (method, path, meant) in [
        ("GET", "/api/v1/tenants/", "GET /api/v1/tenants?"),
        ("POST", "/v1/runtime/evaluate", "POST /api/v1/runtime/evaluate?"),
        ("GET", "/api/v1/api_keys", "GET /api/v1/api-keys?"),
        ("GET", "/api/v1/principal", "GET /api/v1/principals?"),
        ("POST", "/v1/decisions:simulat", "POST /v1/decisions:simulate?"),
    ] {
        let answer = owner.send(method, path, None, &[]).await;
        assert_eq!(answer.status, 404, "{path}");
        let text = answer.text();
        assert!(text.contains(&format!("did you mean {meant}")), "{path}: {text}");
    }
    let far = owner.get("/nothing/like/this").await;
    assert_eq!((far.status, far.body["message"].text()), (404, "this path is unknown"));
    let long = owner.get(&format!("/api/v1/{}", "tenants/".repeat(40))).await;
    assert_eq!(long.body["message"], "this path is unknown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_member_or_parameter_gets_the_nearest_one() {
    let app = TestApp::shared().await;
    let (owner, agent) = (owner(app), agent(app).await);
    for (query, meant) in
        [("page_size=5", "limit"), ("pageToken=x", "page_token"), ("stat=active", "state")]
    {
        let answer = owner.get(&format!("/api/v1/principals?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains(&format!("did you mean `{meant}`?")), "{}", answer.text());
    }
    let mut ask = asking(1.0, "DE");
    ask["delegationId"] = "svc:del:acme:x".into();
    let answer = agent.post("/api/v1/runtime/evaluate", ask).await;
    assert!(answer.text().contains("did you mean `delegation_id`?"), "{}", answer.text());
    let answer = owner.get("/api/v1/principals?zzzzzz=1").await;
    assert!(!answer.text().contains("did you mean"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_the_wrong_form_gets_an_example_and_no_expression() {
    let app = TestApp::shared().await;
    let agent = agent(app).await;
    for (member, value, example) in [
        ("subject", "invoice-bot", "such as svc:agent:acme:invoice-bot"),
        ("action", "Payment.Execute", "such as payment.execute"),
    ] {
        let mut ask = asking(1.0, "DE");
        ask[member] = json!(value);
        let answer = agent.post("/api/v1/runtime/evaluate", ask).await;
        assert_eq!(answer.status, 400, "{:#}", answer.body);
        assert!(answer.text().contains(example), "{}", answer.text());
        assert!(!answer.text().contains('^'), "{}", answer.text());
    }
    let marked = format!("\u{feff}{}", asking(1.0, "DE"));
    let answer = agent.send("POST", "/api/v1/runtime/evaluate", marked, &[]).await;
    assert!(answer.text().contains("byte order mark"), "{}", answer.text());
    let since = "/api/v1/decisions?since=2026-11-01T10:00:00+01:00";
    let answer = owner(app).get(since).await;
    assert!(answer.status == 400 && answer.text().contains("%2B"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_has_a_version_that_weak_tags_name_too() {
    let app = TestApp::seeded().await;
    let owner = owner(&app);
    let body = json!({"tenant_id": "svc:tenant:acme", "name": "first"});
    let made = owner.post("/api/v1/teams", body).await;
    assert_eq!(made.status, 201, "{:#}", made.body);
    let path = format!("/api/v1/teams/{}", made.body["team"]["id"].as_str().unwrap());
    let patch = |name: &str| json!({"name": name}).to_string();
    for kind in ["application/merge-patch+json", "Application/JSON-Patch+json; charset=utf-8"] {
        let answer = owner.send("PATCH", &path, patch("other"), &[("content-type", kind)]).await;
        assert_eq!(answer.status, 415, "{kind}: {:#}", answer.body);
        assert!(answer.text().contains("application/json"), "{}", answer.text());
    }
    let read = owner.get(&path).await;
    assert_eq!(read.body["team"]["name"], "first");
    let tag = read.headers["etag"].to_str().unwrap().to_owned();
    // A client that has this version.
    for known in [tag.clone(), format!("W/{tag}"), format!("\"0\", {tag}"), "*".to_owned()] {
        let same = owner.send("GET", &path, None, &[("if-none-match", &known)]).await;
        assert_eq!((same.status, &same.body), (304, &Value::Null), "{known}");
        assert_eq!(same.headers["etag"], tag.as_str());
    }
    let other = owner.send("GET", &path, None, &[("if-none-match", "\"0\"")]).await;
    assert_eq!(other.status, 200);
    // A tag that a proxy made weak, a tag of another version, and texts that are not tags.
    for (known, status) in
        [("W/\"0\"".to_owned(), 412), ("0".to_owned(), 400), (String::new(), 400)]
    {
        let answer = owner.send("PATCH", &path, patch("no"), &[("if-match", &known)]).await;
        assert_eq!(answer.status, status, "{known}: {:#}", answer.body);
    }
    let weak = format!("W/{tag}");
    let changed = owner.send("PATCH", &path, patch("second"), &[("if-match", &weak)]).await;
    assert_eq!((changed.status, changed.body["team"]["name"].text()), (200, "second"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_names_members_of_the_request() {
    let app = TestApp::seeded().await;
    let owner = owner(&app);
    let tenant = json!({"name": "Another", "slug": "acme", "env": "sandbox", "owner_email": "a@example.org"});
    let taken = owner.post("/api/v1/tenants", tenant).await;
    assert_eq!((taken.status, taken.fields()), (409, vec!["slug"]), "{:#}", taken.body);
    let agent = json!({"tenant_id": "svc:tenant:acme", "principal_class": "agent", "display_name": "Invoice bot",
                       "name": "invoice-bot"});
    let taken = owner.post("/api/v1/principals", agent).await;
    assert_eq!((taken.status, taken.fields()), (409, vec!["name"]), "{:#}", taken.body);
    let team = json!({"tenant_id": "svc:tenant:acme", "name": "payments"});
    let team = owner.post("/api/v1/teams", team).await.body["team"]["id"].clone();
    let member =
        json!({"team_id": team, "principal_id": "svc:agent:acme:invoice-bot", "role": "member"});
    let made = owner.post("/api/v1/relationships/member-of", member.clone()).await;
    assert_eq!(made.status, 201, "{:#}", made.body);
    let again = owner.post("/api/v1/relationships/member-of", member).await;
    assert_eq!((again.status, again.fields()), (409, vec!["team_id", "principal_id"]));
    let uses = json!({"agent_id": "svc:agent:acme:invoice-bot", "used_id": "report.read", "used_kind": "action"});
    let used = owner.post("/api/v1/relationships/uses", uses).await;
    assert_eq!(used.status, 201, "{:#}", used.body);
    let workspace = json!({"tenant_id": "svc:tenant:acme", "name": "Payments"});
    let workspace = owner.post("/api/v1/workspaces", workspace).await;
    let works = json!({"principal_id": "svc:agent:acme:invoice-bot",
                       "workspace_id": workspace.body["workspace"]["id"]});
    let works = owner.post("/api/v1/relationships/acts-in", works).await;
    assert_eq!(works.status, 201, "{:#}", works.body);
    // `Location` finds the new row.
    for (made, record) in [(made, "member_of"), (used, "uses"), (works, "acts_in")] {
        let location = made.headers["location"].to_str().unwrap();
        let found = owner.get(location).await;
        assert_eq!(
            (found.status, &found.body[record]["id"]),
            (200, &made.body[record]["id"]),
            "{location}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_role_learns_which_roles_may() {
    let app = TestApp::shared().await;
    let viewer = Caller { app, token: app.member_token("svc:tenant:acme", "viewer") };
    let refused = viewer.get("/api/v1/app/webhook-endpoints").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("it is open to a tenant's admin"), "{}", refused.text());
    let details = json!([
        {"field": "permitted_roles", "problem": "is admin", "value": "admin"},
        {"field": "role", "problem": "is viewer", "value": "viewer"},
    ]);
    assert_eq!(refused.body["details"], details, "{:#}", refused.body);
}
