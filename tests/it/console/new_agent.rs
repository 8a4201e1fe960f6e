//! A new agent, from its name to its first decision.

use regex::Regex;
use serde_json::{Value, json};

use super::{
    Console,
    browser::{Browser, Page, unescaped},
};
use crate::support::{Answered, Members, Plain, new_principal};

const NEW: &str = "/console/agents/new";
const OWNER: (&str, &str) = ("owner", "operator@localhost");
/// The administrator of the demonstration.
const ADMIN: (&str, &str) = ("admin", "admin@acme.example");

/// Sends a step's form with these values.
async fn step(browser: &mut Browser, page: &Page, act: &str, values: &[(&str, &str)]) -> Page {
    let mut form = page.form(NEW);
    form.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    if !act.is_empty() {
        form.push(("do".to_owned(), act.to_owned()));
    }
    browser.post(NEW, &form).await
}

async fn person(console: &Console) -> String {
    let (_, listed) =
        console.app.owner().list_principals("tenant_id=svc:tenant:acme&limit=100").await;
    let people = listed["principals"].as_array().unwrap();
    let finance = people.iter().find(|one| one["display_name"] == "Head of finance").unwrap();
    finance["id"].as_str().unwrap().to_owned()
}

/// The API key that the last step shows.
#[track_caller]
fn shown_key(done: &Page) -> String {
    let secret = Regex::new("<code class=\"secret\" data-copy>([^<]*)</code>").unwrap();
    secret.captures(&done.text).unwrap()[1].to_owned()
}

/// The body of the first request that the last step shows.
#[track_caller]
fn shown_request(done: &Page) -> Value {
    let body = Regex::new("(?s)curl -sS [^ ]*/api/v1/runtime/evaluate .*?-d &#39;(.*?)&#39;</pre>");
    let body = body.unwrap();
    serde_json::from_str(&unescaped(&body.captures(&done.text).unwrap()[1])).unwrap()
}

async fn found(console: &Console, id: &str) -> (u16, Value) {
    console.app.owner().get_principal(id).await
}

async fn delegations(console: &Console, agent: &str) -> Vec<Value> {
    let listed = console
        .app
        .owner()
        .list_delegations(&format!("delegate_id={agent}"))
        .await
        .assert_status(200);
    listed["delegations"].as_array().unwrap().clone()
}

