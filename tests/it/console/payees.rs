//! A request is shown as its tool declares, whatever other texts an agent sends, and with the
//! service's warnings.

use serde_json::{Value, json};

use super::{APPROVER, Console, browser::Browser};
use crate::support::asking;

const SEVERAL: &str = "/console/approvals/several";
fn paying(amount: f64, members: &Value) -> Value {
    let mut question = asking(amount, "DE");
    let context = question["context"].as_object_mut().unwrap();
    context.extend(members.as_object().unwrap().clone());
    question
}

async fn open(browser: &mut Browser, ids: &[String]) {
    for id in ids {
        assert_eq!(browser.get(&format!("/console/approvals/{id}")).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_shown_as_its_tool_declares() {
    let console = Console::start().await;
    let payee = "Müller Maschinenbau und Anlagentechnik GmbH & Co. KG, Werk Süd";
    let members = json!({"payee": payee, "iban": "DE89370400440532013000", "note": "pay \u{202e}321 EUR",
        "a": "approved by the CFO",
        "line_items": [{"text": "Pipes", "quantity": 2, "net": 5500}, {"text": "Bends"}]});
    let id = console.held_with(paying(11_000.0, &members)).await;
    let mut browser = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    let whole = "Müller Maschinenbau und Anlagentechnik GmbH &amp; Co. KG, Werk Süd";
    for path in [&path, &format!("{path}/approve"), &format!("{path}/decline")] {
        let page = browser.get(path).await;
        page.shows("<bdi>Pay 11 000.00 EUR to Müller Maschinenbau und Anlagentechnik GmbH &amp; Co. KG, Werk…");
        page.shows(&format!("<th scope=\"row\">To</th><td dir=\"auto\">{whole}"));
        page.shows("<th scope=\"row\">Account</th><td dir=\"auto\">DE89370400440532013000");
        page.shows("<caption>Line items</caption>");
        page.shows("dir=\"auto\">Pipes</td><td data-head=\"Quantity\" dir=\"auto\">2</td>");
        page.shows("First request to this payee in 90 days.");
        page.shows("1 more field is only in the full request.");
        // The agent's words stand last, and their invisible characters are seen.
        let (facts, words) = page.text.split_once("<caption>The agent").unwrap();
        assert!(
            facts.contains("<th scope=\"row\">To</th>") && !facts.contains("321 EUR"),
            "{facts}"
        );
        assert!(words.contains(">pay ⟨U+202E⟩321 EUR"), "{words}");
    }
    let page = browser.get("/console/approvals").await;
    page.shows("<span class=\"dim\">To</span> <bdi>Müller Maschinenbau und Anlagentechnik GmbH &amp; Co…</bdi>");
    page.shows("and 4 more fields");
    // The second step shows the reason for the hold and the authority.
    let page = browser.get(&format!("{path}/approve")).await;
    page.shows("Held by “Payment threshold”.");
    page.shows("<strong>Head of finance</strong> lets <strong>invoice-bot</strong> act");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_of_several_scripts_are_marked() {
    let console = Console::start().await;
    let id = console.held_with(paying(11_000.0, &json!({"payee": "N\u{43e}rdwind"}))).await;
    let plain =
        console.held_with(paying(11_000.0, &json!({"payee": "ООО Яндекс (Yandex LLC)"}))).await;
    let mut browser = console.signed_in(APPROVER).await;
    let mark = "letters of several scripts";
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("<td dir=\"auto\">N\u{43e}rdwind <span class=\"state pending\">letters of several scripts: \u{43e}</span>");
    let page = browser.get(&format!("/console/approvals/{plain}")).await;
    let (own, _) = page.text.split_once("id=\"before\"").unwrap();
    assert!(!own.contains(mark), "{own}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_are_in_the_list_on_the_page_and_in_each_second_step() {
    let console = Console::start().await;
    let pay = |payee: &str, iban: &str, invoice: &str| {
        paying(20_005.0, &json!({"payee": payee, "iban": iban, "invoice": invoice}))
    };
    let first = console.held_with(pay("Same AG", "DE88", "X-1")).await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get(&format!("/console/approvals/{first}")).await;
    assert!(!page.text.contains("It may be paid twice"), "{}", page.text);
    let second = console.held_with(pay("Same AG", "DE88", "X-1 ")).await;
    let third = console.held_with(pay("Same AG", "DE77", "X-3")).await;
    let fourth = console.held_with(pay("Other AG", "DE77", "X-4")).await;
    for (id, text, other) in [
        (&second, "This document is in another request. It may be paid twice.", &first),
        (&third, "This payee is known with another account.", &first),
        (&fourth, "This account is known under another payee.", &third),
    ] {
        for path in [format!("/console/approvals/{id}"), format!("/console/approvals/{id}/approve")]
        {
            let page = browser.get(&path).await;
            let (_, below) = page.text.split_once(text).unwrap();
            assert!(
                below.contains(&format!("href=\"/console/approvals/{other}\">Waiting")),
                "{below}"
            );
        }
        browser.get("/console/approvals").await.shows(&format!("{text}</span>"));
    }
    let ids = [first, second];
    open(&mut browser, &ids).await;
    let page = browser.get(&format!("{SEVERAL}?id={}", ids.join("&id="))).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(page.text.matches("It may be paid twice").count(), 2);
    page.shows(", also selected");
}

/// The owner of a tool changes its presentation while a person reads a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_presentation_than_the_shown_one_is_not_approved() {
    let console = Console::start().await;
    let id = console.held_with(paying(11_000.0, &json!({"payee": "Same AG"}))).await;
    let mut browser = console.signed_in(APPROVER).await;
    open(&mut browser, std::slice::from_ref(&id)).await;
    let approve = format!("/console/approvals/{id}/approve");
    let form = browser.get(&approve).await.form(&approve);
    let (_, tools) = console.app.owner().get("/api/v1/tools").await;
    let tool = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "payments");
    let path = format!("/api/v1/tools/{}", tool.unwrap()["id"].as_str().unwrap());
    let other = json!({"presentation": {"title": "Send {amount}", "facts": []}});
    assert_eq!(console.app.owner().patch(&path, other).await.0, 200);
    let page = browser.post(&approve, &form).await;
    assert_eq!(page.status, 409, "{}", page.text);
    page.shows("How it is shown");
    super::assert_waits(&console.approval(&id).await);
    let form = browser.get(&approve).await.form(&approve);
    assert_eq!(browser.post(&approve, &form).await.status, 200);
    assert_eq!(console.approval(&id).await["state"], "approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_approved_at_once_stays_selected() {
    let console = Console::start().await;
    let ids = [console.held(11_000.0).await, console.held(12_000.0).await];
    let mut browser = console.signed_in(APPROVER).await;
    open(&mut browser, &ids[..1]).await;
    let filter = "action=payment.execute";
    let page = browser.get(&format!("{SEVERAL}?{filter}&id={}&id={}", ids[0], ids[1])).await;
    assert_eq!(page.status, 400);
    page.shows("A request was not opened in this session");
    page.shows(&format!("value=\"{}\" checked", ids[0]));
    page.shows("<input type=\"hidden\" name=\"action\" value=\"payment.execute\">");
    let page = browser.get(&format!("{SEVERAL}?{filter}")).await;
    assert_eq!(page.status, 400);
    page.shows("No request was selected");
    // The Back link leads to the list in the same state.
    let page = browser.get(&format!("{SEVERAL}?{filter}&id={}", ids[0])).await;
    let back = page.text.split("quiet\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let page = browser.get(&back.replace("&amp;", "&")).await;
    page.shows(&format!("value=\"{}\" checked", ids[0]));
    // A request that the person has answered is not selected again.
    console.need_two().await;
    let id = console.held(13_000.0).await;
    open(&mut browser, std::slice::from_ref(&id)).await;
    let approve = format!("/console/approvals/{id}/approve");
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows("One approval is not enough: with 2 more, it would be");
    let form = browser.get(&approve).await.form(&approve);
    let page = browser.post(&approve, &form).await;
    page.shows("With one more approval, it would be");
    let page = browser.get("/console/approvals").await;
    assert!(!page.text.contains(&format!("name=\"id\" value=\"{id}\"")), "{}", page.text);
}
