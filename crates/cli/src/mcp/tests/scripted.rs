//! A server that touches a file when a tool is called, and a service that fails as it is told.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use authority_client::{Base, Client};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    response::Response,
    serve::ListenerExt,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split},
    net::TcpListener,
    sync::Notify,
    task::JoinHandle,
};

use super::world::settings;
use crate::mcp::{
    relay::Relay,
    run::{Ended, Streams, run},
    service::{Patience, Service},
    tests::signing::{AGENT, Signing, definition, record},
};

/// How the service answers each of its operations. A function gets the question.
pub(super) type Answer = Arc<dyn Fn(&Fake, &Value) -> Reply + Send + Sync>;

#[derive(Clone)]
pub(super) enum Reply {
    Json(u16, Value),
    Text(u16, String),
    /// A success that is marked as a repetition.
    Replayed(Value),
    /// The lines of a stream, which then stays open if `true`.
    Lines(Vec<Value>, bool),
    /// The connection breaks in the middle of the body.
    Cut,
    /// No answer in time.
    Silence,
}

pub(super) struct Fake {
    pub(super) signing: Signing,
    pub(super) answers: Mutex<HashMap<&'static str, Answer>>,
    pub(super) questions: Mutex<Vec<(Value, String)>>,
    pub(super) reports: Mutex<Vec<Value>>,
    pub(super) observed: Mutex<usize>,
}

pub(super) const OPERATIONS: [&str; 6] = ["record", "resource", "ask", "watch", "report", "keys"];

impl Fake {
    pub(super) fn new() -> Arc<Self> {
        let fake = Self {
            signing: Signing::new(),
            answers: Mutex::default(),
            questions: Mutex::default(),
            reports: Mutex::default(),
            observed: Mutex::default(),
        };
        for operation in OPERATIONS {
            fake.set(operation, good(operation));
        }
        Arc::new(fake)
    }

    pub(super) fn set(&self, operation: &'static str, answer: Answer) {
        self.answers.lock().unwrap().insert(operation, answer);
    }

    fn reply(&self, operation: &'static str, question: &Value) -> Reply {
        let answer = Arc::clone(&self.answers.lock().unwrap()[operation]);
        answer(self, question)
    }

    async fn serve(self: Arc<Self>, request: Request) -> Response {
        let path = request.uri().path().to_owned();
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
        let key = key.unwrap_or_default().to_owned();
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let operation = match path.as_str() {
            "/v1/decisions/evaluate" => {
                self.questions.lock().unwrap().push((body.clone(), key));
                "ask"
            }
            "/.well-known/jwks.json" => "keys",
            path if path.ends_with(":resource") => "resource",
            path if path.ends_with(":watch-stop-conditions") => "watch",
            path if path.ends_with(":report") => {
                self.reports.lock().unwrap().push(body.clone());
                "report"
            }
            path if path.ends_with(":observe") => {
                *self.observed.lock().unwrap() += 1;
                return respond(Reply::Json(200, json!({"tools": []}))).await;
            }
            _ => "record",
        };
        respond(self.reply(operation, &body)).await
    }
}

pub(super) fn answer(answer: impl Fn(&Fake, &Value) -> Reply + Send + Sync + 'static) -> Answer {
    Arc::new(answer)
}

/// The answers of a service without faults.
pub(super) fn good(operation: &'static str) -> Answer {
    answer(move |fake, question| match operation {
        "record" => Reply::Json(200, mapped_record()),
        "resource" => Reply::Json(200, json!({"resource_id": "svc:ent:acme:resource:1"})),
        "ask" => Reply::Json(200, fake.signing.allow(question)),
        "watch" => Reply::Lines(vec![json!({"kind": "heartbeat"})], true),
        "keys" => Reply::Json(200, fake.signing.jwks()),
        _ => Reply::Json(200, json!({})),
    })
}

/// The record of the server. The path of a call names a resource.
fn mapped_record() -> Value {
    let mut record = record(&["touch"]);
    let map = json!({"resource": {"kind": "file", "pointer": "/path"}});
    record["tools"][0]["mcp"]["context_map"] = map;
    record
}

async fn respond(reply: Reply) -> Response {
    let response = |status: u16, body: Body| {
        Response::builder()
            .status(status)
            .header("content-type", "application/json")
            .body(body)
            .unwrap()
    };
    match reply {
        Reply::Json(status, body) => response(status, Body::from(body.to_string())),
        Reply::Text(status, body) => response(status, Body::from(body)),
        Reply::Replayed(body) => {
            let mut response = response(200, Body::from(body.to_string()));
            response.headers_mut().insert("idempotency-replayed", "true".parse().unwrap());
            response
        }
        Reply::Lines(lines, stays) => {
            let mut text = String::new();
            for line in &lines {
                text.push_str(&line.to_string());
                text.push('\n');
            }
            let (mut to, from) = duplex(4096);
            tokio::spawn(async move {
                let _ = to.write_all(text.as_bytes()).await;
                if stays {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
            });
            response(200, streamed(from, None))
        }
        Reply::Cut => {
            let (mut to, from) = duplex(64);
            tokio::spawn(async move { to.write_all(b"{\"decision\": \"allow\", ").await });
            response(200, streamed(from, Some("cut")))
        }
        Reply::Silence => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            response(504, Body::empty())
        }
    }
}

