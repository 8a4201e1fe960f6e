//! `tenants list`, `keys show` and similar commands, against a running service.

use std::collections::BTreeSet;

use authority_crypto::KeyRing;
use authority_store::{embedded::LOGIN, migrate};
use serde_json::{Value, json};

use super::{run, run_with_input};
use crate::support::{Plain, TestApp, Wishes, database::Database, redacted_text};

/// Returns the output of `typed`, run against `app` with `token`.
pub(super) async fn with_token(app: &TestApp, token: &str, typed: &str) -> (i32, String, String) {
    let at = ["--url", app.base_url(), "--token", token];
    let args: Vec<_> = typed.split(' ').chain(at).map(str::to_owned).collect();
    spawn(args, Vec::new()).await
}

pub(super) async fn owner(app: &TestApp, typed: &str) -> (i32, String, String) {
    with_token(app, app.owner_token(), typed).await
}

/// Runs `typed` with the owner's token, and answers its prompt with `answer`.
pub(super) async fn answering(app: &TestApp, typed: &str, answer: &str) -> (i32, String, String) {
    let at = ["--url", app.base_url(), "--token", app.owner_token()];
    let args: Vec<_> = typed.split(' ').chain(at).map(str::to_owned).collect();
    let answer = answer.to_owned();
    let ran = tokio::task::spawn_blocking(move || {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        run_with_input(&args, &[], &answer)
    });
    ran.await.unwrap()
}

/// Runs the command on another thread, because the service needs this one.
pub(crate) async fn spawn(
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
) -> (i32, String, String) {
    let ran = tokio::task::spawn_blocking(move || {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        run(&args, &environment)
    });
    ran.await.unwrap()
}

