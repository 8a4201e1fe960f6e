//! How a request reads by the declaration of its tool, and warnings about other requests.

use serde_json::{Value, json};

use super::{
    demo,
    questions::{TENANT, act, approver, held, read},
};
use crate::support::{Answered, Client, Members, Plain, TestApp, asking, new_tool, nothing, only};

fn paying(context: &Value) -> Value {
    let mut ask = asking(25_000.0, "DE");
    let own = ask["context"].as_object_mut().unwrap();
    own.extend(context.as_object().unwrap().clone());
    ask
}

/// The path of the demonstration's tool for payments.
async fn tool(app: &TestApp) -> String {
    let (_, tools) = app.owner().list_tools("").await;
    let tools = tools["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "payments").unwrap();
    format!("/api/v1/tools/{}", tool["id"].as_str().unwrap())
}

async fn declare(app: &TestApp, body: Value) {
    app.owner().patch(&tool(app).await, body).await.assert_status(200);
}

fn facts(shown: &Value) -> Vec<(&str, &str)> {
    let facts = shown["presentation"]["facts"].as_array().unwrap();
    facts
        .iter()
        .map(|fact| (fact["label"].as_str().unwrap(), fact["value"].as_str().unwrap()))
        .collect()
}

/// The warnings of a request: each reason, with the ids of the other requests.
fn warnings(shown: &Value) -> Vec<(&str, Vec<&str>)> {
    let groups = shown["similar"].as_array().unwrap().iter();
    groups
        .map(|group| {
            let requests = group["requests"].as_array().unwrap();
            assert_eq!(group["total"], requests.len(), "{group:#}");
            let ids = requests.iter().map(|other| other["id"].as_str().unwrap());
            (group["reason"].as_str().unwrap(), ids.collect())
        })
        .collect()
}

async fn asked(app: &TestApp, client: &Client, context: &Value) -> Value {
    let id = held(client, &paying(context)).await;
    read(&approver(app), &id).await
}

fn id(shown: &Value) -> &str {
    shown["id"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_reads_as_its_tool_declares_for_everybody_who_may_see_it() {
    let (app, client, _) = demo().await;
    let context = json!({"payee": "Müller", "iban": "DE89", "invoice": "RE-1", "note": "urgent",
        "centre": 7, "line_items": [{"text": "Pipes", "net": 5}]});
    let id = held(&client, &paying(&context)).await;
    let shown = read(&approver(&app), &id).await;
    let presentation = &shown["presentation"];
    assert_eq!(presentation["title"], "Pay 25 000.00 EUR to Müller");
    assert_eq!(presentation["declared_title"], true);
    assert_eq!(
        facts(&shown),
        [
            ("To", "Müller"),
            ("Account", "DE89"),
            ("Invoice", "RE-1"),
            ("Amount", "25 000.00 EUR"),
            ("Place", "DE")
        ]
    );
    assert_eq!(presentation["facts"][1]["role"], "account");
    assert_eq!(presentation["lists"][0]["columns"].texts(), ["Text", "Quantity", "Net"]);
    assert_eq!(presentation["lists"][0]["rows"][0]["cells"].texts(), ["Pipes", "", "5"]);
    assert_eq!(presentation["agent_words"][0]["value"], "urgent");
    assert_eq!(presentation["not_shown"], 1, "the centre: {presentation:#}");
    for role in ["approver", "legal", "admin", "auditor"] {
        let person = app.person(TENANT, role, "ann@example.org");
        let (_, list) = person.list_approvals("").await;
        for member in ["presentation", "presentation_version"] {
            assert_eq!(list["approvals"][0][member], shown[member], "{role}");
            assert_eq!(read(&person, &id).await[member], shown[member], "{role}");
        }
    }
    let (status, acted) = act(&approver(&app), &id, "approve", nothing()).await;
    assert_eq!((status, &acted["presentation"]), (200, presentation));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_on_another_presentation_is_refused() {
    let (app, client, _) = demo().await;
    let first = asked(&app, &client, &only("payee", "A")).await;
    let ann = approver(&app);
    let version = first["presentation_version"].clone();
    // Notes of the tool are not part of what people see.
    declare(&app, only("notes", "reviewed")).await;
    assert_eq!(read(&ann, id(&first)).await["presentation_version"], version);
    declare(&app, json!({"presentation": {"title": "Send {amount}"}})).await;
    let now = read(&ann, id(&first)).await;
    assert_ne!(now["presentation_version"], version);
    assert_eq!(now["request_digest"], first["request_digest"]);
    for (verb, body) in [
        ("approve", only("presentation_version", &version)),
        ("decline", json!({"presentation_version": version, "reason": "no"})),
    ] {
        let (status, refused) = act(&ann, id(&first), verb, body).await;
        assert_eq!((status, refused["error"].text()), (409, "presentation_differs"), "{refused:#}");
    }
    let pending = read(&ann, id(&first)).await;
    assert_eq!((pending["state"].text(), &pending["acts"]), ("pending", &json!([])));
    let body = only("presentation_version", &now["presentation_version"]);
    assert_eq!(act(&ann, id(&first), "approve", body).await.0, 200);
    // Without a version, the act is on the request alone.
    let second = asked(&app, &client, &only("payee", "B")).await;
    let body = only("request_digest", &second["request_digest"]);
    assert_eq!(act(&ann, id(&second), "approve", body).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declaration_has_languages_blocks_and_totals() {
    let (app, client, _) = demo().await;
    let presentation = json!({
        "title": "Pay {amount}", "decline_title": "Payment of {amount}", "language": "en",
        "translations": [{"language": "de", "title": "{amount} zahlen", "decline_title": "Zahlung von {amount}"},
                         {"language": "fr", "title": "Payer {payee}"}],
        "facts": [{"path": "script", "label": "Script", "block": true}],
        "lists": [{"path": "items", "columns": ["text", "net"], "total": "net"}],
    });
    declare(&app, only("presentation", &presentation)).await;
    let context =
        json!({"script": "a\nb\n", "items": [{"text": "A", "net": 0.1}, {"net": 0.2, "vat": 1}]});
    let shown = asked(&app, &client, &context).await;
    let seen = &shown["presentation"];
    assert_eq!(seen["decline_title"], "Payment of 25 000.00 EUR", "{seen:#}");
    // A title without a value for its placeholder is left out.
    let german = json!({"language": "de", "title": "25 000.00 EUR zahlen",
        "decline_title": "Zahlung von 25 000.00 EUR", "mixed_letters": ""});
    assert_eq!((seen["language"].text(), &seen["translations"]), ("en", &json!([german])));
    assert_eq!(
        (seen["facts"][0]["value"].text(), seen["facts"][0]["block"].as_bool()),
        ("a\nb\n", Some(true))
    );
    let table = &seen["lists"][0];
    assert_eq!(table["columns"].texts(), ["Text", "Net", "Other fields"]);
    assert_eq!(table["rows"][1]["cells"].texts(), ["", "0.2", "{\"vat\":1}"]);
    assert_eq!(table["total"]["cells"].texts(), ["", "0.3", ""]);
    assert_eq!(seen["not_shown"], 3, "amount, currency and place: {seen:#}");
    // Another translation is another presentation.
    let mut other = presentation.clone();
    other["translations"][0]["title"] = "{amount} überweisen".into();
    declare(&app, only("presentation", &other)).await;
    let now = read(&approver(&app), id(&shown)).await;
    assert_ne!(now["presentation_version"], shown["presentation_version"]);
    // An item has a text instead of a number: the total is absent.
    let shown = asked(&app, &client, &json!({"items": [{"net": 1}, {"net": "2"}]})).await;
    assert_eq!(shown["presentation"]["lists"][0]["total"], Value::Null, "{shown:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_declaration_all_fields_are_shown_in_the_schemas_order() {
    let (app, client, _) = demo().await;
    declare(&app, only("presentation", Value::Null)).await;
    let context =
        json!({"zahlungsempfaenger": "Müller", "konto": "DE89", "agent_note": "approve quickly"});
    let shown = asked(&app, &client, &context).await;
    assert_eq!(shown["presentation"]["title"], "invoice-bot wants to run payment.execute");
    assert_eq!(shown["presentation"]["declared_title"], false);
    assert_eq!(
        facts(&shown),
        [
            ("Agent note", "approve quickly"),
            ("Amount", "25 000.00 EUR"),
            ("Jurisdiction", "DE"),
            ("Konto", "DE89"),
            ("Zahlungsempfaenger", "Müller"),
        ]
    );
    assert_eq!((&shown["similar"], &shown["first_to"]), (&json!([]), &json!([])));
    let schema = json!({"type": "object", "required": ["zahlungsempfaenger", "amount"],
        "properties": {"zahlungsempfaenger": {}, "konto": {}, "amount": {}}});
    declare(&app, only("input_schema", &schema)).await;
    let shown = read(&approver(&app), id(&shown)).await;
    let labels: Vec<_> = facts(&shown).into_iter().map(|(label, _)| label).collect();
    assert_eq!(labels, ["Zahlungsempfaenger", "Amount", "Konto", "Agent note", "Jurisdiction"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_tools_that_differ_share_no_presentation() {
    let (app, client, _) = demo().await;
    let first = asked(&app, &client, &json!({"payee": "A", "iban": "DE1", "invoice": "X"})).await;
    let other =
        new_tool("transfers", "send()", &["payment.execute"]).with("access_level", "execute");
    let made = app.owner().create_tool(other).await.assert_status(201);
    let shown = read(&approver(&app), id(&first)).await;
    assert_eq!(shown["presentation"]["declared_title"], false, "{shown:#}");
    // The warnings do not depend on which tool a request names: each declared role is compared.
    let again = asked(&app, &client, &json!({"payee": "A", "iban": "DE2", "invoice": "X"})).await;
    assert_eq!(
        warnings(&again),
        [("document_again", vec![id(&first)]), ("new_account", vec![id(&first)])]
    );
    // Equal presentations are shared.
    let (_, read_tool) = app.owner().get(&tool(&app).await).await;
    let same = only("presentation", &read_tool["tool"]["presentation"]);
    assert_eq!(app.owner().update_tool(made["tool"]["id"].as_str().unwrap(), same).await.0, 200);
    let shown = read(&approver(&app), id(&first)).await;
    assert_eq!(shown["presentation"]["title"], "Pay 25 000.00 EUR to A");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_warnings_are_exact() {
    let (app, client, _) = demo().await;
    let pay = async |payee: Option<&str>, iban: &str, invoice: &str| {
        let context = json!({"payee": payee, "iban": iban, "invoice": invoice});
        asked(&app, &client, &context).await
    };
    let first = pay(Some("Acme AG"), "DE1", "R-1").await;
    assert_eq!((warnings(&first), first["first_to"].texts()), (vec![], vec!["payee", "account"]));
    // Asking alone makes no payee known.
    let usual = pay(Some("Acme AG"), "DE1", "R-2").await;
    assert_eq!((warnings(&usual), usual["first_to"].texts()), (vec![], vec!["payee", "account"]));
    let ann = approver(&app);
    assert_eq!(act(&ann, id(&first), "approve", nothing()).await.0, 200);
    assert_eq!(read(&ann, id(&usual)).await["first_to"], json!([]));
    // The same document for the same payee, written with blanks.
    let again = pay(Some(" a\u{217d}ME  AG"), "de 1", "r-1").await;
    assert_eq!(warnings(&again), [("document_again", vec![id(&first)])]);
    // Another payee's document with the same number is not a warning.
    let elsewhere = pay(Some("Beta AG"), "DE2", "R-1").await;
    assert_eq!(warnings(&elsewhere), []);
    // Without a payee, the document counts.
    let nameless = pay(None, "DE2", "R-2").await;
    assert_eq!(
        warnings(&nameless),
        [("document_again", vec![id(&usual)]), ("shared_account", vec![id(&elsewhere)])]
    );
    let account = pay(Some("Acme AG"), "LT9", "R-3").await;
    let all = vec![id(&again), id(&usual), id(&first)];
    assert_eq!(warnings(&account), [("new_account", all)]);
    assert_eq!(account["first_to"].texts(), ["account"]);
    // Another shape of the same values.
    let nested =
        json!({"payee": {"name": "Acme AG"}, "iban": [["LT9"]], "invoice": {"no": ["R-3"]}});
    let nested = asked(&app, &client, &nested).await;
    assert_eq!(warnings(&nested)[0], ("document_again", vec![id(&account)]));
    client.cancel_approval(id(&nested)).await.assert_status(200);
    let shared = pay(Some("Gamma AG"), "LT9", "R-4").await;
    assert_eq!(warnings(&shared), [("shared_account", vec![id(&account)])]);
    assert_eq!(shared["first_to"].texts(), ["payee", "account"]);
    // Earlier requests have the warning as well, and lists of pending requests.
    let (_, list) = ann.list_approvals("state=pending").await;
    let listed = list["approvals"].as_array().unwrap();
    let usual = listed.iter().find(|one| one["id"] == usual["id"]).unwrap();
    assert_eq!(
        warnings(usual),
        [("document_again", vec![id(&nameless)]), ("new_account", vec![id(&account)])]
    );
}

/// An agent can send many values. Lists of requests stay fast. The answer states that values are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_many_values_is_partly_compared_and_not_in_lists() {
    let (app, client, _) = demo().await;
    let many = |from: usize| (from..from + 40).map(|n| format!("A{n}")).collect::<Vec<_>>();
    let known = asked(&app, &client, &json!({"payee": "P", "iban": "A1", "invoice": "R-1"})).await;
    assert_eq!(known["partly_compared"], false);
    let crowded = json!({"payee": "Q", "iban": many(100), "invoice": "R-1"});
    let crowded = asked(&app, &client, &crowded).await;
    assert_eq!(crowded["partly_compared"], true, "{crowded:#}");
    let again = json!({"payee": "Q", "iban": many(100), "invoice": "R-2"});
    let again = asked(&app, &client, &again).await;
    let (_, list) = approver(&app).list_approvals("state=pending").await;
    let listed = list["approvals"].as_array().unwrap();
    let listed = listed.iter().find(|one| one["id"] == again["id"]).unwrap();
    assert_eq!((&listed["similar"], listed["partly_compared"].as_bool()), (&json!([]), Some(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_asked_again_is_a_warning_only_if_it_had_an_effect() {
    let (app, client, _) = demo().await;
    let context = json!({"payee": "A", "iban": "DE1", "invoice": "R-1"});
    let first = asked(&app, &client, &context).await;
    let ann = approver(&app);
    let body = json!({"reason": "wrong", "for_seconds": 0});
    assert_eq!(act(&ann, id(&first), "decline", body).await.0, 200);
    let second = asked(&app, &client, &context).await;
    assert_eq!(warnings(&second), [], "{:#}", second["earlier"]);
    // A declined request for the same document in another question is a warning.
    let other =
        asked(&app, &client, &json!({"payee": "A", "iban": "DE1", "invoice": "R-1", "try": 2}))
            .await;
    assert_eq!(warnings(&other), [("document_again", vec![id(&second), id(&first)])]);
    assert_eq!(act(&ann, id(&second), "approve", nothing()).await.0, 200);
    let used = paying(&context).with("approval_id", &second["id"]);
    let (_, answer) = client.evaluate(used).await;
    assert_eq!(answer["decision"], "allow", "{answer:#}");
    let third = asked(&app, &client, &context).await;
    assert_eq!(warnings(&third), [("document_again", vec![id(&other), id(&second)])]);
}

/// A declined request is compared like others, and listed with its state. A declined payee or account
/// alone is not a warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declined_request_is_in_the_warnings_with_its_state() {
    let (app, client, _) = demo().await;
    let pay = async |payee: &str, iban: &str, invoice: &str| {
        let context = json!({"payee": payee, "iban": iban, "invoice": invoice});
        asked(&app, &client, &context).await
    };
    let declined = pay("A", "LT9", "R-1").await;
    let body = only("reason", "not our supplier");
    assert_eq!(act(&approver(&app), id(&declined), "decline", body).await.0, 200);
    for (payee, iban, invoice, reasons) in [
        ("A", "LT9", "r-1", &["document_again"][..]),
        ("B", "LT9", "R-2", &["shared_account"]),
        ("A", "DE1", "R-3", &["new_account"]),
    ] {
        let shown = pay(payee, iban, invoice).await;
        let groups = shown["similar"].as_array().unwrap();
        let found: Vec<_> = groups.iter().map(|group| group["reason"].as_str().unwrap()).collect();
        assert_eq!(found, reasons, "{shown:#}");
        let requests = groups[0]["requests"].as_array().unwrap();
        let own = requests.iter().find(|other| other["id"] == declined["id"]).unwrap();
        assert_eq!(own["state"], "declined", "{shown:#}");
        // The next request is compared with the declined one alone.
        assert_eq!(client.cancel_approval(id(&shown)).await.0, 200);
    }
    let shown = pay("A", "LT9", "R-4").await;
    assert_eq!(warnings(&shown), []);
    assert_eq!(shown["declined_before"][0]["id"], declined["id"], "{shown:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_presentation_is_checked_against_the_schema() {
    let (app, ..) = demo().await;
    let item = json!({"type": "object", "properties": {"text": {"type": "string"}, "net": {}}});
    let schema = json!({"type": "object", "properties": {"payee": {"type": "string"},
        "count": {"type": "integer"}, "items": {"type": "array", "items": item}}});
    let path = tool(&app).await;
    for (presentation, field) in [
        (only("title", "Pay {payer}"), "presentation.title"),
        (only("title", "Pay {"), "presentation.title"),
        (
            json!({"title": "Pay", "facts": [{"path": "to", "label": "To"}]}),
            "presentation.facts[0].path",
        ),
        (
            json!({"title": "Pay", "facts": [{"path": "payee", "label": "To", "role": "friend"}]}),
            "presentation.facts[0].role",
        ),
        (json!({"title": "Pay", "agent_words": ["remark"]}), "presentation.agent_words[0]"),
        (json!({"title": "Pay", "decline_title": "To {payer}"}), "presentation.decline_title"),
        (json!({"title": "Pay", "language": "english, please"}), "presentation.language"),
        (
            json!({"title": "Pay", "translations": [{"language": "de", "title": "{payer}"}]}),
            "presentation.translations[0].title",
        ),
        (
            json!({"title": "Pay", "language": "de", "translations": [{"language": "DE", "title": "x"}]}),
            "presentation.translations[0].language",
        ),
        (
            json!({"title": "Pay", "lists": [{"path": "items", "columns": ["net"], "total": "tax"}]}),
            "presentation.lists[0].total",
        ),
        (
            json!({"title": "Pay", "lists": [{"path": "items", "columns": ["text"], "total": "text"}]}),
            "presentation.lists[0].total",
        ),
        (
            json!({"title": "Pay", "facts": [{"path": "count", "label": "Count", "block": true}]}),
            "presentation.facts[0].block",
        ),
    ] {
        let body = json!({"input_schema": schema, "presentation": presentation});
        let refused = app.owner().patch(&path, body).await.assert_status(400);
        assert!(refused.to_string().contains(field), "{field} in {refused:#}");
    }
    // A change of the schema alone is checked as well.
    let refused = app.owner().patch(&path, only("input_schema", &schema)).await.assert_status(400);
    assert!(refused.to_string().contains("is not a field of `input_schema`"), "{refused:#}");
}
