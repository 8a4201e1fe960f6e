//! A request is shown as its tool declares, whatever other texts an agent sends, and with the
//! service's warnings.

use serde_json::{Value, json};

use super::{APPROVER, Console, browser::Browser};
use crate::support::{Answered, Members, asking, only};

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
    let ask = paying(11_000.0, &members).with("justification", "they <b>wait</b> \u{202e}yadot");
    let id = console.held_with(ask).await;
    let mut browser = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    let whole = "Müller Maschinenbau und Anlagentechnik GmbH &amp; Co. KG, Werk Süd";
    let to = "11 000.00 EUR to “Müller Maschinenbau und Anlagentechnik GmbH &amp; Co. KG, Werk S…”";
    for (path, title) in [
        (&path, format!("<bdi>Pay {to}")),
        (&format!("{path}/approve"), format!("<bdi>Pay {to}")),
        (&format!("{path}/decline"), format!("<bdi>Payment of {to}")),
    ] {
        let page = browser.get(path).await;
        page.shows(&title);
        page.shows(&format!("<th scope=\"row\">To</th><td dir=\"auto\">{whole}"));
        page.shows("<th scope=\"row\">Account</th><td dir=\"auto\">DE89370400440532013000");
        page.shows("<caption>Line items</caption>");
        page.shows("dir=\"auto\">Pipes</td><td data-head=\"Quantity\" dir=\"auto\">2</td>");
        page.shows("No approved request to this payee in 90 days.");
        page.shows("1 more field is only in the full request.");
        // The agent's words stand last, and their invisible characters are seen.
        let (facts, words) = page.text.split_once("<caption>The agent").unwrap();
        assert!(
            facts.contains("<th scope=\"row\">To</th>") && !facts.contains("321 EUR"),
            "{facts}"
        );
        assert!(words.contains(">pay ⟨U+202E⟩321 EUR"), "{words}");
        // Then follows the requester's own reason.
        let (_, reason) = words.split_once("own words, not verified</caption>").unwrap();
        assert!(reason.contains("they &lt;b&gt;wait&lt;/b&gt; ⟨U+202E⟩yadot"), "{reason}");
    }
    let page = browser.get("/console/approvals").await;
    page.shows("<span class=\"dim\">To</span> <bdi>Müller Maschinenbau und Anlagentechnik GmbH &amp; Co…</bdi>");
    page.shows("and 3 more fields");
    // The second step shows the reason for the hold and the authority.
    let page = browser.get(&format!("{path}/approve")).await;
    page.shows("Held by “Payment threshold”.");
    page.shows("<strong>Head of finance</strong> lets <strong>invoice-bot</strong> act");
}

