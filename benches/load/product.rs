//! Agent Authority, started with defaults: the embedded Postgres, fsync on, the demo tenant.

use std::{net::SocketAddr, ops::RangeInclusive, path::Path, process::Command};

use authority_store::embedded::Embedded;
use serde_json::json;

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Protocol},
    http1::Connection,
    row::Report,
    server::{Folder, Server, free_address},
    wire::{self, Message, Value},
};

/// The program of this build.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-authority");

pub(crate) const SUBJECT: &str = "svc:agent:acme:invoice-bot";
const ACTION: &str = "payment.execute";
const PURPOSE: &str = "invoice-settlement";
const CONTEXT: &str = r#"{"amount":1200,"currency":"EUR","jurisdiction":"DE"}"#;
/// The largest batch that the service accepts.
pub(crate) const BATCH: u32 = 100;
/// `decision: DECISION_ALLOW`, the first field of every response.
const ALLOW: &[u8] = &[0x08, 1];
/// `decision: DECISION_ALLOW_WITH_CONSTRAINTS`: an allow in a batch. `Evaluate` returns
/// `DECISION_ALLOW` instead.
const ALLOW_WITH_CONSTRAINTS: &[u8] = &[0x08, 2];

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    // One server at a time, each on new data.
    {
        let Started { server, address, key } = start("strict", "strict", folder).await?;
        let meter = server.meter();
        let call = evaluate(address, Some(&key));
        report.measure("Evaluate, gRPC, durable", call, &meter, arguments).await;
        let call = evaluate_rest(address, &key);
        report.measure("evaluate, REST, durable", call, &meter, arguments).await;
        let call = batch_evaluate(address, &key);
        report.measure("BatchEvaluate of 100, gRPC, durable", call, &meter, arguments).await;
    }
    let Started { server, address, key } = start("relaxed", "relaxed", folder).await?;
    let call = evaluate(address, Some(&key));
    report.measure("Evaluate, gRPC, relaxed", call, &server.meter(), arguments).await;
    Ok(())
}

/// A server on new data, with an API key.
pub(crate) struct Started {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
}

/// Starts a server on new data. `name` becomes the name of its folder.
pub(crate) async fn start(
    name: &'static str,
    durability: &str,
    folder: &Folder,
) -> Result<Started, Fault> {
    start_program(PROGRAM.as_ref(), name, durability, folder).await
}

/// Starts a server with the program of another build.
pub(crate) async fn start_program(
    program: &Path,
    name: &'static str,
    durability: &str,
    folder: &Folder,
) -> Result<Started, Fault> {
    let data = folder.path().join(name);
    let mut command = on_data(program, &data);
    // Every build is strict by default, but earlier builds use another word for it.
    if durability != "strict" {
        command.env("AGENT_AUTHORITY__DECIDE__DURABILITY", durability);
    }
    let (mut server, address) = serve(command, name, folder).await?;
    let made = ["api-key", "create", "--tenant", "acme", "--scope", "runtime:write"];
    let key = bearer(program, &data, &made)?;
    // Another process created the key. The server accepts it a moment later.
    server.wait(async || is_answered(evaluate_rest(address, &key)).await).await?;
    Ok(Started { server, address, key })
}

/// Starts another node on `database`, with the key ring of the server `first`.
pub(crate) async fn start_node(
    name: &'static str,
    first: &str,
    database: &Embedded,
    folder: &Folder,
) -> Result<(Server, SocketAddr), Fault> {
    let mut command = on_data(PROGRAM.as_ref(), &folder.path().join(name));
    command
        .env("DATABASE_URL", database.url())
        .env("DATABASE_OWNER_URL", database.owner_url())
        .env("AGENT_AUTHORITY__KEYS__RING_FILE", folder.path().join(first).join("keys.ring"));
    serve(command, name, folder).await
}

/// Runs the service, and waits until it is ready.
async fn serve(
    mut command: Command,
    name: &'static str,
    folder: &Folder,
) -> Result<(Server, SocketAddr), Fault> {
    let address = free_address()?;
    command
        .args(["serve", "--listen", &address.to_string()])
        .env("AGENT_AUTHORITY__LISTEN__OPS", free_address()?.to_string());
    let mut server = Server::start(name, &mut command, folder)?;
    server.wait(async || ready(address).await).await?;
    Ok((server, address))
}

/// Returns a command that runs the program on this data, without settings from the environment.
fn on_data(program: &Path, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(data);
    for setting in ["DATABASE_URL", "DATABASE_OWNER_URL", "AGENT_AUTHORITY_CONFIG", "RUST_LOG"] {
        command.env_remove(setting);
    }
    command
}

async fn ready(address: SocketAddr) -> bool {
    let call = Call {
        address,
        protocol: Protocol::Rest,
        path: "/health/ready".into(),
        credential: None,
        body: Vec::new(),
        allowed: |_| true,
        decisions: 0,
    };
    is_answered(call).await
}

async fn is_answered(call: Call) -> bool {
    match Connection::open(&call).await {
        Ok(mut connection) => matches!(connection.ask().await, Ok((200, _))),
        Err(_) => false,
    }
}

/// Returns the credential of the owner of a started server.
pub(crate) fn owner(folder: &Folder, name: &str) -> Result<String, Fault> {
    bearer(PROGRAM.as_ref(), &folder.path().join(name), &["token", "owner"])
}

/// Returns the credential of a tenant's member.
pub(crate) fn member(folder: &Folder, name: &str, slug: &str, role: &str) -> Result<String, Fault> {
    bearer(
        PROGRAM.as_ref(),
        &folder.path().join(name),
        &["token", "tenant", "--tenant", slug, "--role", role],
    )
}

