//! Approvers sign exactly the request that they are shown.

use authority_crypto::sha256;
use authority_evidence::digest_text;
use serde_json::{Value, json};

use super::demo;
use crate::support::{
    Answered, Client, EVALUATE, EVALUATE_DECISION, Plain, SEAL_DECISION, TestApp, asking, nothing,
    only,
};

pub(super) const TENANT: &str = "svc:tenant:acme";
/// A marker in a context, used to search for copies.
const MARKER: &str = "Mallory-4f1d-Limited";

/// A policy that holds every payment to a new payee, with advice.
const NEW_PAYEE: &str = "@id(\"new-payee\")\n@decision(\"require_approval\")\n\
    @advice(\"Call the supplier back.\")\nforbid (principal, action, resource)\n\
    when { context has input && context.input has payee };\n";

/// Makes a request that is held, and returns the id of its approval.
pub(super) async fn held(client: &Client, ask: &Value) -> String {
    let (status, answer) = client.evaluate(ask.clone()).await;
    assert_eq!((status, answer["decision"].text()), (200, "require_approval"), "{answer:#}");
    answer["approval_id"].as_str().unwrap().to_owned()
}

fn to_mallory(amount: f64) -> Value {
    let mut ask = asking(amount, "DE");
    ask["context"]["payee"] = MARKER.into();
    ask["context"]["lines"] = json!([{"vat": 0.1, "note": null}, [], {"\u{e9}\"": -0.5e-7}]);
    ask
}

pub(super) fn approver(app: &TestApp) -> Client {
    app.person(TENANT, "approver", "ann@example.org")
}

pub(super) async fn read(client: &Client, id: &str) -> Value {
    client.get_approval(id).await.assert_shown("approval")
}

pub(super) async fn act(client: &Client, id: &str, verb: &str, body: Value) -> (u16, Value) {
    // Credentials that may not act call the same path.
    let (status, answer) = client.post(&format!("/api/v1/app/approvals/{id}/{verb}"), body).await;
    (status, if status == 200 { answer["approval"].clone() } else { answer })
}