fn authority(person: &str) -> [(&'static str, String); 9] {
    [
        ("m.delegator_id", person.to_owned()),
        ("m.actions", "payment.execute".to_owned()),
        ("m.purposes", "invoice-settlement".to_owned()),
        ("m.max_amount", "5000".to_owned()),
        ("m.max_total_amount.amount", "20000".to_owned()),
        ("m.max_total_amount.window_seconds", "86400".to_owned()),
        ("m.currency", "EUR".to_owned()),
        ("m.jurisdictions", "DE".to_owned()),
        ("m.expires_at", "2040-12-31".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_made_with_its_authority_its_key_and_its_first_request() {
    let console = Console::start().await;
    let person = person(&console).await;
    let mut owner = console.signed_in_at(OWNER, "/console/agents").await;
    owner.get("/console/agents").await.shows("href=\"/console/agents/new\">New agent…");
    let page = owner.get(NEW).await;
    // The owner is chosen by name among people.
    page.shows(&format!("<option value=\"{person}\">Head of finance</option>"));
    assert!(!page.text.contains("<option value=\"svc:agent:"), "{}", page.text);
    let refused = step(&mut owner, &page, "next", &[("m.name", "invoice-bot")]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("another agent is called invoice-bot");
    refused.shows("id=\"wrong-m.owner_principal_id\">is required");
    let who = [
        ("m.name", "pay-bot"),
        ("m.display_name", "Pays invoices"),
        ("m.owner_principal_id", &*person),
    ];
    let page = step(&mut owner, &page, "next", &who).await;
    page.shows("Step 2 of 4");
    let authority = authority(&person);
    let values: Vec<_> = authority.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let third = step(&mut owner, &page, "next", &values).await;
    third.shows(
        "pay-bot may run payment.execute up to 5 000.00 EUR each time and 20 000.00 EUR a day, in DE, for \
         invoice-settlement, until 31 Dec 2040, on behalf of Head of finance.",
    );
    // Going back keeps every value. No record exists before the last press.
    let back = step(&mut owner, &third, "back", &[]).await;
    back.shows("name=\"m.max_amount\" value=\"5000\"");
    back.shows("name=\"m.expires_at\" value=\"2040-12-31\"");
    back.shows(&format!("<option value=\"{person}\" selected>"));
    let first = step(&mut owner, &back, "back", &values).await;
    first.shows("name=\"m.name\" value=\"pay-bot\"");
    let agent = "svc:agent:acme:pay-bot";
    assert_eq!(found(&console, agent).await.0, 404);
    let done = step(&mut owner, &third, "", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let (status, made) = found(&console, agent).await;
    assert_eq!((status, made["principal"]["owner_principal_id"].text()), (200, person.as_str()));
    let given = delegations(&console, agent).await;
    assert_eq!((given.len(), given[0]["expires_at"].text()), (1, "2041-01-01T00:00:00Z"));
    assert_eq!(given[0]["max_total_amount"]["window_seconds"], 86400);

    let secret = shown_key(&done);
    done.shows("authority.runtime.v1.RuntimeService/Evaluate</pre>");
    let (status, decided) = console.app.client(&secret).evaluate(shown_request(&done)).await;
    assert_eq!((status, decided["decision"].text()), (200, "allow"), "{decided:#}");
    done.shows("/console/decisions?agent=svc%3Aagent%3Aacme%3Apay-bot\">Its decisions</a>");
    // The key is bound to the agent, and is not shown again.
    let other = json!({"subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
        "purpose": "invoice-settlement", "context": {"amount": 1, "currency": "EUR", "jurisdiction": "DE"}});
    let client = console.app.client(&secret);
    assert_ne!(client.evaluate(other).await.0, 200);
    let page = owner.get("/console/decisions?agent=svc:agent:acme:pay-bot").await;
    page.shows("payment.execute");
    // A form that is sent twice creates each record once.
    let again = step(&mut owner, &third, "", &[]).await;
    assert!(again.status < 500, "{}", again.text);
    assert_eq!(delegations(&console, agent).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_refusal_it_continues_with_the_records_that_exist() {
    let console = Console::start().await;
    let person = person(&console).await;
    let mut owner = console.signed_in_at(OWNER, NEW).await;
    let page = owner.get(NEW).await;
    let who =
        [("m.name", "half-bot"), ("m.display_name", "Half"), ("m.owner_principal_id", &*person)];
    let page = step(&mut owner, &page, "next", &who).await;
    let limit =
        [("m.delegator_id", &*person), ("m.actions", "payment.execute"), ("m.max_amount", "5000")];
    let third = step(&mut owner, &page, "next", &limit).await;
    // Without a currency the delegation is refused, after the agent was created.
    let refused = step(&mut owner, &third, "", &[]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("half-bot exists, but has no delegation yet");
    refused.shows("Step 2 of 4");
    refused.shows("name=\"m.max_amount\" value=\"5000\"");
    assert!(!refused.text.contains("value=\"back\""), "{}", refused.text);
    let agent = "svc:agent:acme:half-bot";
    assert_eq!(found(&console, agent).await.0, 200);
    assert!(delegations(&console, agent).await.is_empty());
    // Its own page also leads on.
    let page = owner.get(&format!("/console/agents/{agent}")).await;
    page.shows("/console/agents/new?agent=svc%3Aagent%3Aacme%3Ahalf-bot");
    let third =
        step(&mut owner, &refused, "next", &[limit.as_slice(), &[("m.currency", "EUR")]].concat())
            .await;
    third.shows("half-bot may run payment.execute up to 5 000.00 EUR each time");
    let done = step(&mut owner, &third, "", &[]).await;
    done.shows("half-bot is ready");
    assert_eq!(delegations(&console, agent).await.len(), 1);
}

/// The demonstration's administrator already has a delegation with `can_delegate`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demonstrations_administrator_makes_an_agent() {
    let console = Console::start().await;
    let mut admin = console.signed_in_at(ADMIN, "/console/agents").await;
    admin.get("/console/agents").await.shows("href=\"/console/agents/new\">New agent…");
    let page = admin.get(NEW).await;
    assert!(!page.text.contains("You have no delegation"), "{}", page.text);
    // They choose themselves as the owner, by name.
    let own = Regex::new("<option value=\"([^\"]*)\"[^>]*>Administrator</option>").unwrap();
    let own = own.captures(&page.text).unwrap()[1].to_owned();
    let who = [
        ("m.name", "desk-bot"),
        ("m.display_name", "Pays at the desk"),
        ("m.owner_principal_id", &*own),
    ];
    let page = step(&mut admin, &page, "next", &who).await;
    page.shows("Step 2 of 4");
    let held = "<option value=\"([^\"]*)\"[^>]*>payment\\.\\*, invoice\\.\\*, up to 50000 EUR";
    let held = Regex::new(held).unwrap();
    let held = held.captures(&page.text).unwrap()[1].to_owned();
    let limit = |amount: &'static str| {
        [
            ("m.parent_id", &*held),
            ("m.actions", "payment.execute"),
            ("m.purposes", "invoice-settlement"),
            ("m.max_amount", amount),
            ("m.currency", "EUR"),
            ("m.jurisdictions", "DE"),
        ]
    };
    // They give no more than they have.
    let third = step(&mut admin, &page, "next", &limit("50001")).await;
    let refused = step(&mut admin, &third, "", &[]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("desk-bot exists, but has no delegation yet");
    let third = step(&mut admin, &refused, "next", &limit("5000")).await;
    third.shows("desk-bot may run payment.execute up to 5 000.00 EUR each time, in DE");
    let done = step(&mut admin, &third, "", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text);
    done.shows("desk-bot is ready");
    let given = delegations(&console, "svc:agent:acme:desk-bot").await;
    let links = (given[0]["parent_id"].text(), given[0]["delegator_id"].text());
    assert_eq!((given.len(), links), (1, (held.as_str(), own.as_str())), "{given:#?}");
    let agent = console.app.client(&shown_key(&done));
    let (status, decided) = agent.evaluate(shown_request(&done)).await;
    assert_eq!((status, decided["decision"].text()), (200, "allow"), "{decided:#}");
    let page = admin.get("/console/decisions?agent=svc:agent:acme:desk-bot").await;
    page.shows("payment.execute");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_admin_makes_an_agent_under_a_delegation_that_they_received() {
    let console = Console::start().await;
    let person = person(&console).await;
    let (who, owner) = (("admin", "ann@acme.example"), console.app.owner());
    let mut admin = console.signed_in_at(who, "/console/agents").await;
    admin.get("/console/agents").await.shows("href=\"/console/agents/new\">New agent…");
    admin.get(NEW).await.shows("You have no delegation to pass on.");
    // The installation's owner registers the admin, and gives the first delegation.
    let body = new_principal("human", "Ann").with("external_subject", "dev|ann@acme.example");
    let own = owner.create_principal(body).await.assert_status(201);
    let body = json!({"tenant_id": "svc:tenant:acme", "delegator_id": person,
        "delegate_id": own["principal"]["id"], "actions": ["payment.*"], "can_delegate": true,
        "purposes": ["invoice-settlement"], "max_amount": "5000", "currency": "EUR",
        "jurisdictions": ["DE"], "expires_at": "2041-01-01T00:00:00Z"});
    let held = owner.create_delegation(body).await.assert_status(201);
    let held = held["delegation"]["id"].as_str().unwrap();
    let page = admin.get(NEW).await;
    assert!(!page.text.contains("You have no delegation"), "{}", page.text);
    let values =
        [("m.name", "team-bot"), ("m.display_name", "Pays"), ("m.owner_principal_id", &*person)];
    let page = step(&mut admin, &page, "next", &values).await;
    page.shows("Step 2 of 4");
    page.shows(&format!("<option value=\"{held}\">payment.*, up to 5000 EUR"));
    assert!(!page.text.contains("m.delegator_id"), "{}", page.text);
    let limit = |amount: &'static str| {
        [
            ("m.parent_id", held),
            ("m.actions", "payment.execute"),
            ("m.purposes", "invoice-settlement"),
            ("m.max_amount", amount),
            ("m.currency", "EUR"),
            ("m.jurisdictions", "DE"),
            ("m.expires_at", "2040-12-31"),
        ]
    };
    let third = step(&mut admin, &page, "next", &limit("6000")).await;
    third.shows("under another delegation");
    let refused = step(&mut admin, &third, "", &[]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("team-bot exists, but has no delegation yet");
    let third = step(&mut admin, &refused, "next", &limit("100")).await;
    let done = step(&mut admin, &third, "", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let given = delegations(&console, "svc:agent:acme:team-bot").await;
    let delegator = &given[0]["delegator_id"];
    assert_eq!((given.len(), delegator), (1, &own["principal"]["id"]), "{given:#?}");
    let asked = json!({"subject": "svc:agent:acme:team-bot", "action": "payment.execute",
        "purpose": "invoice-settlement",
        "context": {"amount": 100, "currency": "EUR", "jurisdiction": "DE"}});
    let (status, decided) = console.app.client(&shown_key(&done)).evaluate(asked).await;
    assert_eq!((status, decided["decision"].text()), (200, "allow"), "{decided:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_may_create_all_of_it_gets_the_form() {
    let console = Console::start().await;
    for who in [("auditor", "auditor@acme.example"), super::APPROVER] {
        let mut browser = console.signed_in(who).await;
        let page = browser.get(NEW).await;
        assert_eq!(page.status, 403, "{}", page.text);
        page.shows("It is open to a tenant&#39;s admin");
        let agents = browser.get("/console/agents").await;
        assert!(!agents.text.contains("New agent…"), "{}", agents.text);
    }
}
