//! Rules for several people with several issuers: a person with two identities is one person, and a
//! `sub` of another issuer gives no part of a person's authority.

use std::collections::BTreeMap;

use authority_config::{FurtherIssuer, Identity};
use serde_json::{Value, json};

use crate::support::{
    AGENT, Answered, Client, Members, Plain, TENANT, TestApp, Wishes, asking, issuer::TestIssuer,
    new_policy, new_principal, nothing, only,
};

const FIRST: &str = "https://id.example.org";
const OKTA: &str = "https://acme.okta.com/oauth2/default";
const AUDIENCE: &str = "authority";

/// A service with the demonstration tenant and two issuers, which both speak for acme.
struct Two {
    app: TestApp,
    first: TestIssuer,
    okta: TestIssuer,
    /// An API key of the agent.
    agent: Client,
}

impl Two {
    async fn start(are_one: bool) -> Self {
        let (first, okta) = (TestIssuer::rs256(FIRST), TestIssuer::rs256(OKTA));
        let identity = Self::identity(&first, &okta, are_one).await;
        let seeded = TestApp::seeded().await;
        let key = seeded.demo().await.api_key;
        let app = seeded.beside(Wishes { identity, ..Wishes::default() }).await;
        let agent = app.client(&key);
        Self { app, first, okta, agent }
    }

    async fn identity(first: &TestIssuer, okta: &TestIssuer, are_one: bool) -> Identity {
        let further = FurtherIssuer {
            issuer: OKTA.to_owned(),
            audience: AUDIENCE.to_owned(),
            jwks_url: Some(okta.serve().await),
            tenants: vec!["acme".to_owned()],
            are_one: are_one.then(|| FIRST.to_owned()),
            ..FurtherIssuer::default()
        };
        Identity {
            issuer: Some(FIRST.to_owned()),
            audience: Some(AUDIENCE.to_owned()),
            jwks_url: Some(first.serve().await),
            dev_provider: Some(true),
            tenants: vec!["*".to_owned()],
            issuers: BTreeMap::from([("okta".to_owned(), further)]),
            ..Identity::default()
        }
    }

    fn person(&self, issuer: &TestIssuer, sub: &str, email: Option<&str>) -> Client {
        self.in_role(issuer, sub, email, "admin")
    }

    fn in_role(&self, issuer: &TestIssuer, sub: &str, email: Option<&str>, role: &str) -> Client {
        self.app.client(&issuer.token(&json!({
            "aud": AUDIENCE, "sub": sub, "email": email, "exp": 4_102_444_800_i64,
            "public_metadata": {"role": role, "tenant_id": TENANT},
        })))
    }

    async fn principal(&self, subject: &str) -> String {
        let body = new_principal("human", "Ann").with("external_subject", subject);
        let made = self.app.owner().create_principal(body).await.assert_status(201);
        made["principal"]["id"].as_str().unwrap().to_owned()
    }

    /// Requires two people for each request of the tenant.
    async fn two_people(&self) {
        let policy = new_policy(
            "internal",
            "@id(\"four-eyes\")\n@reason(\"approval_threshold_breach\")\n\
                      @decision(\"require_approval\")\n@approvals(\"2\")\n\
                      forbid (principal, action, resource);\n",
        )
        .with("name", "Two people");
        self.app.owner().create_policy(policy).await.assert_status(201);
    }

    async fn held(&self, amount: f64) -> String {
        let (status, answer) = self.agent.evaluate(asking(amount, "DE")).await;
        assert_eq!((status, answer["decision"].text()), (200, "require_approval"), "{answer:#}");
        answer["approval_id"].as_str().unwrap().to_owned()
    }
}

