//! The primary of a database cluster is killed, hung, cut off and moved under load. No answered
//! decision is lost, and two nodes decide again within 15 seconds without a restart. The cluster is
//! set up by the commands of docs/operations/high-availability.md.

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use authority_model::proto::runtime::runtime_service_client::RuntimeServiceClient;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tonic::{Code, Request, metadata::MetadataValue};

use super::{
    cluster::{Cluster, Fault, block},
    figures::{figure, times},
    process::{Folder, PROGRAM, Service, allowed, free, shared},
    rolling::HaProxy,
};
use crate::support::{Client, WHOLE_MACHINE, evaluate, nothing};

/// The limit that docs/operations/high-availability.md promises.
const PROMISED: Duration = Duration::from_secs(15);
/// If only Patroni hangs, the old primary continues to write. The third machine may have to discard
/// those writes before it follows the new primary, and commits wait for it.
const PROMISED_WITHOUT_PATRONI: Duration = Duration::from_secs(30);
/// The time under load before a fault, and the time under load after decisions have resumed.
const STEADY: Duration = Duration::from_secs(1);

/// A node that has not decided for this long has lost the primary.
const SILENT: Duration = Duration::from_millis(500);

/// The decisions that were answered.
#[derive(Default)]
struct Answered {
    /// For decisions without keys: the time of the answer, the node and the decision's id.
    plain: Mutex<Vec<(Instant, usize, String)>>,
    /// The ids of decisions that were made with idempotency keys.
    keyed: Mutex<Vec<String>>,
    /// The number of keys for which a repeat returned a different decision.
    doubled: AtomicUsize,
}

