//! A new policy from a starting point, and the trial of one request.

use super::{Console, browser::Page, policies::owner};
use crate::support::{Answered, Members, new_policy};

const NEW: &str = "/console/policies/new";
const TRY: &str = "/console/policies/try";
const STARTS: [&str; 10] = [
    "threshold",
    "two-people",
    "personal-data",
    "change-window",
    "place",
    "duty",
    "code-shell",
    "code-edits",
    "code-secrets",
    "code-mcp",
];

fn with(page: &Page, action: &str, values: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut form = page.form(action);
    form.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    form
}

/// The editor's text.
fn text(page: &Page) -> String {
    let fields = page.fields(NEW);
    fields.into_iter().find(|(name, _)| name == "cedar").unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_starting_point_is_valid_and_becomes_a_draft() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let page = owner.get("/console/approvals").await;
    page.shows("<a href=\"/console/records/policies\">Policies</a>");
    owner.get("/console/policies").await.shows("href=\"/console/policies/new\"");
    for start in STARTS {
        let page = owner.get(&format!("{NEW}?start={start}")).await;
        let cedar = text(&page);
        let checked = [("name", start), ("cedar", &*cedar), ("do", "check")];
        let checked = owner.post(NEW, &with(&page, NEW, &checked)).await;
        checked.shows("The text is valid");
        let create = [("name", start), ("cedar", &*cedar), ("do", "create")];
        let made = owner.post(NEW, &with(&checked, NEW, &create)).await;
        assert_eq!(made.status, 200, "{}", made.text);
        made.shows("It has no effect until it is activated.");
    }
    let (_, listed) = console.app.owner().list_policies("state=draft&limit=100").await;
    let drafts = listed["policies"].as_array().unwrap();
    for start in STARTS {
        assert!(drafts.iter().any(|draft| draft["name"] == start), "{start}: {listed:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_text_is_kept_with_the_problem_at_its_line() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let page = owner.get(NEW).await;
    let wrong = [
        ("name", "Wrong"),
        ("cedar", "forbid (principal, action, resource)\r\nwhen { contexx };"),
        ("targets", "action:payment.*"),
        ("do", "create"),
    ];
    let refused = owner.post(NEW, &with(&page, NEW, &wrong)).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("<h1>Not created</h1>");
    refused.shows("<strong>Line 2, column ");
    refused.shows("when { contexx };</textarea>");
    refused.shows("name=\"name\" value=\"Wrong\"");
    refused.shows("action:payment.*</textarea>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_is_tried_with_its_outcome_and_the_reason() {
    let console = Console::start().await;
    let mut admin = console.signed_in(("admin", "admin@acme.example")).await;
    let before = console.app.owner().list_decisions("tenant_id=svc:tenant:acme").await.1;
    let page = admin.get(TRY).await;
    let asked = |amount: &'static str| {
        [
            ("agent", "svc:agent:acme:invoice-bot"),
            ("action", "payment.execute"),
            ("purpose", "invoice-settlement"),
            ("amount", amount),
            ("currency", "EUR"),
            ("jurisdiction", "DE"),
        ]
    };
    for (amount, word) in [("100", "allowed"), ("25000", "held"), ("90000000", "denied")] {
        let tried = admin.post(TRY, &with(&page, TRY, &asked(amount))).await;
        assert_eq!(tried.status, 200, "{}", tried.text);
        tried.shows(&format!("<strong class=\"verdict {word}\">{word}</strong>"));
        tried.shows("<ol class=\"steps\">");
        tried.shows(&format!("name=\"amount\" value=\"{amount}\""));
    }
    let mut wrong = with(&page, TRY, &asked("100"));
    wrong.retain(|(name, _)| name != "action");
    let refused = admin.post(TRY, &wrong).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    refused.shows("<a href=\"#action\">Go to the field</a>");
    let mut wrong = with(&page, TRY, &asked("100"));
    wrong.push(("context".to_owned(), "[1]".to_owned()));
    assert_eq!(admin.post(TRY, &wrong).await.status, 400);
    // A name is given once, as in the API. A field of the form counts as well.
    for (context, problem) in [
        (r#"{"vendor": 1, "vendor": 2}"#, "`vendor` is given more than once"),
        (r#"{"lines": [{"net": 1, "net": 2}]}"#, "`net` is given more than once"),
        (r#"{"amount": 1}"#, "amount has its own field"),
    ] {
        let mut twice = with(&page, TRY, &asked("100"));
        twice.push(("context".to_owned(), context.to_owned()));
        let refused = admin.post(TRY, &twice).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        refused.shows("<h1>Not tried</h1>");
        refused.shows(problem);
    }
    // A trial records no decision.
    let after = console.app.owner().list_decisions("tenant_id=svc:tenant:acme").await.1;
    assert_eq!(before, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_tried_on_one_request_before_it_is_in_force() {
    let console = Console::start().await;
    let policy = new_policy("internal", "@id(\"none\") forbid (principal, action, resource);")
        .with("name", "None")
        .with("state", "draft");
    let made = console.app.owner().create_policy(policy).await.assert_status(201);
    let id = made["policy"]["id"].as_str().unwrap();
    let mut owner = owner(&console).await;
    let address = format!("{TRY}?policy={}", id.replace(':', "%3A"));
    owner.get(&format!("/console/policies/{id}")).await.shows(&address);
    let page = owner.get(&address).await;
    let asked = [
        ("agent", "svc:agent:acme:invoice-bot"),
        ("action", "payment.execute"),
        ("purpose", "invoice-settlement"),
        ("amount", "100"),
        ("currency", "EUR"),
        ("jurisdiction", "DE"),
    ];
    let tried = owner.post(TRY, &with(&page, TRY, &asked)).await;
    tried.shows("<strong class=\"verdict denied\">denied</strong>");
    tried.shows("Without this text it would be allowed");
}
