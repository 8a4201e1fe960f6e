//! Decisions and requests are found by ids, names and declared facts, exactly, and only by people
//! who may list them.

mod erased;
mod kept;

use serde_json::{Value, json};

use super::{demo, questions::TENANT};
use crate::support::{AGENT, Answered, Client, Members, Plain, TestApp, asking, new_tenant};

const GROUPS: [&str; 4] = ["decisions", "approvals", "principals", "records"];

/// A payment with the facts that the demonstration's tool declares.
fn paying(amount: f64, payee: &str, iban: &str, invoice: &str) -> Value {
    let mut ask = asking(amount, "DE");
    let context = ask["context"].as_object_mut().unwrap();
    let facts = json!({"payee": payee, "iban": iban, "invoice": invoice});
    context.extend(facts.as_object().unwrap().clone());
    ask
}

/// Makes a decision, and returns its id.
async fn decided(client: &Client, ask: Value) -> String {
    let answer = client.evaluate(ask).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}

fn query(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn auditor(app: &TestApp) -> Client {
    app.person(TENANT, "auditor", "audit@example.org")
}

/// Searches as a person of a tenant.
async fn found(client: &Client, text: &str) -> Value {
    let (status, answer) = client.search(&format!("q={}", query(text))).await;
    assert_eq!(status, 200, "{text}: {answer:#}");
    answer
}

/// The found decisions, each with the roles that have the value.
fn decisions(answer: &Value) -> Vec<(String, Vec<String>)> {
    let found = answer["decisions"].as_array().unwrap().iter();
    found
        .map(|found| {
            let roles = found["roles"].as_array().unwrap().iter();
            let roles = roles.map(|role| role.as_str().unwrap().to_owned()).collect();
            (found["decision"]["decision_id"].as_str().unwrap().to_owned(), roles)
        })
        .collect()
}

fn ids(answer: &Value, group: &str, id: &str) -> Vec<String> {
    let found = answer[group].as_array().unwrap().iter();
    found.map(|found| found[id].as_str().unwrap().to_owned()).collect()
}

/// The decisions in the list with this fact.
async fn listed(client: &Client, fact: &str) -> Vec<String> {
    let path = format!("/api/v1/app/decisions?fact={}", query(fact));
    let page = client.get(&path).await.assert_status(200);
    ids(&page, "decisions", "decision_id")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_found_by_the_whole_value_of_each_role() {
    let (app, client, _) = demo().await;
    let iban = "DE89 3704 0044 0532";
    let paid = decided(&client, paying(1240.5, "Mu\u{308}ller AG", iban, "RE-2026-118")).await;
    decided(&client, paying(1240.5, "Globex", "FR76 3000", "RE-2026-119")).await;
    decided(&client, asking(1240.0, "DE")).await;
    app.index_facts().await;
    let auditor = auditor(&app);
    for (text, roles) in [
        ("Müller AG", &["payee"][..]),
        (" müller\u{a0} ag ", &["payee"]),
        ("payee:MÜLLER AG", &["payee"]),
        ("de89370400440532", &["account"]),
        ("account: DE89 3704 0044 0532", &["account"]),
        ("re-2026-118", &["document"]),
        ("document:RE-2026-118", &["document"]),
    ] {
        let answer = found(&auditor, text).await;
        let roles = roles.iter().map(|role| (*role).to_owned()).collect::<Vec<_>>();
        assert_eq!(decisions(&answer), [(paid.clone(), roles)], "{text}");
        assert_eq!(answer["more_decisions"], false);
        assert_eq!(answer["decisions"][0]["decision"]["subject"], AGENT, "{answer:#}");
        assert_eq!(listed(&auditor, text).await, std::slice::from_ref(&paid), "{text}");
    }
    for text in ["Müller", "RE-2026-11", "payee:RE-2026-118", "document:Müller AG", "target:Globex"]
    {
        assert!(decisions(&found(&auditor, text).await).is_empty(), "{text}");
        assert!(listed(&auditor, text).await.is_empty(), "{text}");
    }
    // Other filters of the list apply to the found decisions.
    for (filter, count) in [("decision=allow", 1), ("decision=deny", 0), ("action=ticket.close", 0)]
    {
        let (_, page) = auditor.list_decisions(&format!("fact=RE-2026-118&{filter}")).await;
        assert_eq!(page["decisions"].as_array().unwrap().len(), count, "{filter}: {page:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_amount_is_found_with_its_currency() {
    let (app, client, _) = demo().await;
    let paid = decided(&client, paying(1240.5, "Globex", "FR76", "R-1")).await;
    let held = decided(&client, paying(12_400.0, "Globex", "FR76", "R-2")).await;
    app.index_facts().await;
    let auditor = auditor(&app);
    for (text, id) in [
        ("1240.50 EUR", &paid),
        ("1,240.5 EUR", &paid),
        ("EUR 1.240,50", &paid),
        ("amount:1 240.50 eur", &paid),
        ("12,400.00 EUR", &held),
        ("12400 EUR", &held),
        ("12'400 EUR", &held),
        ("12.400 EUR", &held),
    ] {
        let amount = vec!["amount".to_owned()];
        assert_eq!(decisions(&found(&auditor, text).await), [(id.clone(), amount)], "{text}");
        assert_eq!(listed(&auditor, text).await, std::slice::from_ref(id), "{text}");
    }
    for text in ["1240.50 CHF", "1240.50", "1240.51 EUR", "payee:1240.50 EUR"] {
        assert!(decisions(&found(&auditor, text).await).is_empty(), "{text}");
    }
}

/// A tool without declared roles has no facts, not even an amount.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_of_tools_without_roles_have_no_facts() {
    let (app, client, _) = demo().await;
    let ask = paying(10.0, "Globex", "FR76", "R-1").with("action", "invoice.archive");
    decided(&client, ask).await;
    app.index_facts().await;
    let auditor = auditor(&app);
    for text in ["Globex", "R-1", "10 EUR"] {
        let answer = found(&auditor, text).await;
        assert!(decisions(&answer).is_empty(), "{text}: {answer:#}");
    }
    assert_eq!(count(&app, "decision_facts").await, 0);
}

/// Each role finds the records in its lists. People of other tenants find none of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_find_only_what_they_may_list() {
    let (app, client, _) = demo().await;
    let held = paying(25_000.0, "Globex", "FR76", "invoice-bot");
    let (_, answer) = client.evaluate(held).await;
    let approval = answer["approval_id"].as_str().unwrap();
    assert_eq!(app.owner().create_tenant(new_tenant("Other", "other")).await.0, 201);
    app.index_facts().await;
    // The document of the request is also the agent's name.
    for (role, finds) in [
        ("admin", [true, true, true]),
        ("auditor", [true, true, true]),
        ("approver", [false, true, false]),
        ("legal", [false, true, false]),
    ] {
        let person = app.person(TENANT, role, "p@example.org");
        let answer = found(&person, "invoice-bot").await;
        let has = |group: &str| !answer[group].as_array().unwrap().is_empty();
        assert_eq!(["decisions", "approvals", "principals"].map(has), finds, "{role}: {answer:#}");
        for text in ["invoice-bot", approval] {
            let answer = found(&person, text).await;
            assert_eq!(ids(&answer, "approvals", "approval_id"), [approval], "{role}: {text}");
        }
    }
    let viewer = app.person(TENANT, "viewer", "p@example.org");
    assert_eq!(viewer.search("q=x").await.0, 403);
    let other = app.person("svc:tenant:other", "admin", "p@example.org");
    let decision = answer["decision_id"].as_str().unwrap();
    for text in ["Globex", "25000 EUR", "invoice-bot", AGENT, approval, decision, "payments"] {
        let answer = found(&other, text).await;
        for group in GROUPS {
            assert_eq!(answer[group], json!([]), "{text}: {answer:#}");
        }
    }
    let refused = other.search(&format!("q=Globex&tenant_id={TENANT}")).await;
    assert_eq!(refused.0, 400, "{:#}", refused.1);
}

/// The owner searches facts in one tenant, and ids in all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_names_the_tenant() {
    let (app, client, _) = demo().await;
    let paid = decided(&client, paying(10.0, "Globex", "FR76", "R-1")).await;
    app.index_facts().await;
    let owner = app.owner();
    let search = async |text: &str| {
        let (status, answer) = owner.search(&format!("q={text}")).await;
        assert_eq!(status, 200, "{text}: {answer:#}");
        answer
    };
    for tenant in ["acme", TENANT] {
        let answer = search(&format!("Globex&tenant_id={tenant}")).await;
        assert_eq!(decisions(&answer)[0].0, paid);
    }
    assert!(decisions(&search("Globex").await).is_empty());
    assert_eq!(decisions(&search(&paid).await), [(paid.clone(), Vec::new())]);
    assert_eq!(ids(&search(AGENT).await, "principals", "principal_id"), [AGENT]);
    let unknown = owner.search("q=Globex&tenant_id=nowhere").await;
    assert_eq!(unknown.0, 400, "{:#}", unknown.1);
    let refused = owner.list_decisions("fact=Globex").await;
    assert_eq!((refused.0, refused.1["details"][0]["field"].text()), (400, "tenant_id"));
    for blank in ["", "%20%20"] {
        assert_eq!(owner.search(&format!("q={blank}")).await.0, 400, "{blank}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_and_names_are_found() {
    let (app, client, _) = demo().await;
    let paid = decided(&client, asking(10.0, "DE")).await;
    let auditor = auditor(&app);
    let last = paid.rsplit(':').next().unwrap();
    for text in [&paid, last] {
        assert_eq!(decisions(&found(&auditor, text).await), [(paid.clone(), Vec::new())], "{text}");
    }
    for text in [AGENT, "invoice-bot", "INVOICE-B"] {
        let answer = found(&auditor, text).await;
        assert_eq!(ids(&answer, "principals", "principal_id"), [AGENT], "{text}: {answer:#}");
    }
    let answer = found(&auditor, "Payments").await;
    assert_eq!(answer["records"][0]["name"], "payments", "{answer:#}");
    assert_eq!(answer["records"][0]["entity_type"], "tool", "{answer:#}");
    let tool = answer["records"][0]["record_id"].as_str().unwrap();
    assert_eq!(ids(&found(&auditor, tool).await, "records", "record_id"), [tool]);
    let nothing = found(&auditor, "nobody").await;
    assert!(GROUPS.iter().all(|group| nothing[group] == json!([])), "{nothing:#}");
}

/// A held request is found at once. Its decision is found after the worker has indexed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_request_is_found_at_once() {
    let (app, client, _) = demo().await;
    let ask = paying(25_000.0, "Globex", "FR76", "R-7");
    let (_, answer) = client.evaluate(ask).await;
    let approval = answer["approval_id"].as_str().unwrap();
    let auditor = auditor(&app);
    let early = found(&auditor, "R-7").await;
    assert_eq!(ids(&early, "approvals", "approval_id"), [approval], "{early:#}");
    assert!(decisions(&early).is_empty(), "{early:#}");
    assert!(found(&auditor, "25000 EUR").await["approvals"].as_array().unwrap().is_empty());
    app.index_facts().await;
    for text in ["R-7", "25000 EUR"] {
        let later = found(&auditor, text).await;
        assert_eq!(ids(&later, "approvals", "approval_id"), [approval], "{later:#}");
        assert_eq!(decisions(&later)[0].0, answer["decision_id"], "{later:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_has_twenty_results_and_the_list_has_all() {
    let (app, client, _) = demo().await;
    let mut made = Vec::new();
    for number in 0..23 {
        made.push(decided(&client, paying(10.0, "Globex", "FR76", &format!("R-{number}"))).await);
    }
    made.sort_unstable();
    made.reverse();
    app.index_facts().await;
    let auditor = auditor(&app);
    let answer = found(&auditor, "Globex").await;
    let shown: Vec<String> = decisions(&answer).into_iter().map(|(id, _)| id).collect();
    assert_eq!((shown.as_slice(), answer["more_decisions"].as_bool()), (&made[..20], Some(true)));
    let (mut paged, mut token) = (Vec::new(), String::new());
    loop {
        let page = auditor
            .list_decisions(&format!("fact=payee:Globex&limit=9&page_token={token}"))
            .await
            .assert_status(200);
        paged.extend(ids(&page, "decisions", "decision_id"));
        match page["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(paged, made);
}

/// A decision with several values of a role is found by each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_several_values_is_found() {
    let (app, client, _) = demo().await;
    let mut ask = paying(10.0, "Globex", "", "R-1");
    ask["context"]["iban"] = json!(["FR76", "DE89", {"other": "IT60"}]);
    let paid = decided(&client, ask).await;
    app.index_facts().await;
    assert_eq!(count(&app, "decision_facts").await, 3);
    for text in ["Globex", "fr 76", "DE89", "it60", "R-1"] {
        assert_eq!(decisions(&found(&auditor(&app), text).await).len(), 1, "{text}");
        assert_eq!(listed(&auditor(&app), text).await, std::slice::from_ref(&paid), "{text}");
    }
}

/// The number of rows of a table, of all tenants.
async fn count(app: &TestApp, table: &str) -> i64 {
    number(app, &format!("SELECT count(*) AS number FROM {table}")).await
}

async fn number(app: &TestApp, sql: &str) -> i64 {
    use diesel_async::RunQueryDsl;

    #[derive(diesel::QueryableByName)]
    struct Number {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        number: i64,
    }
    let mut db = app.database.owner().await;
    diesel::sql_query(sql).get_result::<Number>(&mut db).await.unwrap().number
}
