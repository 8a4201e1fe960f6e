//! `login`, `whoami`, `logout`: the device flow with the test's identity provider.

use std::{os::unix::fs::MetadataExt, path::Path};

use authority_process::clock::Clock;
use serde_json::Value;

use super::reads::spawn;
use crate::support::{Plain, TestApp, Wishes, only, provider::Provider};

/// Returns the output of `typed` for a user with this configuration folder.
async fn at_home(home: &Path, typed: &str) -> (i32, String, String) {
    let home = vec![("XDG_CONFIG_HOME", home.display().to_string())];
    spawn(typed.split(' ').map(str::to_owned).collect(), home).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_by_a_code_and_stays_logged_in() {
    let provider = Provider::start(Clock::default()).await;
    provider.behaves(|provider| provider.lasts = 30);
    let (issuer, (identity, _)) = (provider.issuer(), provider.settings());
    let app = TestApp::wished(Wishes { identity, ..Wishes::default() }).await;
    app.demo().await;
    let home = tempfile::tempdir().unwrap();
    let url = app.base_url();
    let (code, _, told) = at_home(home.path(), &format!("login --url {url}")).await;
    assert!(code == 2 && told.contains("--issuer"), "{told}");
    let (code, _, told) = at_home(home.path(), &format!("approvals --url {url}")).await;
    assert!(code == 2 && told.contains(&format!("agent-authority login --url {url}")), "{told}");

    let typed = format!("login --url {url} --issuer {issuer} --client-id cli");
    let (code, printed, told) = at_home(home.path(), &typed).await;
    assert_eq!(code, 0, "{told}");
    assert!(
        told.contains(&format!("Open {issuer}/activate")) && told.contains("WDJB-MJHT"),
        "{told}"
    );
    let asked = &provider.asked("/device")[0];
    assert_eq!(asked["client_id"], "cli");
    assert!(asked["scope"].as_str().unwrap().contains("offline_access"), "{asked:#}");
    let start = format!("approver@acme.example, approver of svc:tenant:acme, on {url}/, until ");
    assert!(printed.starts_with(&start), "{printed}");
    let file = home.path().join("agent-authority/logins.json");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

    // After the login, commands need no flags. A token that expires within a minute is refreshed
    // first.
    let (code, _, told) = at_home(home.path(), "approvals list").await;
    assert_eq!((code, told.as_str()), (0, "no pending approvals\n"));
    assert_eq!(provider.grants("refresh_token").len(), 1);
    let (_, printed, _) = at_home(home.path(), "whoami --json").await;
    let who: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((who["role"].text(), who["who"].text()), ("approver", "approver@acme.example"));
    // The service refuses operations that the user's role does not permit. No output shows the
    // token.
    let (code, printed, told) = at_home(home.path(), "tenants list").await;
    assert!(code == 1 && told.starts_with("error: forbidden: "), "{told}");
    assert!(!format!("{printed}{told}").contains("eyJ"), "{told}");

    // While the provider is unavailable, the error must not advise a new login.
    provider.behaves(|provider| provider.fails = Some(502));
    let (code, _, told) = at_home(home.path(), "approvals list").await;
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("the identity provider does not answer; try again"), "{told}");
    assert!(told.contains("502") && !told.contains("log in again"), "{told}");
    provider.behaves(|provider| provider.fails = None);

    assert!(asked["prompt"].is_null() && asked["max_age"].is_null(), "{asked:#}");
    let (code, _, told) = at_home(home.path(), &format!("login --fresh --url {url}")).await;
    assert_eq!(code, 0, "{told}");
    let asked = &provider.asked("/device")[1];
    assert_eq!((asked["prompt"].text(), asked["max_age"].text()), ("login", "0"));

    let (code, printed, told) = at_home(home.path(), "logout").await;
    assert_eq!((code, printed), (0, format!("logged out of {url}/\n")));
    assert_eq!(told, "");
    let revoked = &provider.asked("/revoke")[0];
    assert!(revoked["token"].as_str().unwrap().starts_with("refresh-"), "{revoked:#}");
    assert_eq!(revoked["client_id"], "cli");
    let (code, _, told) = at_home(home.path(), &format!("approvals --url {url}")).await;
    assert!(code == 2 && told.contains("needs a token"), "{told}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("refresh-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_logged_in_is_told_so_and_a_logout_says_what_it_could_not() {
    let home = tempfile::tempdir().unwrap();
    let environment = vec![
        ("XDG_CONFIG_HOME", home.path().display().to_string()),
        ("AGENT_AUTHORITY__LISTEN__MAIN", "127.0.0.1:9".to_owned()),
    ];
    let (code, _, told) = spawn(vec!["approvals".to_owned()], environment).await;
    assert!(code == 1 && told.starts_with("error: not logged in"), "{told}");
    assert!(told.contains("agent-authority login --url"), "{told}");

    let provider = Provider::start(Clock::default()).await;
    let (url, issuer) = ("https://a.example/", provider.issuer());
    let typed = format!("login --url {url} --issuer {issuer} --client-id cli");
    assert_eq!(at_home(home.path(), &typed).await.0, 0);
    provider.behaves(|provider| provider.metadata = only("revocation_endpoint", Value::Null));
    let (code, printed, told) = at_home(home.path(), "logout").await;
    assert_eq!((code, printed), (0, format!("logged out of {url}\n")));
    assert!(told.contains("not revoked") && told.contains("revocation_endpoint"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_none_or_refuses_is_named() {
    let home = tempfile::tempdir().unwrap();
    let issuer = Provider::start(Clock::default()).await.issuer().to_owned();
    for (issuer, problem) in [
        ("http://127.0.0.1:9".to_owned(), "/.well-known/openid-configuration: "),
        (format!("{issuer}/other"), "/.well-known/openid-configuration: "),
    ] {
        let typed = format!("login --url http://127.0.0.1:9 --issuer {issuer} --client-id cli");
        let (code, printed, told) = at_home(home.path(), &typed).await;
        assert_eq!((code, printed.as_str()), (1, ""), "{told}");
        assert!(told.contains(problem), "{told}");
    }
    let typed = "login --url https://a.example --issuer http://idp.example --client-id cli";
    let (code, _, told) = at_home(home.path(), typed).await;
    assert!(code == 2 && told.contains("https only"), "{told}");
    assert!(!home.path().join("agent-authority").exists());
    let (code, _, told) = at_home(home.path(), "login --role approver --listen 127.0.0.1:9").await;
    assert!(code == 1 && told.contains("no service at 127.0.0.1:9"), "{told}");
}
