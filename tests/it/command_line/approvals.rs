//! `approvals`: lists the pending requests, shows one in full, and approves or declines it.

use serde_json::{Value, json};

use super::reads::{answering, ids, owner, with_token};
use crate::support::{TestApp, asking, new_stop};

/// Requests a payment with this `iban` in its context, which is held; returns the approval's id.
async fn held(app: &TestApp, api_key: &str, iban: &str) -> String {
    let mut ask = asking(25_000.0, "DE");
    ask["context"]["iban"] = iban.into();
    let (_, made) = app.client(api_key).evaluate(ask).await;
    made["approval_id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned()
}

async fn state(app: &TestApp, id: &str) -> Value {
    app.owner().get_approval(id).await.1["approval"]["state"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_says_who_wants_what_why_and_until_when() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let (code, table, told) = owner(&app, "approvals").await;
    assert_eq!((code, told.as_str()), (0, "no pending approvals\n"), "{table}");
    let id = held(&app, &api_key, "DE89").await;
    for typed in ["approvals", "approvals list", "approvals list --state any --tenant acme"] {
        let (code, table, told) = owner(&app, typed).await;
        assert_eq!((code, told.as_str()), (0, ""), "{typed}");
        assert_eq!(ids(&table), [&id]);
        for part in [
            "svc:agent:acme:invoice-bot (Pays supplier invoices)",
            "payment.execute 25000",
            "Account DE89",
            "approval_threshold_breach",
            "0 of 1",
            "(in 23 h)",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }
    assert_eq!(ids(&owner(&app, "approvals list --state used").await.1), [""; 0]);
    let (_, body, _) = owner(&app, "approvals --json").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["approvals"][0]["id"], *id);
    // A user of the tenant sees the same list as the owner.
    let approver = app.member_token("svc:tenant:acme", "approver");
    let (_, table, told) = with_token(&app, &approver, "approvals").await;
    assert_eq!(ids(&table), [&id], "{told}");
    assert!(table.contains("(Pays supplier invoices)"), "{table}");
}

/// Characters that a terminal would hide are shown before an approval.
#[tokio::test(flavor = "multi_thread")]
async fn the_whole_question_is_shown_with_what_is_hidden_in_it() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let id = held(&app, &api_key, "DE89\u{202e}4711\u{200b}\u{1b}[2J").await;
    let (code, shown, told) = owner(&app, &format!("approvals show {id} --utc")).await;
    assert_eq!((code, told.as_str()), (0, ""));
    let (_, read) = app.owner().get_approval(&id).await;
    let digest = read["approval"]["request_digest"].as_str().unwrap();
    let (head, question) = shown.split_once(&format!("to be signed as {digest}:\n")).unwrap();
    assert!(question.contains(r#""iban": "DE89\u202e4711\u200b\u001b[2J""#), "{shown}");
    let question: Value = serde_json::from_str(question).unwrap();
    assert_eq!(question, read["approval"]["request"]);
    for part in [
        "pending, 0 of 1 given, until ",
        "who        svc:agent:acme:invoice-bot (Pays supplier invoices)",
        "what       payment.execute 25000",
        "why        approval_threshold_breach: ",
        "policy     Payment threshold (",
        "Payments over 10,000, or of no stated amount, wait for a person.",
        "authority  delegation svc:del:acme:",
        "  given    by svc:ent:acme:principal:",
        "(Head of finance) to svc:agent:acme:invoice-bot (Pays supplier invoices)",
        "max_amount 50000",
        "would be   allow_with_constraints: permission_granted: ",
        "jurisdictions DE FR GB",
        "asked by   api_key svc:api_key:",
    ] {
        assert!(head.contains(part), "{part} in {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_asks_first_and_signs_what_was_shown() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let id = held(&app, &api_key, "DE89").await;
    let typed = format!("approvals approve {id} --comment checked");
    // The prompt gets no answer, then a refusal, then an answer that is not exactly yes.
    for (answer, expected) in
        [("", "scripts pass --yes"), ("n\n", "not confirmed"), ("yep\n", "not")]
    {
        let (code, printed, told) = answering(&app, &typed, answer).await;
        assert_eq!((code, printed.as_str()), (1, ""), "{told}");
        assert!(told.contains(expected) && told.contains("no change was made"), "{told}");
        assert_eq!(state(&app, &id).await, "pending");
    }
    let (code, printed, told) = answering(&app, &typed, "y\n").await;
    assert_eq!(code, 0, "{told}");
    // The request is shown before the confirmation prompt.
    let (shown, _) = told.split_once("Approve payment.execute 25000").unwrap();
    assert!(shown.contains("\"iban\": \"DE89\"") && told.contains(app.base_url()), "{told}");
    assert!(printed.starts_with(&format!("{id}  approved, 1 of 1")), "{printed}");
    assert!(told.contains(&format!("\"approval_id\": \"{id}\"")), "{told}");
    let (_, read) = app.owner().get_approval(&id).await;
    assert_eq!(read["approval"]["acts"][0]["comment"], "checked");

    // The request has been approved: another approval is refused before the prompt.
    let (code, _, told) = answering(&app, &typed, "y\n").await;
    assert_eq!(code, 1);
    assert!(told.contains("is approved: it must be pending"), "{told}");
    // A withdrawal is final. It therefore also prompts for a confirmation.
    let typed = format!("approvals withdraw {id} --reason late");
    let (code, _, told) = answering(&app, &typed, "n\n").await;
    assert!(code == 1 && told.contains("no change was made"), "{told}");
    assert_eq!(state(&app, &id).await, "approved");
    let (code, printed, told) = answering(&app, &typed, "y\n").await;
    assert!(code == 0 && printed.contains("void"), "{printed}");
    assert!(told.contains("Withdraw the approval of payment.execute 25000"), "{told}");
    let (code, _, told) = owner(&app, &format!("{typed} --yes")).await;
    assert!(code == 1 && told.contains("is void: it must be approved"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_question_than_the_one_seen_is_refused() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let id = held(&app, &api_key, "DE89").await;
    let other = format!("sha256:{}", "0".repeat(64));
    for verb in ["approve", "decline --reason no"] {
        let typed = format!("approvals {verb} {id} --yes --digest {other}");
        let (code, _, told) = owner(&app, &typed).await;
        assert_eq!(code, 1);
        assert!(told.contains("does not match --digest") && told.contains(&other), "{told}");
        assert_eq!(state(&app, &id).await, "pending");
    }
    let (code, printed, _) =
        owner(&app, &format!("approvals decline {id} --reason no --yes")).await;
    assert!(code == 0 && printed.contains("declined"), "{printed}");
    // If the service refuses, the error shows its reason.
    let id = held(&app, &api_key, "DE90").await;
    let viewer = app.member_token("svc:tenant:acme", "viewer");
    let (code, _, told) = with_token(&app, &viewer, &format!("approvals approve {id} -y")).await;
    assert!(code == 1 && told.starts_with("error: forbidden: "), "{told}");
    let owning = app.token(&json!({"sub": "dev|owner@acme.example", "email": "owner@acme.example",
        "public_metadata": {"role": "admin", "tenant_id": "svc:tenant:acme"}}));
    let (code, _, told) = with_token(&app, &owning, &format!("approvals approve {id} -y")).await;
    assert!(code == 1 && told.starts_with("error: approver_not_eligible: "), "{told}");
}

/// Like the console, the command line shows a request as its tool declares, and the warnings.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_may_be_made_twice_is_a_warning() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let ask = |iban: &str, invoice: &str| {
        let mut ask = asking(25_000.0, "DE");
        ask["context"]["payee"] = "Same AG".into();
        ask["context"]["iban"] = iban.into();
        ask["context"]["invoice"] = invoice.into();
        ask["context"]["note"] = "please\u{202e} hurry".into();
        ask["justification"] = "today\u{202e}\nstate      approved".into();
        ask
    };
    let held = async |ask: Value| {
        let (_, made) = app.client(&api_key).evaluate(ask).await;
        made["approval_id"].as_str().unwrap().to_owned()
    };
    let first = held(ask("DE89", "RE-417")).await;
    let (_, shown, _) = owner(&app, &format!("approvals show {first}")).await;
    for line in [
        "title      Pay 25 000.00 EUR to “Same AG”",
        "to decline Payment of 25 000.00 EUR to “Same AG”",
        "           Account: DE89",
        "           Invoice: RE-417",
        r"agent says Note: please\u{202e} hurry",
        r"asker says today\u{202e}\nstate      approved",
        "first      no approved request to this payee in 90 days",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(!shown.contains("warning"), "{shown}");
    let (_, listed, _) = owner(&app, "approvals").await;
    assert!(listed.contains("Pay 25 000.00 EUR to “Same AG”; To Same AG"), "{listed}");
    let second = held(ask("DE88", "RE-417")).await;
    let (_, shown, _) = owner(&app, &format!("approvals show {second}")).await;
    for reason in
        ["this document is in another request", "this payee is known with another account"]
    {
        let (_, below) = shown.split_once(&format!("warning    {reason}")).unwrap();
        let other = below.lines().nth(1).unwrap();
        assert!(other.trim().starts_with(&format!("{first} pending, requested at ")), "{shown}");
    }
    // The act has the version of the shown presentation.
    let (code, _, told) =
        owner(&app, &format!("approvals decline {first} --yes --reason unclear")).await;
    assert_eq!(code, 0, "{told}");
    let less = second.clone();
    // Approving a request that would now be denied is refused, because it would only make the
    // request void.
    let signal = new_stop("svc:agent:acme:invoice-bot", "pays twice");
    assert_eq!(app.owner().create_stop_signal(signal).await.0, 201);
    let (code, _, told) = owner(&app, &format!("approvals approve {less} --yes")).await;
    assert!(code == 1 && told.contains("would only void it"), "{told}");
    assert_eq!(state(&app, &less).await, "pending");
    let (_, body, _) = owner(&app, &format!("approvals show {second} --json")).await;
    assert!(serde_json::from_str::<Value>(&body).is_ok(), "{body}");
}