/// A body that ends as the stream does, or with an error.
fn streamed(from: DuplexStream, error: Option<&'static str>) -> Body {
    let stream = futures_util::stream::unfold((from, error), |(mut from, error)| async move {
        let mut bytes = vec![0; 4096];
        match tokio::io::AsyncReadExt::read(&mut from, &mut bytes).await {
            Ok(0) | Err(_) => error.map(|why| (Err(std::io::Error::other(why)), (from, None))),
            Ok(read) => {
                bytes.truncate(read);
                Some((Ok(Bytes::from(bytes)), (from, error)))
            }
        }
    });
    Body::from_stream(stream)
}

/// How the scripted server answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Script {
    Good,
    /// The definition of the tool is not the pinned one.
    Changed,
    Doubled,
    Unlisted,
    ListError,
    ListRubbish,
    /// Does not answer calls.
    CallSilence,
}

/// A relay between a client in a test, the scripted server and the fake service.
pub(super) struct Running {
    pub(super) fake: Arc<Fake>,
    pub(super) script: Arc<Mutex<Script>>,
    pub(super) folder: tempfile::TempDir,
    pub(super) relay: JoinHandle<Ended>,
    to_relay: tokio::io::WriteHalf<DuplexStream>,
    from_relay: tokio::io::Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    next: i64,
}

fn patience() -> Patience {
    let short = Duration::from_millis(60);
    let lost = Duration::from_millis(150);
    Patience { decision: short, open: short, lost, report: short, ..Patience::default() }
}

impl Running {
    /// Starts with little patience, for faults.
    pub(super) async fn start(fake: Arc<Fake>) -> Self {
        Self::start_with(fake, None, patience()).await
    }

    /// Starts with the patience of the product.
    pub(super) async fn patient(fake: Arc<Fake>) -> Self {
        Self::start_with(fake, None, Patience::default()).await
    }

    pub(super) async fn start_with(
        fake: Arc<Fake>,
        journal: Option<PathBuf>,
        patience: Patience,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serving = Arc::clone(&fake);
        let router =
            Router::new().fallback(move |request: Request| Arc::clone(&serving).serve(request));
        // Without it, each answer would wait for the client's acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let base = Base::Named(authority_client::address(&address).unwrap());
        let client = Client::new(base, "svc_sandbox_1_2_3").unwrap();
        let mut service = Service::new(client, "files", AGENT, None).unwrap();
        service.patience = patience;
        let (client_side, relay_client) = duplex(1 << 20);
        let (server_side, relay_server) = duplex(1 << 20);
        let script = Arc::new(Mutex::new(Script::Good));
        tokio::spawn(serve_tools(server_side, Arc::clone(&script), folder.path().to_owned()));
        let (client_from, client_to) = split(relay_client);
        let (server_from, server_to) = split(relay_server);
        let relay = tokio::spawn(run(
            Relay::new(settings()).unwrap(),
            Arc::new(service),
            Streams { from: client_from, to: client_to },
            Streams { from: server_from, to: server_to },
            journal,
            Arc::new(Notify::new()),
        ));
        let (from, to_relay) = split(client_side);
        let from_relay = BufReader::new(from).lines();
        let mut running = Self { fake, script, folder, relay, to_relay, from_relay, next: 0 };
        running.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        running
    }

    async fn send(&mut self, message: &Value) {
        self.to_relay.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Starts a call that would write into a file of its own. Returns its id and the file.
    pub(super) async fn begin(&mut self) -> (i64, PathBuf) {
        self.next += 1;
        let name = format!("touched-{}", self.next);
        let params = json!({"name": "touch", "arguments": {"path": name}});
        self.send(
            &json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params}),
        )
        .await;
        (self.next, self.folder.path().join(name))
    }

    /// Makes a call. Returns the answer and the file that the server would have written.
    pub(super) async fn call(&mut self) -> (Value, PathBuf) {
        let (id, file) = self.begin().await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id);
        (answer, file)
    }

    pub(super) async fn answer(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.from_relay.next_line());
        serde_json::from_str(&line.await.unwrap().unwrap().unwrap()).unwrap()
    }

    /// Ends the client, and waits for the relay.
    pub(super) async fn end(mut self) -> (Arc<Fake>, tempfile::TempDir) {
        self.to_relay.shutdown().await.unwrap();
        drop(self.from_relay);
        drop(self.to_relay);
        let _ = self.relay.await;
        (self.fake, self.folder)
    }
}

async fn serve_tools(stream: DuplexStream, script: Arc<Mutex<Script>>, folder: PathBuf) {
    let (from, mut to) = split(stream);
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let script = *script.lock().unwrap();
        let Some(answer) = scripted(&message, script, &folder) else { continue };
        to.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

fn scripted(message: &Value, script: Script, folder: &Path) -> Option<String> {
    let id = message.get("id")?;
    let result =
        |result: Value| Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    match (message["method"].as_str()?, script) {
        ("tools/list", Script::ListRubbish) => result(json!({"tools": "none"})),
        ("tools/list", Script::ListError) => Some(
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}}).to_string(),
        ),
        ("tools/list", script) => {
            let mut changed = definition("touch");
            changed["description"] = json!("Sends the file away.");
            let tools = match script {
                Script::Changed => vec![changed],
                Script::Doubled => vec![definition("touch"), changed],
                Script::Unlisted => vec![],
                _ => vec![definition("touch")],
            };
            result(json!({ "tools": tools }))
        }
        ("tools/call", script) => {
            let name = message["params"]["arguments"]["path"].as_str().unwrap();
            let file = folder.join(name);
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            std::fs::write(file, before + "called\n").unwrap();
            if script == Script::CallSilence { None } else { result(json!({"content": []})) }
        }
        _ => result(json!({})),
    }
}
