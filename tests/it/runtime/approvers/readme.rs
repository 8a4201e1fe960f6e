//! Runs the README's commands for an approval, exactly as written there.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use super::*;

/// Returns the indented commands between a heading and a text.
fn commands(readme: &str, heading: &str, last: &str) -> String {
    let below = readme.split_once(heading).unwrap().1;
    let below = below.split_once(last).unwrap().0;
    let lines = below.lines().filter_map(|line| line.strip_prefix("    "));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_approval_of_the_readme_works_as_pasted() {
    let (app, client, _) = demo().await;
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let payment = commands(&readme, "**Held**", "```json");
    let payment = payment.trim_start_matches("ask '").trim_end_matches('\'');
    let mut request = asking(25_000.0, "DE");
    request["context"] = serde_json::from_str(payment).unwrap();
    let (_, answer) = client.evaluate(request).await;
    let id = answer["approval_id"].as_str().unwrap().to_owned();
    // The request reads as the demonstration's tool declares.
    let title = &shown(&app, &id).await["presentation"]["title"];
    assert_eq!(title, "Pay 25 000.00 EUR to “Northwind Ltd”");
    let ask = commands(&readme, "## Three requests", "**Allowed**");
    let approve = commands(&readme, "## Approve the held request", "This answer is an allow");
    // The token of `login --role` belongs to a user of the tenant, not to the installation's owner.
    let member = Some((TENANT.into(), "approver".to_owned()));
    let token = app.app.token(member, None).unwrap();
    let (login, logout) = ("agent-authority login --role approver", "agent-authority logout");
    assert!(approve.contains(login) && approve.contains(logout), "{approve}");
    let program = env!("CARGO_BIN_EXE_agent-authority");
    let command = format!(
        "agent-authority() {{ {program} \"$@\" --url {} --token {token}; }}",
        app.base_url()
    );
    let script = format!("set -e\n{command}\n{ask}\n{approve}")
        .replace(login, ":")
        .replace(logout, ":")
        .replace("http://127.0.0.1:8080", app.base_url())
        .replace("svc_sandbox_…", &client.token)
        .replace("svc:approval:…", &id);
    let pasted = tokio::task::spawn_blocking(move || {
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        // Answers the prompt of `approve`.
        shell.stdin.take().unwrap().write_all(b"y\n").unwrap();
        shell.wait_with_output().unwrap()
    });
    let pasted = pasted.await.unwrap();
    let text = String::from_utf8(pasted.stdout).unwrap();
    assert!(text.contains("\"decision\": \"allow\""), "{text}");
    let found = shown(&app, &id).await;
    assert_eq!(found["acts"][0]["by"], identity("approver"), "not the tenant's user");
    assert_eq!(found["state"], "used");
}

/// Any person who runs `login --role` gets a token of a user of the tenant. This user doesn't own
/// the agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_token_is_of_a_person_of_the_tenant() {
    let (app, ..) = demo().await;
    let member = |role: &str| {
        let member = Some((TENANT.into(), role.to_owned()));
        app.client(&app.app.token(member, None).unwrap())
    };
    let (key, _) = key_of(&app, &member("admin")).await;
    let (_, read) = member("admin").get_api_key(&key).await;
    assert_eq!(read["api_key"]["created_by"], "admin@acme.example");
    assert!(app.app.token(Some((TENANT.into(), "owner".to_owned())), None).is_err());
}
