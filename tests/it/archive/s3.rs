//! The archive in a bucket of an S3-compatible server on this machine.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use authority_archive::{Archiver, Archives, Bucket, Parts, StepResult};
use authority_ids::DecisionId;
use authority_store::Scope;
use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{Response, StatusCode, header},
};
use serde_json::json;

use super::{MOST, TENANT, World, damaged::flip, removed, steps};
use crate::command_line::run;

const URL: &str = "s3://evidence/archive/of acme";

/// Returns the Python that `script/features` installs.
pub(super) fn python() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("features/venv/bin/python")
}

/// A running S3-compatible server, which is stopped at the end of the test.
struct Server {
    process: Child,
    endpoint: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    async fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(python())
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|why| panic!("{}: {why}: run script/features", python().display()));
        let server = Self { process, endpoint: format!("http://127.0.0.1:{port}") };
        let client = crate::support::http();
        for _ in 0..600 {
            let bucket = format!("{}/evidence", server.endpoint);
            if client.put(bucket).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return server;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no server at {}: run script/features", server.endpoint);
    }

    fn variables(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("AWS_ENDPOINT", &self.endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "eu-west-1"),
        ]
    }

    fn bucket(&self) -> Bucket {
        bucket(self.variables())
    }
}

fn bucket(variables: Vec<(&'static str, &str)>) -> Bucket {
    let owned = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Bucket::with(URL, owned).unwrap()
}

/// A proxy in front of the server, which forwards some requests and answers the others itself.
#[derive(Clone)]
struct Faulty {
    endpoint: String,
    store: String,
    /// The number of requests that the proxy still forwards.
    left: Arc<AtomicUsize>,
    /// The status with which it answers the other requests.
    status: Arc<AtomicU16>,
}

impl Faulty {
    async fn start(server: &Server) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let faulty = Self {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            store: server.endpoint.clone(),
            left: Arc::default(),
            status: Arc::default(),
        };
        let this = faulty.clone();
        let app = axum::Router::new()
            .fallback(move |request: Request| async move { this.answer(request).await });
        tokio::spawn(async move { axum::serve(listener, app).await });
        faulty
    }

    fn passes(&self, count: usize, then: StatusCode) {
        self.status.store(then.as_u16(), SeqCst);
        self.left.store(count, SeqCst);
    }

    async fn answer(&self, request: Request) -> Response<Body> {
        let passed = self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        if passed.is_err() {
            let refused = Response::builder().status(self.status.load(SeqCst));
            return refused.body(Body::empty()).unwrap();
        }
        let (mut parts, body) = request.into_parts();
        parts.headers.remove(header::HOST);
        let url = format!("{}{}", self.store, parts.uri);
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let client = crate::support::http();
        let sent = client.request(parts.method, url).headers(parts.headers).body(body);
        let answer = sent.send().await.unwrap();
        let mut passed = Response::builder().status(answer.status());
        let headers = answer.headers().iter();
        for (name, value) in headers.filter(|(name, _)| *name != header::TRANSFER_ENCODING) {
            passed = passed.header(name, value);
        }
        passed.body(Body::from(answer.bytes().await.unwrap())).unwrap()
    }
}

/// Starts a world with six decisions that are due for archiving, in parts of four.
async fn due() -> (World, Vec<String>) {
    let world = World::start().await;
    let ids = world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    (world, ids)
}