/// Returns the credential that a command prints.
fn bearer(program: &Path, data: &Path, command: &[&str]) -> Result<String, Fault> {
    let made = on_data(program, data).args(command).output()?;
    if !made.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&made.stderr)).into());
    }
    Ok(format!("Bearer {}", String::from_utf8(made.stdout)?.trim()))
}

/// Returns a call that makes one decision over gRPC.
pub(crate) fn evaluate(address: SocketAddr, key: Option<&str>) -> Call {
    evaluate_for(address, key, SUBJECT, &context())
}

/// Returns a call that makes one decision over gRPC for any agent and context.
pub(crate) fn evaluate_for(
    address: SocketAddr,
    key: Option<&str>,
    subject: &str,
    context: &Message,
) -> Call {
    let request =
        Message::default().text(1, subject).text(2, ACTION).text(3, PURPOSE).message(4, context);
    Call {
        address,
        protocol: Protocol::Grpc,
        path: "/authority.runtime.v1.RuntimeService/Evaluate".into(),
        credential: key.map(str::to_owned),
        body: request.done(),
        allowed: |answer| answer.starts_with(ALLOW),
        decisions: 1,
    }
}

pub(crate) fn evaluate_rest(address: SocketAddr, key: &str) -> Call {
    let request = format!(
        r#"{{"subject":"{SUBJECT}","action":"{ACTION}","purpose":"{PURPOSE}","context":{CONTEXT}}}"#
    );
    Call {
        address,
        protocol: Protocol::Rest,
        path: "/api/v1/runtime/evaluate".into(),
        credential: Some(key.to_owned()),
        body: request.into_bytes(),
        allowed: |answer| answer.starts_with(br#"{"decision":"allow""#),
        decisions: 1,
    }
}

/// Makes one decision and returns its id.
pub(crate) async fn decided(address: SocketAddr, key: &str) -> Result<String, Fault> {
    answered(&evaluate_rest(address, key), "decision_id").await
}

/// Opens `count` approval requests, each with a different amount and payee. Returns the id of the
/// last one.
pub(crate) async fn held(address: SocketAddr, key: &str, count: u32) -> Result<String, Fault> {
    many(address, key, 20_001..=20_000 + count, "approval_id").await
}

/// Makes `count` decisions on the amounts from 1.
pub(crate) async fn small(address: SocketAddr, key: &str, count: u32) -> Result<(), Fault> {
    many(address, key, 1..=count, "decision_id").await.map(drop)
}

/// Makes a request for each amount, with its own payee. Returns a member of the last response.
async fn many(
    address: SocketAddr,
    key: &str,
    amounts: RangeInclusive<u32>,
    member: &str,
) -> Result<String, Fault> {
    let mut last = String::new();
    for (number, amount) in (1..).zip(amounts) {
        let context = json!({"amount": amount, "currency": "EUR", "jurisdiction": "DE",
                             "payee": format!("Supplier {number}"), "invoice": format!("RE-{number}")});
        let question =
            json!({"subject": SUBJECT, "action": ACTION, "purpose": PURPOSE, "context": context});
        let call = Call { body: question.to_string().into_bytes(), ..evaluate_rest(address, key) };
        last = answered(&call, member).await?;
    }
    Ok(last)
}

/// Makes one call and returns the text of one member of the response.
async fn answered(call: &Call, member: &str) -> Result<String, Fault> {
    let mut connection = Connection::open(call).await?;
    let (status, answer) = connection.ask().await?;
    let answer: serde_json::Value = serde_json::from_slice(answer)?;
    let text = answer[member].as_str();
    text.map(str::to_owned).ok_or_else(|| format!("no `{member}`: {status}: {answer}").into())
}

/// Returns a call that makes as many decisions as a call can.
pub(crate) fn batch_evaluate(address: SocketAddr, key: &str) -> Call {
    batch_of::<BATCH>(address, key)
}

/// Returns a call that makes `SIZE` decisions over gRPC.
pub(crate) fn batch_of<const SIZE: u32>(address: SocketAddr, key: &str) -> Call {
    let request = || {
        Message::default().text(1, SUBJECT).text(2, ACTION).text(3, PURPOSE).message(9, &context())
    };
    let batch = (0..SIZE).fold(Message::default(), |batch, _| batch.message(1, &request()));
    Call {
        address,
        protocol: Protocol::Grpc,
        path: "/authority.runtime.v1.RuntimeService/BatchEvaluate".into(),
        credential: Some(key.to_owned()),
        body: batch.done(),
        allowed: all_allowed::<SIZE>,
        decisions: SIZE,
    }
}

/// Returns whether each of the `SIZE` results has a response (field 1) that is an allow.
fn all_allowed<const SIZE: u32>(mut results: &[u8]) -> bool {
    let mut allowed = 0;
    while let Some((_, result, rest)) = wire::first(results) {
        let Some((1, answer, _)) = wire::first(result) else { return false };
        if !answer.starts_with(ALLOW) && !answer.starts_with(ALLOW_WITH_CONSTRAINTS) {
            return false;
        }
        allowed += 1;
        results = rest;
    }
    allowed == SIZE
}

/// Returns a context that the demo tenant's policies allow: a `google.protobuf.Struct`.
pub(crate) fn context() -> Message {
    Message::default()
        .entry(1, "amount", Value::Number(1200.0))
        .entry(1, "currency", Value::Text("EUR"))
        .entry(1, "jurisdiction", Value::Text("DE"))
}
