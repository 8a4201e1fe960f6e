//! Measures cedar-agent with the request that the service decides. Its only policy has the content
//! of the demo tenant's records. It has no identity of callers, no decision log and no signature.

use std::{fs, process::Command};

use serde_json::json;

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Protocol},
    row::Report,
    server::{Folder, Server, free_address},
};

const POLICY: &str = r#"permit (principal, action == Action::"payment.execute", resource)
when {
    context.amount <= 10000 && context.currency == "EUR" &&
    ["DE", "FR", "NL"].contains(context.jurisdiction) && context.purpose == "invoice-settlement"
};"#;

const QUESTION: &str = r#"{"principal":"Agent::\"invoice-bot\"","action":"Action::\"payment.execute\"",
"resource":"Payment::\"1\"","context":{"amount":1200,"currency":"EUR","jurisdiction":"DE",
"purpose":"invoice-settlement"}}"#;

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let program = arguments.cedar_agent.as_deref().ok_or("not installed (crate `cedar-agent`)")?;
    let address = free_address()?;
    let policies = folder.path().join("cedar-agent.json");
    fs::write(&policies, json!([{"id": "payment", "content": POLICY}]).to_string())?;
    let mut command = Command::new(program);
    command
        .args(["--log-level", "off", "--addr", "127.0.0.1", "--port", &address.port().to_string()])
        .arg("--policies")
        .arg(policies)
        .env("ROCKET_LOG_LEVEL", "off");
    let mut server = Server::start("cedar-agent", &mut command, folder)?;
    server.wait(async || tokio::net::TcpStream::connect(address).await.is_ok()).await?;
    let call = Call {
        address,
        protocol: Protocol::Rest,
        path: "/v1/is_authorized".into(),
        credential: None,
        body: QUESTION.into(),
        allowed: |answer| answer.starts_with(br#"{"decision":"Allow""#),
        decisions: 1,
    };
    let name = "cedar-agent, REST (no record, no signature, no credential)";
    report.measure(name, call, &server.meter(), arguments).await;
    Ok(())
}
