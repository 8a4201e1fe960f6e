//! API keys that delegate: agents pass parts of their authority to other agents.

mod refused;
mod stopped;
mod transaction;

use serde_json::{Value, json};

use crate::support::{
    Answered, Client, Members, Plain, TENANT, TestApp, new_api_key, new_principal, new_purpose,
    new_tenant, nothing, only,
};

const BOT: &str = "svc:agent:acme:bot";
const CAT: &str = "svc:agent:acme:cat";
const DOG: &str = "svc:agent:acme:dog";
const PATH: &str = "/v1/delegations";

struct Acme {
    app: TestApp,
    /// The principal that delegates to the first agent.
    boss: String,
}

/// Returns the error code and the invalid fields.
#[track_caller]
fn fault(answer: &Value) -> (&str, Vec<&str>) {
    let details = answer["details"].as_array().unwrap().iter();
    (answer["error"].as_str().unwrap(), details.map(|at| at["field"].as_str().unwrap()).collect())
}

#[track_caller]
fn id(answer: &Value) -> String {
    answer["delegation"]["id"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

impl Acme {
    async fn start() -> Self {
        let app = TestApp::start().await;
        let acme = Self { app, boss: String::new() };
        acme.made("tenants", new_tenant("Acme", "acme")).await;
        let boss = acme.made("principals", new_principal("human", "Boss")).await;
        for name in ["bot", "cat", "dog"] {
            let body = json!({"tenant_id": TENANT, "principal_class": "agent", "name": name,
                "display_name": name});
            acme.made("principals", body).await;
        }
        Self { boss: boss["id"].as_str().unwrap().to_owned(), ..acme }
    }

    /// Creates a record as the owner.
    async fn made(&self, path: &str, body: Value) -> Value {
        let made = self.app.owner().post(&format!("/api/v1/{path}"), body).await.assert_status(201);
        made.as_object().unwrap().values().find(|member| member.is_object()).unwrap().clone()
    }

    /// Creates a key bound to agents. Returns its client and its id.
    async fn key(&self, agents: &[&str]) -> (Client, String) {
        let body = new_api_key("test", &["delegations:write", "runtime:write"])
            .with("principal_ids", agents);
        let made = self.app.owner().create_api_key(body).await.assert_status(201);
        let id = made["api_key"]["id"].as_str().unwrap().to_owned();
        (self.app.client(made["secret"].as_str().unwrap()), id)
    }

    /// Creates a delegation from the boss, which may be delegated further. Returns its id.
    async fn root(&self, to: &str, more: Value) -> String {
        let body = json!({"tenant_id": TENANT, "delegator_id": self.boss, "delegate_id": to,
            "actions": ["payment.*"], "can_delegate": true, "max_amount": "500",
            "currency": "EUR"})
        .and(&more);
        self.made("delegations", body).await["id"].as_str().unwrap().to_owned()
    }

    async fn verb(&self, delegation: &str, verb: &str) {
        self.app.owner().act_on_delegation(delegation, verb, nothing()).await.assert_status(200);
    }

    /// Wraps SQL to run in the role of the service's own workers.
    fn service(sql: &str) -> String {
        format!(
            "SELECT set_config('role', authority_role('system'), true); \
             SET LOCAL authority.actor = 'test'; {sql}"
        )
    }
}

/// Returns the body of a delegation below this parent, without the fields that the parent
/// determines.
fn part(parent: &str, to: &str) -> Value {
    json!({"parent_id": parent, "delegate_id": to, "actions": ["payment.execute"],
        "max_amount": "100", "currency": "EUR"})
}

#[expect(clippy::needless_pass_by_value, reason = "as `json!` makes it")]
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_delegates_a_part_of_what_it_holds() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let (key, key_id) = acme.key(&[BOT]).await;
    let made = key
        .create_delegation(with(part(&root, CAT), only("can_delegate", true)))
        .await
        .assert_status(201);
    let child = &made["delegation"];
    assert_eq!(
        (
            child["tenant_id"].text(),
            child["delegator_id"].text(),
            child["root_id"].text(),
            child["created_by"].text()
        ),
        (TENANT, BOT, root.as_str(), key_id.as_str()),
        "{made:#}"
    );
    // The new delegation and a delegation below it permit a decision.
    let (cat, _) = acme.key(&[CAT]).await;
    let (status, below) = cat.create_delegation(part(&id(&made), DOG)).await;
    assert_eq!((status, below["delegation"]["depth"].number()), (201, 2), "{below:#}");
    let (dog, _) = acme.key(&[DOG]).await;
    let ask = |by: &Client, subject: &str, delegation: &str, amount: f64| {
        let body = json!({"subject": subject, "action": "payment.execute", "purpose": "work",
            "delegation_id": delegation, "context": {"amount": amount, "currency": "EUR"}});
        let by = by.clone();
        async move {
            let answer = by.evaluate(body).await.assert_status(200);
            answer["reason_code"].as_str().unwrap().to_owned()
        }
    };
    acme.made("purposes", new_purpose("work", "Work", &["*"])).await;
    assert_eq!(ask(&cat, CAT, &id(&made), 50.0).await, "permission_granted");
    assert_eq!(ask(&cat, CAT, &id(&made), 101.0).await, "constraint_exceeded");
    assert_eq!(ask(&dog, DOG, &id(&below), 50.0).await, "permission_granted");
    // Revoking the delegation also ends the delegations below it.
    let (status, ended) =
        key.post(&format!("{PATH}/{}/revoke", id(&made)), only("reason", "done")).await;
    assert_eq!((status, ended["delegation"]["state"].text()), (200, "revoked"), "{ended:#}");
    assert_eq!(ask(&cat, CAT, &id(&made), 50.0).await, "delegation_revoked");
    assert_eq!(ask(&dog, DOG, &id(&below), 50.0).await, "delegation_revoked");
    let (status, again) = key.post(&format!("{PATH}/{}/revoke", id(&made)), nothing()).await;
    assert_eq!((status, again["error"].text()), (409, "record_is_final"), "{again:#}");
    // Revoking the parent has the same effect.
    let (_, other) = key.create_delegation(part(&root, CAT)).await;
    assert_eq!(ask(&cat, CAT, &id(&other), 50.0).await, "permission_granted");
    acme.verb(&root, "revoke").await;
    assert_eq!(ask(&cat, CAT, &id(&other), 50.0).await, "delegation_revoked");
}

/// The delegator is the parent's delegate. If the key is bound to several agents, it may be any of
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_several_agents_acts_for_the_one_that_holds_the_parent() {
    let acme = Acme::start().await;
    let (of_bot, of_cat) = (acme.root(BOT, nothing()).await, acme.root(CAT, nothing()).await);
    let (key, _) = acme.key(&[BOT, CAT]).await;
    for (parent, delegator) in [(&of_bot, BOT), (&of_cat, CAT)] {
        let (status, made) = key.create_delegation(part(parent, DOG)).await;
        assert_eq!(
            (status, made["delegation"]["delegator_id"].text()),
            (201, delegator),
            "{made:#}"
        );
        let named = with(part(parent, DOG), only("delegator_id", delegator));
        assert_eq!(key.create_delegation(named).await.0, 201);
    }
    let (status, refused) =
        key.create_delegation(with(part(&of_bot, DOG), only("delegator_id", CAT))).await;
    assert_eq!(
        (status, fault(&refused)),
        (409, ("delegation_exceeds_parent", vec!["delegator_id"]))
    );
    let (status, refused) = key.create_delegation(part(&of_bot, BOT)).await;
    assert_eq!((status, fault(&refused)), (400, ("invalid_request", vec!["delegate_id"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_sees_what_it_holds_or_gave() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, json!({"notes": "for people", "metadata": {"a": 1}})).await;
    acme.verb(&root, "approve").await;
    let others = acme.root(DOG, nothing()).await;
    let ((bot, bot_key), (cat, _)) = (acme.key(&[BOT]).await, acme.key(&[CAT]).await);
    let (_, made) = bot.create_delegation(with(part(&root, CAT), only("notes", "mine"))).await;
    let child = id(&made);
    let listed = async |client: &Client| -> Vec<String> {
        let list = client.get(&format!("{PATH}?count=true")).await.assert_status(200);
        let rows = list["delegations"].as_array().unwrap();
        assert_eq!(list["total"], rows.len(), "{list:#}");
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&bot).await, [root.clone(), child.clone()]);
    assert_eq!(listed(&cat).await, std::slice::from_ref(&child));
    let (_, none) = cat.get(&format!("{PATH}?delegate_id={BOT}")).await;
    assert_eq!(none["delegations"], json!([]));
    // The key can't read personal data or notes in a delegation that someone else made.
    let (_, shown) = bot.get(&format!("{PATH}/{root}")).await;
    let shown = &shown["delegation"];
    assert_eq!(
        (&shown["standing"], &shown["notes"], &shown["created_by"]),
        (&json!([]), &Value::Null, &json!("")),
        "{shown:#}"
    );
    let (_, shown) = bot.get(&format!("{PATH}/{child}")).await;
    assert_eq!(
        (shown["delegation"]["notes"].text(), &shown["delegation"]["created_by"]),
        ("mine", &json!(bot_key)),
    );
    let (_, shown) = cat.get(&format!("{PATH}/{child}")).await;
    assert_eq!(shown["delegation"]["notes"], Value::Null, "{shown:#}");
    let (_, owners) = acme.app.owner().get_delegation(&root).await;
    assert_eq!(owners["delegation"]["standing"].as_array().unwrap().len(), 1, "{owners:#}");
    // The response for another agent's delegation equals the response for an unknown id.
    let nothing = format!("{}x", &others[..others.len() - 1]);
    for (method, verb) in [("GET", ""), ("POST", "/revoke")] {
        let call = async |client: &Client, id: &str| {
            let body = (method == "POST").then(|| json!({}));
            let (status, mut answer) =
                client.call(method, &format!("{PATH}/{id}{verb}"), body, &[]).await;
            answer["request_id"] = Value::Null;
            (status, answer.to_string().replace(id, "ID"))
        };
        let (status, unknown) = call(&bot, &nothing).await;
        assert_eq!(status, 404, "{unknown}");
        assert_eq!(call(&bot, &others).await, (404, unknown.clone()));
        // The key's agent received this delegation, but did not make it.
        if method == "POST" {
            assert_eq!(call(&bot, &root).await, (404, unknown.clone()));
            assert_eq!(call(&cat, &child).await, (404, unknown));
        }
    }
}

/// A repeated call creates only one delegation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_delegates_once() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    let (key, _) = acme.key(&[BOT]).await;
    let kept = [("idempotency-key", "once")];
    let first = key.call("POST", PATH, Some(part(&root, CAT)), &kept).await;
    assert_eq!(first.0, 201, "{:#}", first.1);
    assert_eq!(key.call("POST", PATH, Some(part(&root, CAT)), &kept).await, first);
    let (_, list) = key.get(&format!("{PATH}?parent_id={root}")).await;
    assert_eq!(list["delegations"].as_array().unwrap().len(), 1, "{list:#}");
}