/// Returns the first words of the lines below the header.
pub(super) fn ids(table: &str) -> Vec<&str> {
    table.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_a_table_to_people_and_the_services_own_body_to_scripts() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let (code, table, told) = owner(&app, "principals list --tenant acme --state active").await;
    assert_eq!((code, told.as_str()), (0, ""));
    insta::assert_snapshot!("principals", redacted_text(&table));

    let (code, printed, told) = owner(&app, "principals list --tenant acme --json").await;
    assert_eq!((code, told.as_str()), (0, ""));
    let path = "/api/v1/principals?tenant_id=svc:tenant:acme";
    let client = app.owner();
    let request = client.http.get(format!("{}{path}", app.base_url())).bearer_auth(&client.token);
    let body = request.send().await.unwrap().text().await.unwrap();
    assert_eq!(printed, format!("{body}\n"));
    let listed: Value = serde_json::from_str(&body).unwrap();
    let listed = listed["principals"].as_array().unwrap();
    assert_eq!(ids(&table), listed.iter().map(|p| p["id"].as_str().unwrap()).collect::<Vec<_>>());

    let (code, table, told) = owner(&app, "policies list --state retired").await;
    assert_eq!((code, told.as_str()), (0, "no policies\n"));
    assert_eq!(table.lines().count(), 1, "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_shown_whole_by_id_or_slug() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let (code, shown, told) = owner(&app, "tenants show acme").await;
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(shown.starts_with("id: svc:tenant:acme\nstate: active\nslug: acme\n"), "{shown}");
    assert_eq!(shown, owner(&app, "tenants show svc:tenant:acme").await.1);
    let (_, printed, _) = owner(&app, "tenants show acme --json").await;
    let body: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((body["ok"].as_bool(), body["tenant"]["slug"].text()), (Some(true), "acme"));
    assert_eq!(printed.lines().count(), 1);

    for group in ["principals", "policies"] {
        let (_, table, _) = owner(&app, &format!("{group} list")).await;
        let id = ids(&table)[0];
        let (code, shown, told) = owner(&app, &format!("{group} show {id}")).await;
        assert_eq!((code, told.as_str()), (0, ""));
        assert!(shown.starts_with(&format!("id: {id}\n")), "{shown}");
    }

    let (_, shown, _) = owner(&app, &format!("delegations show {}", demo.delegation_id)).await;
    insta::assert_snapshot!("delegation", redacted_text(&shown));

    // The command can't search a list of decisions, and the API has no operation that reads a
    // single signing key.
    let ask = json!({"subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
        "purpose": "invoice-settlement",
        "context": {"amount": 12, "currency": "EUR", "jurisdiction": "DE"}});
    let (_, made) = app.client(&demo.api_key).evaluate(ask).await;
    let id = made["decision_id"].as_str().unwrap();
    let (code, shown, _) = owner(&app, &format!("decisions show {id}")).await;
    assert_eq!(code, 0);
    let start = "payment.execute for invoice-settlement, requested by svc:agent:acme:invoice-bot \
                 (Pays supplier invoices), was allowed with constraints at ";
    assert!(shown.starts_with(start), "{shown}");
    assert!(shown.contains("\npermission_granted: "), "{shown}");
    assert!(shown.contains(&format!("\n\ndecision_id: {id}\ndecision: allow")), "{shown}");
    assert!(shown.contains("\nevidence_pack:\n  record_digest: sha256:"), "{shown}");

    let (_, table, _) = owner(&app, "keys list").await;
    let kid = ids(&table)[0].to_owned();
    let (code, shown, _) = owner(&app, &format!("keys show {kid}")).await;
    assert_eq!(code, 0);
    assert!(shown.starts_with(&format!("kid: {kid}\nalg: ")), "{shown}");
    let (_, printed, _) = owner(&app, &format!("keys show {kid} --json")).await;
    assert!(printed.starts_with(&format!("{{\"kid\":\"{kid}\",\"alg\":")), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_lead_from_one_to_the_next() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let (_, all, told) = owner(&app, "principals list --tenant acme --count").await;
    let count = ids(&all).len();
    assert!(count > 2, "{all}");
    assert_eq!(told, format!("{count} in all\n"));

    let mut found = Vec::new();
    let mut typed = "principals list --tenant acme --limit 2".to_owned();
    loop {
        let (code, page, told) = owner(&app, &typed).await;
        assert_eq!(code, 0, "{told}");
        assert!(ids(&page).len() <= 2, "{page}");
        found.extend(ids(&page).into_iter().map(str::to_owned));
        let Some((_, token)) = told.split_once("--page-token ") else {
            assert_eq!(told, "");
            break;
        };
        typed = format!("principals list --tenant acme --limit 2 --page-token {}", token.trim());
    }
    assert_eq!(found, ids(&all));
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_1_and_says_why() {
    let app = TestApp::start().await;
    for typed in ["tenants show nobody", "keys show nothing", "decisions show svc:decision:00"] {
        let (code, printed, told) = owner(&app, typed).await;
        assert_eq!((code, printed.as_str()), (1, ""), "{typed}: {told}");
        assert!(told.starts_with("error: not_found: "), "{typed}: {told}");
    }
    let (_, _, told) = owner(&app, "tenants show nobody --json").await;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(told["error"].as_str().unwrap().starts_with("not_found: "), "{told}");

    // A slash is part of the id: it can't change the path of the request.
    let (code, _, told) = owner(&app, "tenants show acme/../../keys").await;
    assert_eq!(code, 1, "{told}");
    assert!(told.starts_with("error: not_found: "), "{told}");

    let (code, printed, told) = with_token(&app, "hush.hush.hush", "tenants list").await;
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(told.starts_with("error: unauthenticated: "), "{told}");
    assert!(!told.contains("hush"), "{told}");

    // An error that only the service detects also names the flag.
    let (code, _, told) = owner(&app, "tenants list --page-token mine").await;
    assert_eq!(code, 1);
    assert!(told.starts_with("error: invalid_request: --page-token "), "{told}");
    // A page token may begin with a dash and is not read as a flag.
    let (code, _, told) = owner(&app, "tenants list --page-token -mine").await;
    assert_eq!(code, 1, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_url_it_is_the_local_server_with_an_owners_token() {
    let app = TestApp::seeded().await;
    // The commands below run the migrations as another user, who needs the roles to exist.
    migrate(&app.database.owner_address(), LOGIN).await.unwrap();
    let app = app.beside(Wishes::default()).await;
    app.demo().await;
    let folder = tempfile::tempdir().unwrap();
    let listen = app.base_url().strip_prefix("http://").unwrap();
    let typed = |rest: &str| -> Vec<String> {
        let folder = folder.path().to_str().unwrap();
        rest.split(' ').chain(["--listen", listen, "--data-dir", folder]).map(Into::into).collect()
    };
    let here = |ring: &str| {
        vec![
            ("DATABASE_URL", app.database.owner_url()),
            ("AGENT_AUTHORITY__KEYS__RING", ring.to_owned()),
            // The variable has a token for another service, which this service would refuse.
            ("AGENT_AUTHORITY_TOKEN", "hush".to_owned()),
        ]
    };
    let (code, table, told) = spawn(typed("tenants list"), here(app.ring())).await;
    let unused =
        "AGENT_AUTHORITY_TOKEN is for --url; the local server is called with an owner's token\n";
    assert_eq!((code, told.as_str()), (0, unused));
    assert_eq!(ids(&table), ["svc:tenant:acme"]);

    // An owner's token of another installation is invalid at this server.
    let other = Database::fresh().await;
    let mut elsewhere = here(&KeyRing::generate().unwrap());
    elsewhere[0].1 = other.owner_url();
    let (code, _, told) = spawn(typed("tenants list"), elsewhere).await;
    assert_eq!(code, 1);
    let told = told.strip_prefix(unused).unwrap();
    assert!(told.starts_with("error: unauthenticated: "), "{told}");
    assert!(told.contains("give its --data-dir"), "{told}");

    let args = typed("tenants list --token hush.hush.hush");
    let (code, _, told) = spawn(args, here(app.ring())).await;
    assert_eq!(code, 1);
    assert!(told.starts_with("error: unauthenticated: ") && !told.contains("hush"), "{told}");
}

#[test]
fn no_server_is_1_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent");
    let absent = absent.to_str().unwrap();
    // No server listens at the discard port.
    let args = ["tenants", "list", "--listen", "127.0.0.1:9", "--data-dir", absent];
    let (code, printed, told) = run(&args, &[]);
    assert_eq!((code, printed.as_str()), (1, ""));
    assert!(told.starts_with("error: no service at 127.0.0.1:9: "), "{told}");
    assert!(told.contains("agent-authority serve"), "{told}");

    // Another process listens, but the folder has no database. The command must not create one.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = other.local_addr().unwrap().to_string();
    let (code, _, told) = run(&["keys", "list", "--listen", &listen, "--data-dir", absent], &[]);
    assert_eq!(code, 1);
    assert!(told.contains("--data-dir"), "{told}");
    assert!(!folder.path().join("absent").exists());

    let there = ["--url", "http://127.0.0.1:9"];
    let (code, _, told) =
        run(&["tenants", "list", there[0], there[1]], &[("AGENT_AUTHORITY_TOKEN", "hush")]);
    assert_eq!(code, 1);
    assert!(told.starts_with("error: no answer from http://127.0.0.1:9/: "), "{told}");
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn a_wrong_use_is_2_and_names_the_flag() {
    let there = "--url http://127.0.0.1:9 --token hush";
    for (typed, named) in [
        (format!("tenants list --limit 0 {there}"), "--limit"),
        (format!("tenants list --limit many {there}"), "--limit"),
        (format!("delegations list --state nowhere {there}"), "--state"),
        (format!("delegations list --colour red {there}"), "--colour"),
        (format!("tenants show .. {there}"), "ID"),
        (format!("tenants show {there}"), "ID"),
        ("tenants list --url http://authority.example --token hush".to_owned(), "--url"),
        ("tenants list --url http://127.0.0.1:9".to_owned(), "--token"),
        (format!("tenants {there}"), "--url"),
        (format!("tenants read {there}"), "read"),
    ] {
        let (code, printed, told) = run(&typed.split(' ').collect::<Vec<_>>(), &[]);
        assert_eq!((code, printed.as_str()), (2, ""), "{typed}: {told}");
        assert!(told.contains(named), "{typed}: {told}");
        assert!(!told.contains("hush"), "{typed}: {told}");
    }
    let typed = ["tenants", "list", "--url", "http://127.0.0.1:9"];
    let (code, _, told) = run(&typed, &[("AGENT_AUTHORITY_TOKEN", "")]);
    assert_eq!(code, 2, "{told}");
    let (code, help, _) =
        run(&["delegations", "list", "--help"], &[("AGENT_AUTHORITY_TOKEN", "hush")]);
    assert_eq!(code, 0);
    // The help shows the descriptions from the protos.
    assert!(help.starts_with("Lists delegations, oldest first"), "{help}");
    for said in [
        "--delegator-id <ID>",
        "The maximum number of records on a page; 100 when left out",
        "[possible values: active, suspended, revoked]",
    ] {
        assert!(help.contains(said), "{said} in {help}");
    }
    assert!(!help.contains("hush"), "{help}");
}
