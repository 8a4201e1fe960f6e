//! The payee of a request is always shown, independent of other texts of the agent, and likely
//! duplicates are listed.

use serde_json::{Value, json};

use super::{APPROVER, Console, browser::Browser};
use crate::support::asking;

const SEVERAL: &str = "/console/approvals/several";
const SAME_PAYMENT: &str = "This may be the same payment as another request.";

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
async fn no_text_of_an_agent_takes_the_place_of_a_payee_or_an_account() {
    let console = Console::start().await;
    let payee = "Müller Maschinenbau und Anlagentechnik GmbH & Co. KG, Werk Süd";
    let cut = "<code>payee</code> <bdi>Müller Maschinenbau und Anlagentechnik GmbH &amp; Co…</bdi>";
    let first =
        json!({"payee": payee, "note": "pay \u{202e}321 EUR", "a": "1", "b": "2", "c": "3"});
    let second = json!({"account": 12_345_678, "beneficiary": "A", "recipient": "B", "creditor": "C",
                        "iban": "DE89370400440532013000", "note": "for Müller GmbH"});
    let ids = [
        console.held_with(paying(11_000.0, &first)).await,
        console.held_with(paying(12_000.0, &second)).await,
    ];
    let mut browser = console.signed_in(APPROVER).await;
    open(&mut browser, &ids).await;
    let [one, other] = ids.each_ref().map(|id| format!("/console/approvals/{id}"));
    let several = format!("{SEVERAL}?id={}&id={}", ids[0], ids[1]);
    for path in ["/console/approvals", &one] {
        let page = browser.get(path).await;
        page.shows(cut);
    }
    // Differences between several requests are shown in full, because two names may have the same
    // beginning.
    let whole = "<bdi>Müller Maschinenbau und Anlagentechnik GmbH &amp; Co. KG, Werk Süd</bdi>";
    browser.get(&several).await.shows(whole);
    // The note and the place are not shown next to the amount. They are counted instead.
    browser.get(&one).await.shows("and 2 more members");
    browser.get(&several).await.shows(">12345678</a>");
    for path in ["/console/approvals", &other, &format!("{other}/approve")] {
        let page = browser.get(path).await;
        page.shows("<code>account</code> <bdi>12345678</bdi>");
        page.shows("<code>iban</code> <bdi>DE89370400440532013000</bdi>");
    }
    // The second step shows the payee in full, with the reason for the hold and the authority.
    let page = browser.get(&format!("{one}/approve")).await;
    page.shows(whole);
    page.shows("Held by “Payment threshold”.");
    page.shows("<strong>Head of finance</strong> lets <strong>invoice-bot</strong> act");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_looks_like_the_same_payment_is_named() {
    let console = Console::start().await;
    let mut members = json!({"payee": "Same AG", "iban": "DE88", "invoice": "X-1"});
    let first = console.held_with(paying(20_005.0, &members)).await;
    let other = console.held_with(paying(30_000.0, &json!({"payee": "B"}))).await;
    let mut browser = console.signed_in(APPROVER).await;
    let page = browser.get(&format!("/console/approvals/{first}")).await;
    assert!(!page.text.contains(SAME_PAYMENT), "{}", page.text);
    // An approver can't read decisions, but can read the other requests.
    page.shows("Other requests of invoice-bot for");
    page.shows(
        "30\u{202f}000.00\u{202f}EUR</a> <span class=\"tells\"><code>payee</code> <bdi>B</bdi>",
    );
    members["iban"] = json!("DE89");
    let second = console.held_with(paying(20_005.0, &members)).await;
    members["attempt"] = json!(2);
    let third = console.held_with(paying(20_005.0, &members)).await;
    for path in
        [format!("/console/approvals/{second}"), format!("/console/approvals/{second}/approve")]
    {
        let page = browser.get(&path).await;
        page.shows(SAME_PAYMENT);
        page.shows(
            "same amount, payee, invoice. There: <span class=\"tells\"><code>iban</code> <bdi>DE88",
        );
        page.shows("same amount, payee, iban, invoice.");
    }
    let ids = [second, third, other];
    open(&mut browser, &ids).await;
    let page = browser.get(&format!("{SEVERAL}?id={}", ids.join("&id="))).await;
    assert_eq!(page.status, 200, "{}", page.text);
    // Requests that differ only in their attempt show that difference and a possible double
    // payment. The comparison includes requests that are not selected.
    page.shows("<code>attempt</code> <bdi>2</bdi>");
    assert_eq!(
        page.text.matches("It may be the same payment as another of these: <bdi>").count(),
        2
    );
    page.shows(&format!("href=\"/console/approvals/{first}\">Waiting"));
}

/// A colleague has declined the request. It is submitted again to another approver, in another
/// spelling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_declined_is_named_when_it_is_asked_for_again() {
    let console = Console::start().await;
    let mut members = json!({"payee": "Same AG", "invoice": "RE-417"});
    let first = console.held_with(paying(20_005.0, &members)).await;
    let mut browser = console.signed_in(APPROVER).await;
    open(&mut browser, std::slice::from_ref(&first)).await;
    let decline = format!("/console/approvals/{first}/decline");
    let form = browser.get(&decline).await.form_with(&decline, "text", "Paid as RE 417 already.");
    browser.post(&decline, &form).await.shows("You declined this. For a while the agent is denied");
    members["invoice"] = json!("re 417");
    let again = console.held_with(paying(20_005.0, &members)).await;
    for path in
        [format!("/console/approvals/{again}"), format!("/console/approvals/{again}/approve")]
    {
        let page = browser.get(&path).await;
        page.shows(SAME_PAYMENT);
        page.shows(">Declined, 20\u{202f}005.00\u{202f}EUR</a>");
        page.shows("same amount, payee, invoice (written otherwise). There: ");
        page.shows("<code>invoice</code> <bdi>RE-417</bdi></span> <blockquote>Paid as RE 417 already.</blockquote>");
    }
    // Another amount to the same payee is not a duplicate. It is listed below, with similar
    // requests.
    let other = console.held_with(paying(30_000.0, &json!({"payee": "Same AG"}))).await;
    let page = browser.get(&format!("/console/approvals/{other}")).await;
    assert!(!page.text.contains(SAME_PAYMENT), "{}", page.text);
    page.shows("Requests that are alike");
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

/// Many requests, or large requests, do not hide older ones without a notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_compared_is_said() {
    let console = Console::start().await;
    let invoice = |attempt: u32| {
        paying(36_001.0, &json!({"payee": "Victim AG", "invoice": "V-9", "try": attempt}))
    };
    console.held_with(invoice(1)).await;
    // Pages of the list end at 2 MiB.
    let large = "x".repeat(31_000);
    for number in 0..70 {
        console.held_with(paying(40_000.0 + f64::from(number), &json!({"note": large}))).await;
    }
    let id = console.held_with(invoice(2)).await;
    let path = format!("/console/approvals/{id}");
    let mut browser = console.signed_in(APPROVER).await;
    let partial = "Not all requests of the agent for this action were compared";
    for path in [path.clone(), format!("{path}/approve")] {
        let page = browser.get(&path).await;
        page.shows(SAME_PAYMENT);
        assert!(!page.text.contains(partial), "{}", page.text);
    }
    for number in 0..40 {
        console.held_with(paying(20_000.0 + f64::from(number), &json!({}))).await;
    }
    for path in [path.clone(), format!("{path}/approve")] {
        browser.get(&path).await.shows(partial);
    }
}