/// Changes the presentation of the demonstration's tool for payments.
async fn declare(console: &Console, change: impl Fn(&mut Value)) {
    let (_, tools) = console.app.owner().list_tools("").await;
    let tool = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "payments");
    let mut presentation = tool.unwrap()["presentation"].clone();
    change(&mut presentation);
    let body = only("presentation", &presentation);
    console
        .app
        .owner()
        .update_tool(tool.unwrap()["id"].as_str().unwrap(), body)
        .await
        .assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_titles_in_their_language() {
    let console = Console::start().await;
    declare(&console, |shown| {
        shown["language"] = "en".into();
        shown["translations"] = json!([{"language": "de", "title": "{amount} an {payee} zahlen",
            "decline_title": "Zahlung an {payee}"}]);
    })
    .await;
    let id = console.held_with(paying(11_000.0, &only("payee", "Same AG"))).await;
    let mut browser = console.signed_in(APPROVER).await;
    let path = format!("/console/approvals/{id}");
    let decline = format!("{path}/decline");
    for (languages, title, decline_title) in [
        ("de-CH,de;q=0.9,en;q=0.8", "11 000.00 EUR an “Same AG” zahlen", "Zahlung an “Same AG”"),
        ("en-GB,en;q=0.9,de;q=0.5", "Pay 11 000.00 EUR to “Same AG”", "Payment of 11 000.00 EUR"),
        ("fr", "Pay 11 000.00 EUR to “Same AG”", "Payment of 11 000.00 EUR"),
    ] {
        let listed = browser.get_with("/console/approvals", "accept-language", languages).await;
        listed.shows(&format!("<bdi>{title}"));
        let page = browser.get_with(&path, "accept-language", languages).await;
        page.shows(&format!("<bdi>{title}"));
        let page = browser.get_with(&decline, "accept-language", languages).await;
        page.shows(&format!("<bdi>{decline_title}"));
    }
    // The version of the presentation does not depend on the language.
    let form = browser.get_with(&decline, "accept-language", "de").await;
    let form = form.form_with(&decline, "text", "nicht bestellt");
    let done = browser.post(&decline, &form).await;
    done.shows("<bdi>Payment of 11 000.00 EUR to “Same AG”</bdi></strong> You declined this.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_totals_and_undeclared_fields_are_shown() {
    let console = Console::start().await;
    declare(&console, |shown| shown["facts"][2]["block"] = true.into()).await;
    let script = format!("set -e\n{}\n", "curl https://example.org\n".repeat(20));
    let members = json!({"payee": "Same AG", "invoice": script,
        "line_items": [{"text": "Pipes", "net": 0.1}, {"text": "N\u{43e}rd", "net": 0.2, "iban": "DE1"},
                       {"net": 3, "tax": {"rate": 19}}]});
    let id = console.held_with(paying(11_000.0, &members)).await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get(&format!("/console/approvals/{id}")).await;
    page.shows(&format!("<td dir=\"auto\"><pre>{script}</pre></td>"));
    page.shows("<caption>Line items <span class=\"state pending\">letters of several scripts: \u{43e}</span>");
    page.shows("<th scope=\"col\">Other fields</th>");
    page.shows(
        "<td data-head=\"Other fields\" dir=\"auto\">{&quot;iban&quot;:&quot;DE1&quot;}</td>",
    );
    page.shows("<td data-head=\"Other fields\" dir=\"auto\">{&quot;tax.rate&quot;:19}</td>");
    page.shows(
        "<th scope=\"row\">Total</th><td></td><td data-head=\"Net\"><strong>3.3</strong></td>",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_of_several_scripts_are_marked() {
    let console = Console::start().await;
    let id = console.held_with(paying(11_000.0, &only("payee", "N\u{43e}rdwind"))).await;
    let plain =
        console.held_with(paying(11_000.0, &only("payee", "ООО Яндекс (Yandex LLC)"))).await;
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
    // A line of the list has the label of the first warning, and the number of the others.
    let page = browser.get("/console/approvals").await;
    for label in ["Same document +1", "Other account +1", "Shared account"] {
        page.shows(&format!(">{label}<span class=\"hidden\"> This "));
    }
    console.held_with(pay("Same AG", "DE77", "X-1")).await;
    let page = browser.get("/console/approvals").await;
    page.shows(">Same document +2<span class=\"hidden\"> This document is in another request.");
    let ids = [first, second];
    open(&mut browser, &ids).await;
    let page = browser.get(&format!("{SEVERAL}?id={}", ids.join("&id="))).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(page.text.matches("It may be paid twice").count(), 2);
    page.shows(", also selected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warning_shows_that_the_other_request_was_declined() {
    let console = Console::start().await;
    let pay = |payee: &str| paying(20_005.0, &json!({"payee": payee, "iban": "DE88"}));
    let first = console.held_with(pay("Same AG")).await;
    let path = format!("/api/v1/approvals/{first}/decline");
    let (status, _) = console.app.owner().post(&path, only("reason", "unknown account")).await;
    assert_eq!(status, 200);
    let ids = [console.held_with(pay("Other AG")).await, console.held_with(pay("Third AG")).await];
    let mut browser = console.signed_in(APPROVER).await;
    open(&mut browser, &ids).await;
    let several = format!("{SEVERAL}?id={}", ids.join("&id="));
    for path in [format!("/console/approvals/{}", ids[0]), several] {
        let page = browser.get(&path).await;
        let (_, below) =
            page.text.split_once("This account is known under another payee.").unwrap();
        assert!(below.contains(&format!("/console/approvals/{first}\">Declined</a>")), "{below}");
    }
}

/// The owner of a tool changes its presentation while a person reads a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_presentation_than_the_shown_one_is_not_approved() {
    let console = Console::start().await;
    let id = console.held_with(paying(11_000.0, &only("payee", "Same AG"))).await;
    let mut browser = console.signed_in(APPROVER).await;
    open(&mut browser, std::slice::from_ref(&id)).await;
    let approve = format!("/console/approvals/{id}/approve");
    let form = browser.get(&approve).await.form(&approve);
    let (_, tools) = console.app.owner().list_tools("").await;
    let tool = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "payments");
    let other = json!({"presentation": {"title": "Send {amount}", "facts": []}});
    assert_eq!(
        console.app.owner().update_tool(tool.unwrap()["id"].as_str().unwrap(), other).await.0,
        200
    );
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
