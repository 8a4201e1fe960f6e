//! Decisions: found by a filter in the address, explained, sealed, replayed and exported.

use agent_authority::transport::Surfaces;
use serde_json::{Value, json};

use super::{Console, browser::Browser};
use crate::support::{Answered, asking};

const AUDITOR: (&str, &str) = ("auditor", "auditor@acme.example");

async fn decided(console: &Console, amount: f64, place: &str) -> String {
    let answer = console.agent.evaluate(asking(amount, place)).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_is_an_address() {
    let console = Console::start().await;
    let allowed = decided(&console, 1_200.0, "DE").await;
    let denied = decided(&console, 1_200.0, "US").await;
    let held = decided(&console, 25_000.0, "DE").await;
    let mut browser = console.signed_in_at(AUDITOR, "/console/decisions").await;
    for (query, found) in [
        ("", vec![&allowed, &denied, &held]),
        ("outcome=deny", vec![&denied]),
        ("outcome=require_approval&span=1h", vec![&held]),
        ("reason=jurisdiction_unsupported", vec![&denied]),
        ("agent=invoice-bot&action=payment.execute&outcome=allow", vec![&allowed]),
        ("agent=svc:agent:acme:invoice-bot", vec![&allowed, &denied, &held]),
        ("agent=nobody", vec![]),
        ("action=refund.execute", vec![]),
        ("from=2020-01-01", vec![&allowed, &denied, &held]),
        ("from=2020-01-01&to=2020-12-31", vec![]),
    ] {
        let page = browser.get(&format!("/console/decisions?{query}")).await;
        assert_eq!(page.status, 200, "{query}: {}", page.text);
        for id in [&allowed, &denied, &held] {
            let link = format!("href=\"/console/decisions/{id}\"");
            assert_eq!(page.text.contains(&link), found.contains(&id), "{query}: {id}");
        }
    }
    // Each row has its purpose.
    let page = browser.get("/console/decisions").await;
    let purposes = page.text.matches("<td data-head=\"Purpose\">invoice-settlement</td>").count();
    assert_eq!(purposes, 3, "{}", page.text);
    // A decision is found by its id, by the id of its evidence, or by the id of an approval.
    let evidence = allowed.replace("decision", "evidence");
    for id in [&allowed, &evidence] {
        let page = browser.get(&format!("/console/decisions?id={id}")).await;
        assert_eq!(page.path, format!("/console/decisions/{allowed}"));
        page.shows("invoice-bot");
    }
    let export = browser.get("/console/decisions/export?outcome=deny").await;
    let lines: Vec<Value> =
        export.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{}", export.text);
    assert_eq!(lines[0]["decision"]["decision_id"], json!(denied));
    assert_eq!(lines[1]["end"], true);
    // An export with an unknown filter is refused, since a file can't contain a warning.
    for other in ["outcome=refused", "page=abc", "id=svc:decision:00", "reason=foo"] {
        let refused = browser.get(&format!("/console/decisions/export?{other}")).await;
        assert_eq!(refused.status, 400, "{other}: {}", refused.text);
    }
    let rows = browser.get("/console/decisions/export?format=csv&outcome=deny").await;
    let name = "attachment; filename=\"decisions.csv\"";
    assert_eq!(rows.headers["content-disposition"].to_str().unwrap(), name);
    let rows: Vec<&str> = rows.text.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 3, "{rows:#?}");
    assert!(rows[0].starts_with("evaluated_at,decision_id,"), "{rows:#?}");
    assert!(rows[1].contains(&format!(",{denied},")), "{rows:#?}");
    assert!(rows[2].contains(",true,1,"), "{rows:#?}");
    let refused = browser.get("/console/decisions/export?format=xml").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let page = browser.get("/console/decisions?outcome=deny&action=payment.execute").await;
    page.shows("1\u{202f}200.00\u{202f}EUR</td>");
    page.shows("href=\"/console/decisions?action=payment.execute\"><span class=\"hidden\">Remove the filter </span>Denied ");
    page.shows(
        "href=\"/console/decisions/export?format=csv&amp;action=payment.execute&amp;outcome=deny\"",
    );
    let none = browser.get("/console/decisions/export?from=2020-01-01&to=2020-12-31").await;
    assert_eq!(none.text.lines().count(), 1, "{}", none.text);
    let disposition = export.headers["content-disposition"].to_str().unwrap();
    assert_eq!(disposition, "attachment; filename=\"decisions.ndjson\"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_explained_with_its_question_and_its_stages() {
    let console = Console::start().await;
    let denied = decided(&console, 1_234.0, "US").await;
    let mut browser = console.signed_in_at(AUDITOR, "/console/decisions").await;
    let page = browser.get(&format!("/console/decisions/{denied}")).await;
    page.shows("it was <strong class=\"verdict denied\">denied</strong>");
    page.shows("jurisdiction_unsupported");
    page.shows("<code>context.amount</code></th><td>1234</td>");
    for stage in ["Authority", "Purpose", "Rules", "Decision"] {
        page.shows(&format!("<strong>{stage}</strong>"));
    }
    page.shows("Not sealed yet");
    let allowed = decided(&console, 1_200.0, "DE").await;
    let page = browser.get(&format!("/console/decisions/{allowed}")).await;
    page.shows("Head of finance");
    page.shows("The agent keeps a record of what it did.");
    page.shows("Somebody stops the agent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_is_there_or_it_was_erased() {
    let console = Console::start().await;
    let mut ids = Vec::new();
    for amount in [1_201.0, 1_202.0, 1_203.0] {
        ids.push(decided(&console, amount, "DE").await);
    }
    let browser = console.signed_in_at(AUDITOR, "/console/decisions").await;
    // All pages are opened at the same time, as in several tabs.
    let pages = ids.iter().map(|id| {
        let mut tab = browser.clone();
        async move { tab.get(&format!("/console/decisions/{id}")).await }
    });
    for (page, amount) in futures_util::future::join_all(pages).await.iter().zip([1201, 1202, 1203])
    {
        page.shows(&format!("<code>context.amount</code></th><td>{amount}</td>"));
    }
    let erase = "ALTER TABLE decisions DISABLE TRIGGER USER; UPDATE decisions SET context = ''; \
                 ALTER TABLE decisions ENABLE TRIGGER USER";
    console.app.database.run(erase).await;
    let page = browser.clone().get(&format!("/console/decisions/{}", ids[0])).await;
    page.shows("The context was erased.");
    page.shows("<code>context_digest</code>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_sealed_saved_and_replayed() {
    let console = Console::start().await;
    let id = decided(&console, 1_200.0, "DE").await;
    let path = format!("/console/decisions/{id}");
    let mut browser = console.signed_in_at(AUDITOR, &path).await;
    let seal = format!("{path}/seal");
    let page = browser.get(&path).await;
    let form = page.form(&seal);
    let page = browser.post(&seal, &form).await;
    page.shows("It is sealed");
    page.shows("leaf 0 of the log");
    let name = format!("bundle-{}.json", &id.rsplit(':').next().unwrap()[..12]);
    page.shows(&format!("<code>agent-authority verify {name} --jwks jwks.json</code>"));
    page.shows("href=\"/.well-known/jwks.json\"");
    let bundle = browser.get(&format!("{path}/bundle.json")).await;
    let saved = bundle.headers["content-disposition"].to_str().unwrap();
    assert_eq!(saved, format!("attachment; filename=\"{name}\""));
    let bundle: Value = serde_json::from_str(&bundle.text).unwrap();
    assert_eq!(bundle["pack"]["decision_id"], id, "{bundle:#}");
    let replay = format!("{path}/replay");
    for (mode, shows) in
        [("historical_state_snapshot", "Same result"), ("current_state", "Same result")]
    {
        let form = browser.get(&path).await.form_with(&replay, "mode", mode);
        let page = browser.post(&replay, &form).await;
        page.shows(shows);
        page.shows("svc.replay.proof.v1");
    }
    // A decision that is not sealed can't be replayed. The page shows the error code.
    let other = decided(&console, 1_300.0, "DE").await;
    let form = browser.get(&path).await.form_with(&replay, "mode", "current_state");
    let page = browser.post(&format!("/console/decisions/{other}/replay"), &form).await;
    assert_eq!(page.status, 409, "{}", page.text);
    page.shows("decision_not_sealed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_no_lists_sees_what_the_api_shows_them() {
    let console = Console::start().await;
    let id = decided(&console, 1_200.0, "DE").await;
    let mut browser = console.signed_in(super::APPROVER).await;
    let page = browser.get("/console/decisions").await;
    assert_eq!(page.status, 403, "{}", page.text);
    assert!(!page.text.contains("href=\"/console/decisions\""));
    let page = browser.get(&format!("/console/decisions/{id}")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("Your role does not read the findings of the stages");
    page.shows("Your role does not read contexts");
    for hidden in ["/seal\"", "context.amount", ">1200<", "200.00"] {
        assert!(!page.text.contains(hidden), "{hidden}: {}", page.text);
    }
}

/// The owner's operations belong to the surface admin, and those of a tenant's people to the surface app.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_of_the_connections_surfaces() {
    let console = Console::start().await;
    decided(&console, 1_200.0, "DE").await;
    let auditor = console.signed_in_at(AUDITOR, "/console/decisions").await;
    let mut owner = console.browser();
    owner.sign_in("owner", "operator@localhost", "/console/records").await;
    for (surfaces, auditors, owners) in
        [(Surfaces::ALL, 200, 200), (Surfaces::APP, 200, 403), (Surfaces::ADMIN, 403, 200)]
    {
        let base = console.app.listening(surfaces).await;
        for (browser, expected) in [(&auditor, auditors), (&owner, owners)] {
            let mut browser = Browser { base: base.clone(), ..browser.clone() };
            let page = browser.get_one("/console/decisions/export").await;
            assert_eq!(page.status, expected, "{surfaces:?}: {}", page.text);
        }
    }
}