/// Callers of both nodes, which run until they are stopped. Each answer is a decision or
/// `unavailable`.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<Answered>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(clients: &[Client; 2]) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<Answered>::default());
        let mut callers = Vec::new();
        for node in [0, 1] {
            let shared = || (clients.clone(), Arc::clone(&stop), Arc::clone(&answered));
            let (clients, is_over, found) = shared();
            callers.push(tokio::spawn(rest(clients, node, is_over, found)));
            let (clients, is_over, found) = shared();
            callers.push(tokio::spawn(grpc(clients, node, is_over, found)));
            let (clients, is_over, found) = shared();
            callers.push(tokio::spawn(keyed(clients, node, is_over, found)));
        }
        Self { stop, answered, callers }
    }

    /// Returns the time from `since` to the end of each node's longest silence, or `None` until
    /// both nodes respond again.
    fn silences(&self, since: Instant) -> Option<[Duration; 2]> {
        Some([self.silence(0, since)?, self.silence(1, since)?])
    }

    fn silence(&self, node: usize, since: Instant) -> Option<Duration> {
        let answers = self.answered.plain.lock();
        let mut last = since;
        let later = answers.iter().filter(|(at, by, _)| *by == node && *at > since);
        let gaps = later.map(|(at, ..)| {
            let gap = at.duration_since(last);
            last = *at;
            (gap, at.duration_since(since))
        });
        gaps.max().filter(|(gap, _)| *gap > SILENT).map(|(_, until)| until)
    }

    /// Returns the time from `since` to the node's next answer.
    fn answers(&self, node: usize, since: Instant) -> Option<Duration> {
        let answers = self.answered.plain.lock();
        let next = answers.iter().find(|(at, by, _)| *by == node && *at > since);
        next.map(|(at, ..)| at.duration_since(since))
    }

    async fn finish(self) -> Arc<Answered> {
        AtomicBool::store(&self.stop, true, Ordering::Release);
        for caller in self.callers {
            caller.await.expect("a call was refused");
        }
        self.answered
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn rest(
    clients: [Client; 2],
    node: usize,
    is_over: Arc<AtomicBool>,
    answered: Arc<Answered>,
) {
    while !AtomicBool::load(&is_over, Ordering::Acquire) {
        match clients[node].evaluate(allowed()).await {
            (200, answer) => {
                let id = answer["decision_id"].as_str().unwrap().to_owned();
                answered.plain.lock().push((Instant::now(), node, id));
            }
            (503, _) => pause().await,
            (status, answer) => panic!("{status}: {answer}"),
        }
    }
}

async fn grpc(
    clients: [Client; 2],
    node: usize,
    is_over: Arc<AtomicBool>,
    answered: Arc<Answered>,
) {
    let bearer: MetadataValue<_> = format!("Bearer {}", clients[node].token).parse().unwrap();
    let mut client = RuntimeServiceClient::connect(clients[node].base.clone()).await.unwrap();
    while !AtomicBool::load(&is_over, Ordering::Acquire) {
        let mut request = Request::new(evaluate(&allowed()["context"]));
        request.metadata_mut().insert("authorization", bearer.clone());
        match client.evaluate(request).await {
            Ok(answer) => {
                let id = answer.into_inner().decision_id;
                answered.plain.lock().push((Instant::now(), node, id));
            }
            Err(status) if [Code::Unavailable, Code::DeadlineExceeded].contains(&status.code()) => {
                pause().await;
            }
            Err(status) => panic!("{status}"),
        }
    }
}

/// Repeats a call with a key on alternating nodes until it is answered, and once more after that.
async fn keyed(
    clients: [Client; 2],
    node: usize,
    is_over: Arc<AtomicBool>,
    answered: Arc<Answered>,
) {
    for n in 0.. {
        let key = format!("failover-{node}-{n}-{:?}", Instant::now());
        let mut first = None;
        let mut at = node;
        loop {
            if AtomicBool::load(&is_over, Ordering::Acquire) {
                return;
            }
            let headers = [("idempotency-key", key.as_str())];
            let asked = clients[at].evaluate_with(allowed(), &headers);
            at = 1 - at;
            match (asked.await, &first) {
                ((200, answer), None) => {
                    let id = answer["decision_id"].as_str().unwrap().to_owned();
                    answered.keyed.lock().push(id.clone());
                    first = Some(id);
                }
                ((200, answer), Some(id)) => {
                    let is_other = answer["decision_id"] != id.as_str();
                    answered.doubled.fetch_add(usize::from(is_other), Ordering::Relaxed);
                    break;
                }
                // The request was permitted, but the delegation has been suspended since then.
                ((409, answer), _) if answer["error"] == "decision_stopped" => break,
                ((503, _), _) => pause().await,
                ((status, answer), _) => panic!("{status}: {answer}"),
            }
        }
    }
}

/// Two nodes started by the commands of docs/operations/high-availability.md: the first connects
/// through `HAProxy`, the second with a list of servers.
struct Nodes {
    services: [Service; 2],
    clients: [Client; 2],
    owner: Client,
    delegation: String,
    _balancer: HaProxy,
    _folders: [Folder; 2],
}

impl Nodes {
    async fn start(cluster: &Cluster) -> Self {
        let place = cluster.folder().display().to_string();
        let front = free();
        let here = |part: &str| {
            let place = block(part).replace("/etc/agent-authority", &place);
            place
                .replace("127.0.0.1:5000", &front.to_string())
                .replace("port=5000", &format!("port={}", front.port()))
        };
        let balancer = HaProxy::run(&here("listen postgres"), cluster.folder());
        let urls = ["url = \"host=127", "url = \"host=198"].map(|part| {
            let settings = here(part);
            settings.split("url = \"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        });
        fs::write(cluster.folder().join("authority.toml"), here("url = \"host=198")).unwrap();
        let mut migrate = Command::new("bash");
        let commands = here("agent-authority migrate")
            .replace("agent-authority migrate", "\"$PROGRAM\" migrate");
        let migrate = migrate.args(["-euc", &commands]).env("PROGRAM", PROGRAM);
        let migrated = migrate.current_dir(cluster.folder()).envs(shared(&urls[1])).status();
        assert!(migrated.unwrap().success());
        let folders = ["failover-1", "failover-2"].map(Folder::new);
        let services = [0, 1].map(|node| Service::node(free(), &urls[node], &folders[node]));
        // An idempotency key belongs to one caller: both nodes use the same credential.
        let caller = &services[0].client.token;
        let clients = services.each_ref().map(|node| Client::new(&node.client.base, caller));
        let owner = services[0].owner_at(&urls[0], &folders[0]);
        let (status, told) = owner.list_delegations("").await;
        assert_eq!(status, 200, "{told}");
        let delegation = told["delegations"][0]["id"].as_str().unwrap().to_owned();
        Self { services, clients, owner, delegation, _balancer: balancer, _folders: folders }
    }

    /// Checks that the second node no longer permits once a suspension is answered.
    async fn suspension_binds(&self) {
        let changed = async |verb: &str| loop {
            match self.owner.act_on_delegation(&self.delegation, verb, nothing()).await {
                (200, _) => return,
                (503, _) => pause().await,
                (status, answer) => panic!("{status}: {answer}"),
            }
        };
        changed("suspend").await;
        loop {
            match self.clients[1].evaluate(allowed()).await {
                (200, answer) => break assert_eq!(answer["decision"], "deny", "{answer}"),
                (503, _) => pause().await,
                (status, answer) => panic!("{status}: {answer}"),
            }
        }
        changed("reinstate").await;
    }

    /// Checks that both nodes can seal, and that the log is still in its first epoch.
    async fn log_goes_on(&self, ids: &[String]) {
        for (node, id) in self.clients.iter().zip(ids) {
            loop {
                match node.seal_decision(id).await {
                    (200, _) => break,
                    (503, _) => pause().await,
                    (status, answer) => panic!("{status}: {answer}"),
                }
            }
        }
        for service in &self.services {
            let metrics = service.metrics().await;
            let epochs =
                metrics.lines().find(|line| line.starts_with("authority_log_epochs_total"));
            assert!(epochs.is_none_or(|line| line.ends_with(" 0")), "{epochs:?}");
        }
    }
}

/// Waits until the measurement returns a value.
async fn until<T>(fault: Fault, measured: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        pause().await;
        if let Some(measured) = measured() {
            return measured;
        }
        assert!(begun.elapsed() < 4 * PROMISED, "{fault:?}: no result after {:?}", begun.elapsed());
    }
}

/// Causes the fault under load and prints its line for the table of `script/faults`.
async fn break_under_load(cluster: &mut Cluster, nodes: &Nodes, fault: Fault) {
    let primary = cluster.primary().await.unwrap();
    let load = Load::start(&nodes.clients);
    tokio::time::sleep(STEADY).await;
    let begun = Instant::now();
    cluster.hurt(fault, primary);
    let took = if fault == Fault::PatroniHung {
        let by_balancer = until(fault, || load.silence(0, begun)).await;
        // The old primary and the node connected to it do not learn of the failover, but no commit
        // succeeds on the old primary.
        tokio::time::sleep(STEADY).await;
        let by_then = Instant::now();
        tokio::time::sleep(2 * STEADY).await;
        assert_eq!(load.answers(1, by_then), None, "{fault:?}: it still decides");
        let mended = Instant::now();
        cluster.mend(fault, primary);
        [by_balancer, until(fault, || load.answers(1, mended)).await]
    } else {
        until(fault, || load.silences(begun)).await
    };
    nodes.suspension_binds().await;
    tokio::time::sleep(STEADY).await;
    if times() > 1 {
        cluster.mend(fault, primary);
        cluster.whole().await;
    }
    let answered = load.finish().await;
    let mut ids: Vec<String> = answered.keyed.lock().clone();
    let keyed = ids.len();
    ids.extend(answered.plain.lock().iter().map(|(.., id)| id.clone()));
    nodes.log_goes_on(&ids).await;
    let missing = async |member| {
        let stored = cluster.decisions(member);
        ids.iter().filter(|id| !stored.contains(*id)).count()
    };
    if times() > 1 {
        // The old primary has no decision that the other members lack, and receives all of theirs.
        let begun = Instant::now();
        while missing(primary).await > 0 {
            assert!(begun.elapsed() < PROMISED, "{fault:?}: the old primary lacks decisions");
            pause().await;
        }
    }
    let missing = missing(cluster.primary().await.unwrap()).await;
    let doubled = AtomicUsize::load(&answered.doubled, Ordering::Relaxed);
    let [by_balancer, by_list] = took.map(|took| took.as_secs_f64());
    let from = if fault == Fault::PatroniHung { " from Patroni's return on" } else { "" };
    figure(
        &format!("primary {fault:?}, {} answered decisions, {keyed} of them under keys", ids.len()),
        &format!(
            "{missing} missing, {doubled} twice; again after {by_balancer:.1} s (HAProxy), {by_list:.1} s (list{from})"
        ),
    );
    assert_eq!((missing, doubled), (0, 0), "{fault:?}");
    let promised = if fault == Fault::PatroniHung { PROMISED_WITHOUT_PATRONI } else { PROMISED };
    assert!(took.iter().all(|took| *took <= promised), "{fault:?}: resumed after {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_answered_is_lost_when_the_primary_fails() {
    let _machine = WHOLE_MACHINE.lock().await;
    let Some(mut cluster) = Cluster::start().await else { return };
    let nodes = Nodes::start(&cluster).await;
    let faults = [
        Fault::Killed,
        Fault::Hung,
        Fault::CutOff,
        Fault::Parted,
        Fault::SwitchedOver,
        Fault::PatroniHung,
    ];
    let faults = if times() == 1 { &faults[..1] } else { &faults[..] };
    for fault in faults {
        break_under_load(&mut cluster, &nodes, *fault).await;
    }
}
