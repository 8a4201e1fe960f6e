//! Measures Cerbos with the request that the service decides. Cerbos has one policy, with the
//! conditions of the demo tenant's records in CEL. Its decision log is on disk, with the default
//! settings of its `local` backend.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use crate::{
    Fault,
    arguments::Arguments,
    call::{Call, Protocol},
    row::Report,
    server::{Folder, Server, free_address},
    wire::{Message, Value},
};

const POLICY: &str = r#"apiVersion: api.cerbos.dev/v1
resourcePolicy:
  resource: payment
  version: default
  rules:
    - actions: ["payment.execute"]
      effect: EFFECT_ALLOW
      roles: ["agent"]
      condition:
        match:
          all:
            of:
              - expr: R.attr.amount <= 10000.0
              - expr: R.attr.currency == "EUR"
              - expr: R.attr.jurisdiction in ["DE", "FR", "NL"]
              - expr: R.attr.purpose == "invoice-settlement"
"#;

const QUESTION: &str = r#"{"principal":{"id":"svc:agent:acme:invoice-bot","roles":["agent"]},
"resources":[{"actions":["payment.execute"],"resource":{"kind":"payment","id":"1","attr":
{"amount":1200,"currency":"EUR","jurisdiction":"DE","purpose":"invoice-settlement"}}}]}"#;

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let Cerbos { server, rest, grpc } = start(arguments, folder).await?;
    let meter = server.meter();
    report
        .measure(
            "Cerbos, gRPC (decision log in the background, no signature)",
            check(grpc),
            &meter,
            arguments,
        )
        .await;
    report
        .measure(
            "Cerbos, REST (decision log in the background, no signature)",
            check_rest(rest),
            &meter,
            arguments,
        )
        .await;
    Ok(())
}

/// A running Cerbos, and its addresses.
pub(crate) struct Cerbos {
    pub(crate) server: Server,
    pub(crate) rest: SocketAddr,
    pub(crate) grpc: SocketAddr,
}

pub(crate) async fn start(arguments: &Arguments, folder: &Folder) -> Result<Cerbos, Fault> {
    let program = arguments.cerbos.as_deref().ok_or("not installed (npm package `cerbos`)")?;
    let (rest, grpc) = (free_address()?, free_address()?);
    let settings = configure(folder, rest, grpc)?;
    let mut command = Command::new(program);
    command
        .args(["server", "--log-level=warn"])
        .arg(format!("--config={}", settings.display()))
        .env("CERBOS_NO_TELEMETRY", "1");
    let mut server = Server::start("cerbos", &mut command, folder)?;
    server.wait(async || tokio::net::TcpStream::connect(rest).await.is_ok()).await?;
    Ok(Cerbos { server, rest, grpc })
}

fn configure(
    folder: &Folder,
    rest: SocketAddr,
    grpc: SocketAddr,
) -> Result<std::path::PathBuf, Fault> {
    let folder = folder.path().join("cerbos");
    let [policies, log] = ["policies", "log"].map(|name| folder.join(name));
    fs::create_dir_all(&policies)?;
    fs::write(policies.join("payment.yaml"), POLICY)?;
    let show = Path::display;
    let settings = format!(
        r#"server: {{httpListenAddr: "{rest}", grpcListenAddr: "{grpc}"}}
telemetry: {{disabled: true}}
storage: {{driver: disk, disk: {{directory: "{}", watchForChanges: false}}}}
audit:
  enabled: true
  accessLogsEnabled: false
  decisionLogsEnabled: true
  backend: local
  local: {{storagePath: "{}"}}
"#,
        show(&policies),
        show(&log),
    );
    let path = folder.join("cerbos.yaml");
    fs::write(&path, settings)?;
    Ok(path)
}

/// Returns a call with `cerbos.request.v1.CheckResourcesRequest`.
pub(crate) fn check(address: SocketAddr) -> Call {
    let principal = Message::default().text(1, "svc:agent:acme:invoice-bot").text(3, "agent");
    let resource = Message::default()
        .text(1, "payment")
        .text(3, "1")
        .entry(4, "amount", Value::Number(1200.0))
        .entry(4, "currency", Value::Text("EUR"))
        .entry(4, "jurisdiction", Value::Text("DE"))
        .entry(4, "purpose", Value::Text("invoice-settlement"));
    let entry = Message::default().text(1, "payment.execute").message(2, &resource);
    Call {
        address,
        protocol: Protocol::Grpc,
        path: "/cerbos.svc.v1.CerbosService/CheckResources".into(),
        credential: None,
        body: Message::default().message(3, &principal).message(4, &entry).done(),
        // An entry of the map from action to effect: EFFECT_ALLOW is 1.
        allowed: |answer| holds(answer, b"payment.execute\x10\x01"),
        decisions: 1,
    }
}

/// Returns the same check over REST.
pub(crate) fn check_rest(address: SocketAddr) -> Call {
    Call {
        address,
        protocol: Protocol::Rest,
        path: "/api/check/resources".into(),
        credential: None,
        body: QUESTION.into(),
        allowed: |answer| holds(answer, b"EFFECT_ALLOW"),
        decisions: 1,
    }
}

fn holds(answer: &[u8], part: &[u8]) -> bool {
    answer.windows(part.len()).any(|window| window == part)
}