/// Returns the SHA-256 of the canonical JSON, computed independently.
#[track_caller]
fn digest(shown: &Value) -> String {
    digest_text(&sha256(&serde_json_canonicalizer::to_vec(shown).unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_is_shown_what_they_sign() {
    let (app, client, delegation) = demo().await;
    let policy = json!({"tenant_id": TENANT, "regime": "internal", "name": "New payees",
                        "description": "Whom nobody paid before.", "cedar": NEW_PAYEE});
    let made = app.owner().create_policy(policy).await.assert_status(201);
    let ask = to_mallory(25_000.0);
    let id = held(&client, &ask).await;
    for role in ["approver", "legal", "admin", "auditor"] {
        let person = app.person(TENANT, role, "ann@example.org");
        let (_, list) = person.list_approvals("state=pending").await;
        let listed = list["approvals"][0].clone();
        assert_eq!(listed["request"]["context"]["payee"], MARKER, "{role}: {list:#}");
        assert_eq!(read(&person, &id).await["request"], listed["request"]);
    }
    let shown = app.owner().get_approval(&id).await.1["approval"].clone();
    let asked = &shown["request"];
    // The normal form: tenant, request, and the context as sent.
    assert_eq!(asked["tenant_id"], TENANT);
    for member in ["subject", "action", "purpose"] {
        assert_eq!(asked[member], ask[member], "{asked:#}");
    }
    assert_eq!(asked["context"]["lines"], ask["context"]["lines"], "{asked:#}");
    assert_eq!(shown["request_digest"], digest(asked), "{shown:#}");
    let used = &shown["authority"];
    assert_eq!((used["kind"].text(), used["id"].text()), ("delegation", delegation.as_str()));
    assert_eq!(used["chain"], json!([delegation]));
    assert_eq!(used["actions"].texts(), ["payment.*", "invoice.*"]);
    assert_eq!(
        (used["bounds"]["currency"].text(), used["bounds"]["max_amount"].is_string()),
        ("EUR", true),
        "{used:#}"
    );
    let policies = shown["policies"].as_array().unwrap();
    let statements: Vec<_> =
        policies.iter().map(|policy| (&policy["statement"], &policy["advice"])).collect();
    assert_eq!(
        statements,
        [
            (&json!("new-payee"), &json!("Call the supplier back.")),
            (&json!("payment-threshold"), &Value::Null),
        ]
    );
    assert_eq!(policies[0]["id"], made["policy"]["id"]);
    let named = |policy: &Value| (policy["name"].clone(), policy["description"].clone());
    let wanted = (json!("New payees"), json!("Whom nobody paid before."));
    assert_eq!(named(&policies[0]), wanted, "{policies:#?}");
    assert!(policies[1]["name"].is_string(), "{policies:#?}");
    // The list also shows the policy's current name.
    app.owner()
        .update_policy(policies[0]["id"].as_str().unwrap(), only("name", "Payees"))
        .await
        .assert_status(200);
    let (_, listed) = approver(&app).list_approvals("").await;
    assert_eq!(listed["approvals"][0]["policies"][0]["name"], "Payees", "{listed:#}");
    assert_eq!((&shown["justification"], &shown["earlier"]), (&Value::Null, &json!([])));
    // The signed text contains the digest of the shown request.
    let body = only("request_digest", &shown["request_digest"]);
    let (status, approved) = act(&approver(&app), &id, "approve", body).await;
    assert_eq!((status, approved["state"].text()), (200, "approved"), "{approved:#}");
    assert_eq!(&approved["request"], asked);
    let signed: Value =
        serde_json::from_str(approved["acts"][0]["record"].as_str().unwrap()).unwrap();
    assert_eq!(signed["question"], shown["request_digest"]);
}

/// Approvers see the reason. The question and the record do not contain it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvers_are_shown_the_requesters_own_reason() {
    let (app, client, _) = demo().await;
    let because = "the supplier\nstops \u{202e}delivery";
    let mut ask = to_mallory(25_000.0);
    ask["justification"] = json!(because);
    let (status, first) = client.evaluate_decision(ask.clone()).await;
    assert_eq!((status, first["decision"].text()), (200, "require_approval"), "{first:#}");
    let id = first["approval_id"].as_str().unwrap().to_owned();
    let shown = read(&approver(&app), &id).await;
    assert_eq!(shown["justification"], because, "{shown:#}");
    assert_eq!(shown["request_digest"], digest(&shown["request"]));
    assert!(!shown["request"].to_string().contains("stops"), "{shown:#}");
    let (_, list) = approver(&app).list_approvals("").await;
    assert_eq!(list["approvals"][0]["justification"], because, "{list:#}");
    let (_, record) = client.get_decision(first["decision_id"].as_str().unwrap()).await;
    assert!(record["record"]["request"].get("justification").is_none(), "{record:#}");
    // Another reason, or none, is the same question. The approval shows the reason that opened it.
    for reason in [json!("please"), Value::Null] {
        ask["justification"] = reason;
        assert_eq!(held(&client, &ask).await, id);
    }
    assert_eq!(read(&approver(&app), &id).await["justification"], because);
    let (status, approved) = act(&approver(&app), &id, "approve", nothing()).await;
    assert_eq!((status, approved["justification"].text()), (200, because), "{approved:#}");
    ask["approval_id"] = json!(id);
    let (_, allowed) = client.evaluate(ask.clone()).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reason_is_a_text_of_at_most_2000_characters() {
    let (_app, client, _) = demo().await;
    let mut ask = to_mallory(25_000.0);
    for (reason, status) in [
        (json!("\u{e9}".repeat(2000)), 200),
        (json!("x".repeat(2001)), 400),
        (json!(""), 400),
        (json!("a\u{0}"), 400),
        (json!(7), 400),
    ] {
        ask["justification"] = reason;
        for path in [EVALUATE, EVALUATE_DECISION] {
            let (found, answer) = client.post(path, ask.clone()).await;
            assert_eq!(found, status, "{path}: {answer:#}");
            if status == 400 {
                assert_eq!(answer["details"][0]["field"], "justification", "{answer:#}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_shown_is_compared_with_what_is_signed() {
    let (app, client, _) = demo().await;
    let (id, other) =
        (held(&client, &to_mallory(25_000.0)).await, held(&client, &to_mallory(25_001.0)).await);
    let ann = approver(&app);
    let of_other = read(&ann, &other).await["request_digest"].clone();
    for (verb, body) in [
        ("approve", only("request_digest", &of_other)),
        ("decline", json!({"request_digest": of_other, "reason": "no"})),
    ] {
        let (status, refused) = act(&ann, &id, verb, body).await;
        let found = (status, &refused["error"]);
        assert_eq!(found, (409, &json!("request_digest_differs")), "{verb} {refused:#}");
    }
    act(&ann, &id, "approve", only("request_digest", "sha256:00")).await.assert_status(400);
    let pending = read(&ann, &id).await;
    assert_eq!((pending["state"].text(), &pending["acts"]), ("pending", &json!([])));
}

/// A request is declined or expires, and is then repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_requests_for_the_same_question_are_shown() {
    let (app, client, _) = demo().await;
    let ann = approver(&app);
    let ask = to_mallory(25_000.0);
    let first = held(&client, &ask).await;
    let no = json!({"reason": "too much", "for_seconds": 0});
    assert_eq!(act(&ann, &first, "decline", no).await.0, 200);
    let second = held(&client, &ask).await;
    app.database
        .run(&format!("UPDATE approvals SET state = 'expired' WHERE id = '{second}'"))
        .await;
    // Approvals of a different request are not shown.
    let other = held(&client, &to_mallory(25_001.0)).await;
    assert_eq!(act(&ann, &other, "decline", only("reason", "no")).await.0, 200);
    let third = held(&client, &ask).await;
    let earlier = read(&ann, &third).await["earlier"].clone();
    let told = |place: usize| {
        let one = &earlier[place];
        (&one["id"], &one["state"], &one["reason"], one["at"].is_string())
    };
    assert_eq!(earlier.as_array().unwrap().len(), 2, "{earlier:#}");
    assert_eq!(told(0), (&json!(second), &json!("expired"), &Value::Null, true));
    assert_eq!(told(1), (&json!(first), &json!("declined"), &json!("too much"), true));
    // Each approval shows only earlier ones.
    assert_eq!(read(&ann, &first).await["earlier"], json!([]));
    assert_eq!(read(&ann, &second).await["earlier"].as_array().unwrap().len(), 1);
}

/// The request is read from its decision. If the decision's context is erased, the approval can't
/// show the request, and a request that can't be shown can't be approved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_erased_is_not_shown_and_not_approved() {
    let (app, client, _) = demo().await;
    let ann = approver(&app);
    // The context is erased, or differs from the request.
    for (amount, context) in [(25_000.0, ""), (25_001.0, "{\"amount\":1,\"currency\":\"EUR\"}")] {
        let id = held(&client, &to_mallory(amount)).await;
        let erase = format!(
            "SET session_replication_role = replica; \
             UPDATE decisions SET context = convert_to('{context}', 'UTF8') \
             WHERE approval_id = '{id}'; RESET session_replication_role"
        );
        app.database.run(&erase).await;
        let shown = read(&ann, &id).await;
        assert_eq!((&shown["request"], &shown["would_be"]), (&Value::Null, &Value::Null));
        assert!(shown["request_digest"].is_string(), "{shown:#}");
        let (status, refused) = act(&ann, &id, "approve", nothing()).await;
        assert_eq!((status, refused["error"].text()), (409, "request_erased"), "{refused:#}");
        assert_eq!(read(&ann, &id).await["acts"], json!([]));
        // A decline is still possible, because it permits no action.
        let (status, no) = act(&ann, &id, "decline", only("reason", "who knows")).await;
        assert_eq!((status, no["state"].text()), (200, "declined"), "{no:#}");
    }
}

/// Only users who approve or audit can read a context. The context is stored in one place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_is_shown_to_nobody_else() {
    let (app, client, _) = demo().await;
    let scopes = ["runtime:read", "runtime:write", "evidence:read", "evidence:write"];
    let key = app.client(&app.api_key(TENANT, &scopes).await);
    let (_, decided) = client.evaluate(to_mallory(25_000.0)).await;
    let decision = decided["decision_id"].as_str().unwrap();
    let id = decided["approval_id"].as_str().unwrap();
    let approve = format!("/api/v1/app/approvals/{id}/approve");
    let body = Some(nothing());
    let kept = [("idempotency-key", "k")];
    let ann = approver(&app);
    let (status, approved) = ann.call("POST", &approve, body.clone(), &kept).await;
    assert_eq!(
        (status, approved["approval"]["request"]["context"]["payee"].text()),
        (200, MARKER),
        "{approved:#}"
    );
    assert_eq!(ann.call("POST", &approve, body, &kept).await, (200, approved.clone()));
    let seal = Some(only("decision_id", decision));
    let (status, pack) = key.text("POST", SEAL_DECISION, seal).await;
    assert_eq!(status, 200, "{pack}");
    let viewer = app.person(TENANT, "viewer", "vic@example.org");
    let admin = app.person(TENANT, "admin", "eve@example.org");
    let receipt = format!("/receipts/{decision}");
    let mut shown = vec![pack];
    for file in ["", "/record.json", "/signature.json", "/pack.json", "/proof"] {
        shown.push(app.client("").text("GET", &format!("{receipt}{file}"), None).await.1);
    }
    for (who, path) in [
        (&key, format!("/v1/evidence/{decision}")),
        (&key, format!("/v1/decisions/{decision}")),
        (&key, format!("/v1/entities/{id}")),
        (&key, format!("/api/v1/app/approvals/{id}")),
        (&key, "/api/v1/app/approvals".to_owned()),
        (&key, receipt),
        (&viewer, format!("/api/v1/app/approvals/{id}")),
        (&viewer, format!("/v1/entities/{id}")),
        (&admin, format!("/v1/entities/{id}")),
        (&admin, format!("/api/v1/app/entities/{id}/history")),
        (&admin, "/api/v1/app/decisions:export".to_owned()),
    ] {
        shown.push(who.text("GET", &path, None).await.1);
    }
    // The digest is unsalted and would confirm a guess of the context.
    let digest = approved["approval"]["request_digest"].as_str().unwrap().to_owned();
    for text in shown {
        assert!(!text.contains(MARKER) && !text.contains(&digest), "{text}");
    }
    // A list of decisions has only the facts that tools declare, for users who can read the context.
    let (_, list) = admin.text("GET", "/api/v1/app/decisions", None).await;
    assert!(list.contains(MARKER) && !list.contains(&digest), "{list}");
    assert_eq!(key.get(&format!("/api/v1/app/approvals/{id}")).await.0, 403);
    // Only the decision stores the context: neither the approval nor a stored response has a copy.
    let copies = format!(
        "DO $$ BEGIN \
         IF EXISTS (SELECT FROM approvals a WHERE a::text LIKE '%{MARKER}%') \
         OR EXISTS (SELECT FROM approval_acts a WHERE a::text LIKE '%{MARKER}%') \
         OR EXISTS (SELECT FROM idempotency_keys WHERE position('{MARKER}'::bytea in answer) > 0) \
         OR NOT EXISTS (SELECT FROM idempotency_keys WHERE answer IS NOT NULL) \
         THEN RAISE 'a second copy'; END IF; END $$"
    );
    app.database.run(&copies).await;
}

/// A `uses` relationship that authorizes the request is shown like a delegation. A request that is
/// held because of its risk lists no policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_row_that_gives_authority_is_shown() {
    let (app, client, _) = demo().await;
    let ask = json!({
        "subject": "svc:agent:acme:support-bot", "action": "ticket.reply",
        "purpose": "customer-care", "context": {},
        "action_declaration": {"reversibility": "reversible"},
        "action_risk_classification":
            {"risk_tier": "minimal", "required_oversight_mode": "single_approver"},
    });
    let shown = read(&approver(&app), &held(&client, &ask).await).await;
    let used = &shown["authority"];
    assert_eq!((used["kind"].text(), &used["chain"]), ("uses", &json!([])), "{shown:#}");
    assert_eq!((used["actions"].texts(), &used["bounds"]), (vec!["ticket.*"], &nothing()));
    assert_eq!(shown["policies"], json!([]));
    assert_eq!(shown["request_digest"], digest(&shown["request"]));
}