async fn approve(person: &Client, id: &str) -> (u16, Value) {
    person.approve_approval(id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_person_with_two_issuers_is_not_two_approvers() {
    let two = Two::start(true).await;
    two.two_people().await;
    let id = two.held(25_000.0).await;
    let (ann, again) = (two.person(&two.first, "ann", None), two.person(&two.okta, "ann", None));
    assert_eq!(approve(&ann, &id).await.0, 200);
    let (status, answer) = approve(&again, &id).await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    let (status, answer) = approve(&two.person(&two.okta, "bob", None), &id).await;
    assert_eq!((status, answer["approval"]["state"].text()), (200, "approved"), "{answer:#}");
}

/// Approvals of one person before and after the end of `are_one` are not the approvals of two people.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_are_one_makes_no_second_approver() {
    let mut two = Two::start(true).await;
    two.two_people().await;
    let id = two.held(25_000.0).await;
    let ann = two.person(&two.okta, "ann", None);
    assert_eq!(approve(&ann, &id).await.0, 200);
    let identity = Two::identity(&two.first, &two.okta, false).await;
    let split = two.app.beside(Wishes { identity, ..Wishes::default() }).await;
    let _before = std::mem::replace(&mut two.app, split);
    let again = two.person(&two.okta, "ann", Some("ann@acme.example"));
    let (status, answer) = approve(&again, &id).await;
    assert_eq!((status, &answer["error"]), (409, &json!("approver_not_eligible")), "{answer:#}");
    let bob = two.person(&two.okta, "bob", Some("bob@acme.example"));
    let (status, answer) = approve(&bob, &id).await;
    assert_eq!((status, &answer["approval"]["state"]), (200, &json!("approved")), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_sub_is_two_approvers_unless_the_addresses_are_equal() {
    let two = Two::start(false).await;
    two.two_people().await;
    let id = two.held(25_000.0).await;
    let ann = two.person(&two.first, "ann", Some("ann@acme.example"));
    assert_eq!(approve(&ann, &id).await.0, 200);
    // Without an address, the service can't tell whether this is the same person.
    for email in [None, Some(""), Some(" ")] {
        for (issuer, role) in [(&two.okta, "admin"), (&two.first, "admin"), (&two.first, "owner")] {
            let client = two.in_role(issuer, "ann", email, role);
            let path = format!("/api/v1/approvals/{id}/approve");
            for path in [path.clone(), path.replace("/v1/", "/v1/app/")] {
                let (status, answer) = client.post(&path, nothing()).await;
                assert_eq!(status, 403, "{email:?}, {role}: {answer:#}");
                let told = answer["message"].as_str().unwrap();
                assert!(told.contains("has no `email`"), "{role}: {told}");
            }
        }
    }
    let other = two.person(&two.okta, "ann", Some("other.ann@acme.example"));
    let (status, answer) = approve(&other, &id).await;
    assert_eq!((status, answer["approval"]["state"].text()), (200, "approved"), "{answer:#}");
    // Without any setting, an equal address makes two identities one person for these rules.
    let id = two.held(26_000.0).await;
    let first = two.person(&two.first, "x", Some("ann@acme.example"));
    let okta = two.person(&two.okta, "y", Some("Ann@acme.example"));
    assert_eq!(approve(&first, &id).await.0, 200);
    let (status, answer) = approve(&okta, &id).await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_by_subject_is_of_one_issuers_person() {
    let two = Two::start(false).await;
    two.two_people().await;
    let id = two.held(25_000.0).await;
    for (issuer, email) in [(&two.first, "first@acme.example"), (&two.okta, "okta@acme.example")] {
        assert_eq!(approve(&two.person(issuer, "ann", Some(email)), &id).await.0, 200);
    }
    let owner = two.app.owner();
    let acts = async |subject: &str| -> Vec<Value> {
        let body = only("external_subject", subject);
        let (status, text) = owner.text("POST", "/api/v1/personal-data:export", Some(body)).await;
        assert_eq!(status, 200, "{text}");
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let acts = lines.filter(|line| line["kind"] == "act");
        acts.map(|act| act["data"]["person"].clone()).collect()
    };
    let of_okta = vec![json!(format!("{OKTA}|okta|ann"))];
    assert_eq!(acts("ann").await, [json!(format!("{FIRST}|ann"))]);
    assert_eq!(acts("okta|ann").await, of_okta);
    let body = json!({"external_subject": "ann", "reason": "request 17"});
    let erased = owner.erase_personal_data(body).await.assert_status(200);
    assert_eq!(erased["erasure"]["erased"]["acts"], 1, "{erased:#}");
    assert_eq!((acts("ann").await, acts("okta|ann").await), (Vec::new(), of_okta));
}

/// The owner registers people with the subjects that the service shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_principal_belongs_to_the_person_of_one_issuer() {
    let two = Two::start(false).await;
    let (of_first, of_okta) = (two.principal("ann").await, two.principal("okta|bob").await);
    for id in [&of_first, &of_okta] {
        two.app.owner().update_principal(id, only("state", "suspended")).await.assert_status(200);
    }
    two.app.app.graph.catch_up().await;
    for (issuer, sub, expected) in [
        (&two.first, "ann", 403),
        (&two.okta, "ann", 200),
        (&two.okta, "bob", 403),
        (&two.first, "bob", 200),
        // The other issuer's person stays another person.
        (&two.first, "okta|bob", 401),
    ] {
        let person = two.person(issuer, sub, Some("person@acme.example"));
        let (status, answer) = person.list_approvals("").await;
        assert_eq!(status, expected, "{sub} of {}: {answer:#}", issuer.iss);
    }
}

/// A person who chooses their `sub` at one issuer must not pass on the authority of another's person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_of_another_issuer_passes_on_no_authority() {
    for (are_one, expected) in [(false, 403), (true, 201)] {
        let two = Two::start(are_one).await;
        let (boss, ann) = (two.principal("boss").await, two.principal("ann").await);
        let root = json!({"tenant_id": TENANT, "delegator_id": boss, "delegate_id": ann,
            "actions": ["payment.*"], "can_delegate": true, "max_amount": "500", "currency": "EUR",
            "expires_at": "2040-01-01T00:00:00Z"});
        let made = two.app.owner().create_delegation(root).await.assert_status(201);
        let part = json!({"parent_id": made["delegation"]["id"], "delegate_id": AGENT,
            "actions": ["payment.execute"], "max_amount": "100", "currency": "EUR",
            "expires_at": "2039-01-01T00:00:00Z"});
        let okta = two.person(&two.okta, "ann", Some("okta.ann@acme.example"));
        let (status, answer) = okta.create_delegation(part.clone()).await;
        assert_eq!(status, expected, "are_one {are_one}: {answer:#}");
        let first = two.person(&two.first, "ann", Some("ann@acme.example"));
        first.create_delegation(part).await.assert_status(201);
    }
}
