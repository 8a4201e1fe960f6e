//! Rolling restarts: two nodes behind a load balancer are restarted in turn under load. The
//! balancer uses the configuration in `deploy/haproxy`.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use authority_model::proto::runtime::runtime_service_client::RuntimeServiceClient;
use tokio::task::JoinHandle;
use tonic::{Request, metadata::MetadataValue};

use super::{
    figures::{figure, times},
    process::{Folder, Service, allowed, free},
};
use crate::support::{Client, database::Database, evaluate};

const CONFIGURATION: &str = include_str!("../../../deploy/haproxy/haproxy.cfg");
/// The line of the configuration that requires root and a certificate. The tests replace it.
const BIND: &str = "bind :443 ssl crt /etc/haproxy/authority.pem alpn h2,http/1.1";
const ROUNDS: usize = 2;
/// The time until the balancer checks a node that has started.
const NOTICED: Duration = Duration::from_secs(1);

pub(super) struct HaProxy(Child);

impl HaProxy {
    /// Starts `HAProxy` with the configuration in `deploy/haproxy`, changed to these addresses.
    fn start(folder: &Folder, front: SocketAddr, nodes: [SocketAddr; 2]) -> Self {
        let (_, config) = CONFIGURATION.split_once("\ndefaults").unwrap();
        assert!(config.contains(BIND), "{config}");
        let config = format!("defaults{config}")
            .replace(BIND, &format!("bind {front}"))
            .replace("127.0.0.1:8080", &nodes[0].to_string())
            .replace("127.0.0.1:8081", &nodes[1].to_string());
        Self::run(&config, folder.path())
    }

    /// Starts `HAProxy` with this configuration.
    pub(super) fn run(config: &str, folder: &Path) -> Self {
        let path = folder.join("haproxy.cfg");
        fs::write(&path, config).unwrap();
        let mut program = Command::new("haproxy");
        let program = program.arg("-db").arg("-f").arg(path).stderr(Stdio::null());
        Self(program.spawn().expect("haproxy: run script/features"))
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Callers that run until they are stopped, and count their calls.
struct Load {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts REST calls on reused and on new connections, and gRPC calls.
    fn start(base: &str, key: &str) -> Self {
        let (stop, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let ended = |stop: &Arc<AtomicBool>, calls: &Arc<AtomicUsize>| {
            let (stop, calls) = (Arc::clone(stop), Arc::clone(calls));
            move || {
                calls.fetch_add(1, Ordering::Relaxed);
                AtomicBool::load(&stop, Ordering::Relaxed)
            }
        };
        let mut callers = Vec::new();
        for is_new in [false, true] {
            let (base, key) = (base.to_owned(), key.to_owned());
            let ended = ended(&stop, &calls);
            callers.push(tokio::spawn(async move {
                let mut client = Client::new(&base, &key);
                while !ended() {
                    if is_new {
                        client = Client::new(&base, &key);
                    }
                    let (status, answer) = client.evaluate(allowed()).await;
                    assert_eq!(status, 200, "{answer}");
                }
            }));
        }
        let (base, bearer) = (base.to_owned(), format!("Bearer {key}"));
        let ended = ended(&stop, &calls);
        callers.push(tokio::spawn(async move {
            let bearer: MetadataValue<_> = bearer.parse().unwrap();
            let mut grpc = RuntimeServiceClient::connect(base).await.unwrap();
            while !ended() {
                let mut request = Request::new(evaluate(&allowed()["context"]));
                request.metadata_mut().insert("authorization", bearer.clone());
                grpc.evaluate(request).await.unwrap();
            }
        }));
        Self { stop, calls, callers }
    }

    /// Stops the callers and returns the number of calls. Each call must have succeeded.
    async fn finish(self) -> usize {
        AtomicBool::store(&self.stop, true, Ordering::Relaxed);
        for caller in self.callers {
            caller.await.expect("a call failed");
        }
        self.calls.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarting_nodes_one_after_the_other_fails_no_call() {
    let database = Database::fresh().await;
    let folders = ["rolling-1", "rolling-2"].map(Folder::new);
    let addresses = [free(), free()];
    let front = free();
    let start = |n: usize| Service::node(addresses[n], &database.owner_url(), &folders[n]);
    let mut nodes = [start(0), start(1)];
    let _balancer = HaProxy::start(&folders[0], front, addresses);
    tokio::time::sleep(NOTICED).await;
    let load = Load::start(&format!("http://{front}"), &nodes[0].client.token);
    let rounds = ROUNDS * times();
    for _ in 0..rounds {
        for (n, node) in nodes.iter_mut().enumerate() {
            node.stop();
            *node = start(n);
            tokio::time::sleep(NOTICED).await;
        }
    }
    let calls = load.finish().await;
    assert!(calls > 20 * rounds, "{calls} calls");
    figure(
        &format!("{calls} calls behind HAProxy, {} restarts of two nodes in turn", 2 * rounds),
        "0 failed",
    );
}