fn archiver(world: &World, bucket: &Bucket) -> Archiver {
    Archiver::new(Parts { bucket: bucket.clone(), part: 4, ..world.parts() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_is_written_read_and_verified_as_a_folder_is() {
    let server = Server::start().await;
    let (world, ids) = due().await;
    let bucket = server.bucket();
    let done = steps(&archiver(&world, &bucket)).await;
    assert!(done.contains(&StepResult::Archived) && removed(&done) == 6, "{done:?}");
    assert!(world.objects("").await.is_empty(), "the folder must be empty");
    let archives =
        Archives::new(world.app.database.store(), world.parts().keys, Some(bucket.clone()));
    for id in &ids {
        let id = DecisionId::parse(id).unwrap();
        let found = archives.find(&Scope::service(), &id).await.unwrap().unwrap();
        assert_eq!(found.entry().unwrap().decision_id, id.as_str());
    }
    let folder = tempfile::tempdir().unwrap();
    let jwks = folder.path().join("jwks.json");
    let (_, published) = world.owner().text("GET", "/.well-known/jwks.json", None).await;
    std::fs::write(&jwks, published).unwrap();
    let verified = ["archive", "verify", URL, "--jwks", jwks.to_str().unwrap(), "--require-trust"];
    let (code, text, told) = run(&verified, &server.variables());
    assert_eq!(code, 0, "{told}");
    assert!(text.starts_with(&format!("acme/{}: valid, 6 decisions, ", world.month())), "{text}");
    let (code, bundle, told) = run(&["archive", "get", URL, &ids[4]], &server.variables());
    assert_eq!(code, 0, "{told}");
    let file = folder.path().join("bundle.json");
    std::fs::write(&file, bundle).unwrap();
    assert_eq!(run(&["verify", file.to_str().unwrap()], &[]).0, 0);
    // The server is stopped. Reading then returns an error, not "not found".
    drop(server);
    let id = DecisionId::parse(&ids[5]).unwrap();
    let archives = Archives::new(world.app.database.store(), world.parts().keys, Some(bucket));
    assert!(archives.find(&Scope::service(), &id).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_with_a_wrong_byte_or_without_an_object_deletes_nothing() {
    let server = Server::start().await;
    let (world, _) = due().await;
    let bucket = server.bucket();
    let archiver = archiver(&world, &bucket);
    while archiver.step().await.unwrap() != StepResult::Archived {}
    world.app.database.run("UPDATE archives SET checked_at = NULL").await;
    let kept = async |what: &str| {
        // Without the newest manifest the archiver does not begin.
        if what.contains("manifest-") && what.ends_with("missing") {
            let told = archiver.step().await.unwrap_err().to_string();
            assert!(told.contains("`archive.url`"), "{what}: {told}");
        } else {
            let done = steps(&archiver).await;
            assert!(done.contains(&StepResult::Skipped), "{what}: {done:?}");
        }
        assert_eq!(world.count("decisions", "true").await, 6, "{what}");
        assert_eq!(world.removed(TENANT).await, None, "{what}");
    };
    for object in bucket.list("acme").await.unwrap() {
        let name = object.name;
        let whole = bucket.get(&name, MOST).await.unwrap();
        flip(&bucket, &name).await;
        kept(&format!("{name}, flipped")).await;
        bucket.delete(&name).await.unwrap();
        kept(&format!("{name}, missing")).await;
        bucket.put(&name, whole.to_vec()).await.unwrap();
    }
    assert_eq!(removed(&steps(&archiver).await), 6);
}

/// The archiver retries a failed request for some seconds. The worker's next run tries again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_answers_with_errors_deletes_nothing() {
    let server = Server::start().await;
    let (world, _) = due().await;
    let faulty = Faulty::start(&server).await;
    let mut variables = server.variables();
    variables[0].1 = &faulty.endpoint;
    let archiver = archiver(&world, &bucket(variables));
    faulty.passes(0, StatusCode::INTERNAL_SERVER_ERROR);
    let told = archiver.step().await.unwrap_err().to_string();
    assert!(told.starts_with("the archive cannot be used: "), "{told}");
    // The month is archived, and its objects must be read back before removal.
    faulty.passes(usize::MAX, StatusCode::OK);
    while archiver.step().await.unwrap() != StepResult::Archived {}
    world.app.database.run("UPDATE archives SET checked_at = NULL, is_tidy = true").await;
    faulty.passes(0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(archiver.step().await.is_err());
    assert_eq!(world.count("decisions", "true").await, 6);
    assert_eq!(world.removed(TENANT).await, None);
    faulty.passes(usize::MAX, StatusCode::OK);
    steps(&archiver).await;
    assert_eq!(removed(&steps(&archiver).await), 6, "at the next run");
}

/// Each node fails after some requests, one request later than the node before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_ends_between_two_requests_is_followed_by_another() {
    let server = Server::start().await;
    let (world, ids) = due().await;
    let faulty = Faulty::start(&server).await;
    let mut variables = server.variables();
    variables[0].1 = &faulty.endpoint;
    let (through, sure) = (bucket(variables), server.bucket());
    let archives = Archives::new(world.app.database.store(), world.parts().keys, Some(sure));
    for passed in 0.. {
        world.leases_ended().await;
        faulty.passes(passed, StatusCode::FORBIDDEN);
        let archiver = archiver(&world, &through);
        while !matches!(archiver.step().await, Ok(StepResult::Idle) | Err(_)) {}
        for id in &ids {
            let in_tables = world.count("decisions", &format!("id = '{id}'")).await == 1;
            let id = DecisionId::parse(id).unwrap();
            let archived = archives.find(&Scope::service(), &id).await.unwrap();
            assert!(in_tables || archived.is_some(), "{id} after {passed} requests");
        }
        if world.count("archives", "removed_at IS NOT NULL").await == 1 {
            assert!(passed > 3, "{passed} requests");
            break;
        }
        assert!(passed < 50, "the removal does not end");
    }
    assert_eq!(world.count("decisions", "true").await, 0);
}
