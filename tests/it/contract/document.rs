//! Bodies, headers, codes and addresses that the OpenAPI document describes.

use authority_api::error::ErrorCode;
use serde_json::{Value, json};

use super::document;
use crate::support::{Plain, TestApp, asking, redacted};

/// Checks a value against a schema. Supports only the keywords that the document uses.
#[track_caller]
fn fits(value: &Value, schema: &Value, whole: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix('#').unwrap();
        return fits(value, whole.pointer(name).unwrap(), whole);
    }
    if let Some(any) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        let found = any.iter().filter(|one| fits(value, one, whole).is_ok()).count();
        return if found > 0 { Ok(()) } else { Err(format!("{value} matches none of {any:?}")) };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => vec![kind],
    };
    if !(kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number")) {
        return Err(format!("{value} has no type of {kinds:?}"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return Err(format!("{value} is not in {}", schema["enum"]));
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
        && !regex::Regex::new(pattern).unwrap().is_match(text)
    {
        return Err(format!("{text} does not match {pattern}"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"], whole)?;
    }
    let members = value.as_object().cloned().unwrap_or_default();
    for (name, member) in &members {
        match &schema["properties"][name] {
            Value::Null if schema["additionalProperties"] == false => {
                return Err(format!("`{name}` is unknown"));
            }
            inner => fits(member, inner, whole).map_err(|why| format!("{name}: {why}"))?,
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let mut missing = required.filter(|name| !members.contains_key(name.as_str().unwrap()));
    match missing.next() {
        Some(name) if value.is_object() => Err(format!("lacks {name}")),
        _ => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_typed_as_what_they_are() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let scopes = ["runtime:write", "evidence:read", "evidence:write"];
    let key = app.client(&app.api_key("svc:tenant:acme", &scopes).await);
    let (_, decided) = key.post("/api/v1/runtime/evaluate", asking(1200.0, "DE")).await;
    let id = &decided["decision_id"];
    let body = json!({"decision_id": id});
    let whole = document(&app).await;
    let bundle = format!("/v1/evidence/{}?bundle=true", id.as_str().unwrap());
    let plain = format!("/v1/evidence/{}", id.as_str().unwrap());
    for (method, template, path, body) in [
        ("POST", "/v1/evidence/seal", "/v1/evidence/seal", Some(body.clone())),
        ("GET", "/v1/evidence/{entity_id}", plain.as_str(), None),
        ("GET", "/v1/evidence/{entity_id}", bundle.as_str(), None),
        ("POST", "/v1/replay/proof", "/v1/replay/proof", Some(body)),
        ("GET", "/.well-known/jwks.json", "/.well-known/jwks.json", None),
        ("GET", "/openapi", "/openapi", None),
    ] {
        let operation = &whole["paths"][template][method.to_lowercase()];
        let content = &operation["responses"]["200"]["content"];
        let schema = &content["application/json"]["schema"];
        let kind = schema["$ref"].as_str().or_else(|| schema["oneOf"][0]["$ref"].as_str());
        assert!(kind.is_some(), "{path}: {schema}");
        let (status, answer) = key.call(method, path, body, &[]).await;
        assert_eq!(status, 200, "{answer:#}");
        fits(&answer, schema, &whole).unwrap_or_else(|why| panic!("{path}: {why}"));
        assert!(fits(&json!("text"), schema, &whole).is_err(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn final_states_and_the_states_that_an_operation_changes_are_listed() {
    let app = TestApp::shared().await;
    let whole = document(app).await;
    for (schema, member, finals) in [
        ("Delegation", "state", json!(["revoked"])),
        ("ApiKey", "status", json!(["revoked"])),
        ("Approval", "state", json!(["used", "declined", "expired", "void"])),
        ("Workspace", "state", json!(null)),
    ] {
        let state = &whole["components"]["schemas"][schema]["properties"][member];
        assert!(state.is_object(), "{schema}");
        assert_eq!(state["x-final"], finals, "{schema}: {state:#}");
    }
    for (path, states) in [
        ("/api/v1/delegations/{id}/suspend", json!(["active"])),
        ("/api/v1/delegations/{id}/reinstate", json!(["suspended"])),
        ("/api/v1/delegations/{id}/approve", json!(null)),
    ] {
        assert_eq!(whole["paths"][path]["post"]["x-states"], states, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_versions_and_codes_are_the_services_own() {
    let app = TestApp::shared().await;
    let whole = document(app).await;
    assert_eq!(whole["servers"], json!([{"url": app.base_url()}]));
    assert_eq!(whole["info"]["version"], "1.0.0");
    assert_eq!(whole["info"]["x-build-version"], env!("CARGO_PKG_VERSION"));
    let approve = &whole["paths"]["/api/v1/app/approvals/{id}/approve"]["post"];
    insta::assert_snapshot!("approved", redacted(approve["responses"]["200"].clone()));
    let (_, named) = app.client("").get("/").await;
    assert_eq!(named["version"], "1.0.0");
    assert_eq!(named["build_version"], env!("CARGO_PKG_VERSION"));
    let links = named["links"].as_array().unwrap();
    assert!(links.contains(&json!({"rel": "service-doc", "href": "/docs"})), "{links:?}");
    for link in links {
        let path = link["href"].as_str().unwrap();
        assert_eq!(app.client("").text("GET", path, None).await.0, 200, "{path}");
    }
    let features = named["features"].as_array().unwrap();
    for member in
        ["EvaluateRequest.approval_id", "DecisionRequest.tool_id", "ActionDeclaration.effect_class"]
    {
        assert!(features.contains(&json!(member)), "{features:?}");
    }
    assert!(!features.contains(&json!("EvaluateRequest.subject")), "it is always sent");
    let words: Vec<_> = ErrorCode::ALL.iter().map(|code| code.word()).collect();
    assert_eq!(whole["components"]["schemas"]["ErrorWord"]["enum"], json!(words));
    let decision = &whole["components"]["schemas"]["EvaluateResponse"]["properties"]["decision"];
    assert_eq!(decision["enum"].texts(), ["allow", "require_approval", "deny"]);
    let evaluate = &whole["paths"]["/api/v1/runtime/evaluate"]["post"]["responses"]["200"];
    let shown = &evaluate["content"]["application/json"]["example"]["obligations"];
    assert_eq!(*shown, json!(["audit.emit"]), "the example of a list has one item");
    let error = &whole["components"]["schemas"]["Error"];
    let (_, refused) = app.client("").get("/nowhere").await;
    fits(&refused, error, &whole).unwrap();
    let (status, listed) = app.client("").get("/v1/error-codes").await;
    assert_eq!(status, 200);
    let listed = listed["error_codes"].as_array().unwrap();
    assert_eq!(listed.len(), words.len());
    for (code, shown) in ErrorCode::ALL.iter().zip(listed) {
        assert_eq!(shown["code"], code.word());
        assert_eq!(shown["status"], code.http().as_u16());
        assert!(!shown["sentence"].as_str().unwrap().is_empty());
    }
}

/// Bytes that REST sends as JSON are described as JSON. Server-sent events are described as they
/// are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_described_as_they_are_sent() {
    let whole = document(TestApp::shared().await).await;
    let content = |path: &str| &whole["paths"][path]["get"]["responses"]["200"]["content"];
    let shown = &content("/v1/events")["application/json"]["example"]["events"][0];
    let event = &whole["components"]["schemas"]["Event"];
    fits(shown, event, &whole).unwrap();
    assert_eq!(shown["event_type"], "svc.authority.revoked");
    let stream = content("/v1/events:stream");
    let line = &stream["application/x-ndjson"]["schema"]["$ref"];
    assert_eq!(line, "#/components/schemas/StreamEventsResponse");
    let named = |schema: &Value| whole.pointer(&schema["$ref"].as_str().unwrap()[1..]).unwrap();
    let sent = &named(&stream["text/event-stream"]["schema"])["properties"];
    let data = &sent["data"]["contentSchema"]["$ref"];
    assert_eq!(data, "#/components/schemas/Event");
    assert!(sent["id"]["description"].as_str().unwrap().contains("`sequence`"));
    // If the message has no such field, the whole message is the data of a server-sent event.
    let exported = named(&content("/api/v1/app/decisions:export")["text/event-stream"]["schema"]);
    assert_eq!(exported["required"].texts(), ["data"], "{exported:#}");
}

/// In a request, null means that the field is absent. The schema permits null exactly where the
/// service does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn null_is_absence_where_the_schema_says_so() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let key = app.client(&app.api_key("svc:tenant:acme", &["runtime:write"]).await);
    let whole = document(&app).await;
    let schema = |name: &str| whole["components"]["schemas"][name].clone();
    let evaluate = schema("EvaluateRequestInput");
    for (member, inner) in evaluate["properties"].as_object().unwrap() {
        let mut body = asking(1200.0, "DE");
        body[member] = Value::Null;
        let (status, answer) = key.post("/api/v1/runtime/evaluate", body).await;
        let allowed = fits(&Value::Null, inner, &whole).is_ok();
        assert_eq!(status == 200, allowed, "{member}: {answer:#}");
    }
    assert_eq!(evaluate["properties"]["explain"]["type"].texts(), ["boolean", "null"]);
    let authorize = schema("AuthorizeRequestInput");
    assert!(fits(&Value::Null, &authorize["properties"]["actor"], &whole).is_err());
    let patch = schema("TenantPatch");
    for (member, inner) in patch["properties"].as_object().unwrap() {
        let (status, answer) =
            app.owner().patch("/api/v1/tenants/acme", json!({member: null})).await;
        if fits(&Value::Null, inner, &whole).is_ok() {
            assert_eq!(status, 200, "{member}: {answer:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_without_a_body_is_refused() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let whole = document(&app).await;
    let mut patches = 0;
    for (path, operations) in whole["paths"].as_object().unwrap() {
        let Some(patch) = operations.get("patch") else { continue };
        patches += 1;
        assert_eq!(patch["requestBody"]["required"], true, "{path}");
        if path.contains("/app/") {
            continue;
        }
        let path = path.replace("{id}", "acme");
        let (status, _) = app.owner().call("PATCH", &path, None, &[]).await;
        assert!([400, 405].contains(&status), "{path}: {status}");
    }
    assert!(patches > 10);
    let tenants = "/api/v1/tenants/acme";
    assert_eq!(app.owner().patch(tenants, json!({})).await.0, 200, "an empty patch is accepted");
}

/// Operations read exactly the headers that the document declares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_headers_are_taken() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let whole = document(&app).await;
    let (mut keyed, mut versioned) = (0, 0);
    let long = "k".repeat(300);
    for (path, operations) in whole["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let takes = |name: &str| {
                let all = operation["parameters"].as_array().unwrap().iter();
                let wanted = json!({"$ref": format!("#/components/parameters/{name}")});
                all.clone().any(|parameter| *parameter == wanted)
            };
            assert!(takes("RequestId"), "{method} {path}");
            if method == "post" && takes("IdempotencyKey") && !path.contains('{') {
                keyed += 1;
                let body =
                    operation["requestBody"]["content"]["application/json"]["example"].clone();
                let token = if path.starts_with("/api/v1/app/") {
                    app.member_token("svc:tenant:acme", "admin")
                } else {
                    app.owner_token().to_owned()
                };
                let headers = [("idempotency-key", long.as_str())];
                let client = app.client(&token);
                let (status, answer) = client.call("POST", path, Some(body), &headers).await;
                let named = answer["details"].to_string().contains("idempotency-key");
                assert!(status == 400 && named, "{path}: {status} {answer}");
            }
            versioned += usize::from(takes("IfMatch"));
        }
    }
    assert!(keyed > 20 && versioned > 20, "{keyed} {versioned}");
    for part in ["parameters", "headers", "responses"] {
        assert!(whole["components"][part].is_object());
    }
}

/// An unknown tenant or revision returns an error that names the field.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_tenant_and_a_future_revision_are_the_callers_fault() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let key = app.client(&app.api_key("svc:tenant:acme", &["runtime:write"]).await);
    let evaluate = "/api/v1/runtime/evaluate";
    let mut stranger = asking(1.0, "DE");
    stranger["subject"] = "svc:agent:nobody:bot".into();
    let (status, answer) = app.owner().post(evaluate, stranger.clone()).await;
    assert_eq!((status, answer["details"][0]["field"].text()), (400, "subject"), "{answer:#}");
    stranger["at_least_revision"] = 1_000_000.into();
    assert_eq!(app.owner().post(evaluate, stranger).await.0, 400);
    let body = json!({"actor": {"entity_id": "svc:agent:nobody:bot"}, "action": "payment.execute"});
    let (status, answer) = app.owner().post("/v1/runtime/authorize", body).await;
    let field = json!("actor.entity_id");
    assert_eq!((status, &answer["details"][0]["field"]), (400, &field), "{answer:#}");
    for client in [&key, &app.owner()] {
        let mut future = asking(1.0, "DE");
        future["at_least_revision"] = 1_000_000.into();
        let (status, answer) = client.post(evaluate, future).await;
        let field = json!("at_least_revision");
        assert_eq!((status, &answer["details"][0]["field"]), (400, &field), "{answer:#}");
        let mut simulated = asking(1.0, "DE");
        simulated["at_least_revision"] = 1_000_000.into();
        let body = json!({ "request": simulated });
        let (status, answer) = app.owner().post("/v1/decisions:simulate", body).await;
        assert_eq!(status, 400, "{answer:#}");
        let (_, now) = client.post(evaluate, asking(1.0, "DE")).await;
        let mut present = asking(1.0, "DE");
        present["at_least_revision"] = now["authority_revision"].clone();
        assert_eq!(client.post(evaluate, present).await.0, 200);
    }
}

/// A field's description must not only repeat its name.
#[test]
fn what_a_record_is_says_more_than_its_name() {
    let document: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let empty = schemas.iter().filter(|(name, schema)| {
        let said = schema["description"].as_str().unwrap_or_default().to_lowercase();
        let words = said.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
        let name = name.to_lowercase();
        !said.is_empty() && words.into_iter().all(|word| word.len() < 3 || name.contains(word))
    });
    let empty: Vec<_> = empty.map(|(name, _)| name).collect();
    assert!(empty.is_empty(), "{empty:?}");
}
