//! Performs the relay's actions: reads and writes messages, calls the service, keeps the journal.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader},
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::{AbortHandle, JoinSet, spawn_blocking},
    time::{MissedTickBehavior, interval, timeout},
};

use crate::mcp::{
    clock::Moment,
    event::{Action, CallId, Event, Outcome},
    journal::{Journal, left},
    lines,
    question::ResourceName,
    relay::Relay,
    service::Service,
    watch,
};

const TICK: Duration = Duration::from_millis(250);
/// How long the last reports may take when the client or the server has ended.
const LAST_REPORTS: Duration = Duration::from_secs(5);

/// The streams of one side.
pub(crate) struct Streams<R, W> {
    pub(crate) from: R,
    pub(crate) to: W,
}

/// Who ended the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Client,
    Server,
}

/// Relays messages until one side ends. `kill` is notified if the server has to be ended.
pub(crate) async fn run<CR, CW, SR, SW>(
    mut relay: Relay,
    service: Arc<Service>,
    client: Streams<CR, CW>,
    server: Streams<SR, SW>,
    folder: Option<PathBuf>,
    kill: Arc<Notify>,
) -> Ended
where
    CR: AsyncRead + Unpin + Send + 'static,
    CW: AsyncWrite + Unpin + Send + 'static,
    SR: AsyncRead + Unpin + Send + 'static,
    SW: AsyncWrite + Unpin + Send + 'static,
{
    let began = Moment::now();
    let (events, mut incoming) = unbounded_channel();
    let (to_client, client_lines) = unbounded_channel();
    let (to_server, server_lines) = unbounded_channel();
    let client_written = tokio::spawn(lines::write(client.to, client_lines));
    tokio::spawn(lines::write(server.to, server_lines));
    tokio::spawn(read(client.from, events.clone(), Event::Client, || Event::ClientGone));
    tokio::spawn(read(server.from, events.clone(), Event::Server, || Event::ServerGone));
    let mut runner = Runner::new(service, events, to_client, to_server, folder, kill);
    runner.report_left();
    // The server's introduction is compared with the record.
    let record = runner.service.record().await.map(Box::new);
    for action in relay.handle(Event::Record(record), began.elapsed()) {
        runner.perform(action);
    }
    let ended = runner.until_end(&mut relay, &mut incoming, began).await;
    let _ = timeout(LAST_REPORTS, finished(&mut runner.reports)).await;
    // Permissions that came meanwhile are reported as not used.
    while let Ok(event) = incoming.try_recv() {
        if matches!(event, Event::Decided(..)) {
            for action in relay.handle(event, began.elapsed()) {
                runner.perform(action);
            }
        }
    }
    let _ = timeout(LAST_REPORTS, finished(&mut runner.reports)).await;
    drop(runner);
    let _ = timeout(LAST_REPORTS, client_written).await;
    ended
}

async fn read(
    from: impl AsyncRead + Unpin,
    events: UnboundedSender<Event>,
    line: fn(Vec<u8>) -> Event,
    end: fn() -> Event,
) {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    while let Some(read) = lines::next(&mut from).await {
        if events.send(line(read)).is_err() {
            return;
        }
    }
    let _ = events.send(end());
}

async fn finished(reports: &mut JoinSet<()>) {
    while reports.join_next().await.is_some() {}
}

struct Runner {
    service: Arc<Service>,
    events: UnboundedSender<Event>,
    to_client: UnboundedSender<Vec<u8>>,
    to_server: UnboundedSender<Vec<u8>>,
    folder: Option<PathBuf>,
    /// Or why there is none.
    journal: Arc<Mutex<Result<Journal, String>>>,
    reports: JoinSet<()>,
    /// The streams of each call.
    streams: HashMap<CallId, Vec<AbortHandle>>,
    kill: Arc<Notify>,
}

impl Runner {
    fn new(
        service: Arc<Service>,
        events: UnboundedSender<Event>,
        to_client: UnboundedSender<Vec<u8>>,
        to_server: UnboundedSender<Vec<u8>>,
        folder: Option<PathBuf>,
        kill: Arc<Notify>,
    ) -> Self {
        let unset = || "set XDG_CONFIG_HOME or HOME to a folder".to_owned();
        let journal = folder.as_ref().ok_or_else(unset).and_then(|folder| {
            Journal::create(folder).map_err(|why| format!("{}: {why}", folder.display()))
        });
        if let Err(why) = &journal {
            warn(&format!(
                "outcomes can't be kept for a restart, calls that people approved are denied: {why}"
            ));
        }
        let journal = Arc::new(Mutex::new(journal));
        let (reports, streams) = (JoinSet::new(), HashMap::new());
        Self { service, events, to_client, to_server, folder, journal, reports, streams, kill }
    }

    async fn until_end(
        &mut self,
        relay: &mut Relay,
        incoming: &mut UnboundedReceiver<Event>,
        began: Moment,
    ) -> Ended {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = tokio::select! {
                event = incoming.recv() => event.unwrap_or(Event::ClientGone),
                _ = ticks.tick() => Event::Tick,
                Some(_) = self.reports.join_next() => continue,
            };
            let ended = match event {
                Event::ClientGone => Some(Ended::Client),
                Event::ServerGone => Some(Ended::Server),
                _ => None,
            };
            for action in relay.handle(event, began.elapsed()) {
                self.perform(action);
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            // A side that no longer reads also ends its own stream, which is an event.
            Action::ToClient(line) => drop(self.to_client.send(line)),
            Action::ToServer(line) => drop(self.to_server.send(line)),
            Action::LoadRecord => self.load_record(),
            Action::LoadGrants => self.load_grants(),
            Action::LookUp { call, named } => self.look_up(call, named),
            Action::Ask { call, question, key } => self.ask(call, question, key),
            Action::Watch { call, decision_id } => self.watch(call, decision_id),
            Action::Follow { call, decision_id } => self.follow(call, decision_id),
            Action::Forget(call) => {
                let streams = self.streams.remove(&call).unwrap_or_default();
                streams.iter().for_each(AbortHandle::abort);
            }
            Action::Begin { call, decision_id, is_approved } => {
                self.begin(call, &decision_id, is_approved);
            }
            Action::Report { decision_id, outcome, detail } => {
                self.report(decision_id, outcome, detail);
            }
            Action::Observe(definitions) => {
                let service = Arc::clone(&self.service);
                tokio::spawn(async move {
                    if let Err(why) = service.observe(&definitions).await {
                        warn(&format!("changed definitions can't be reported: {why}"));
                    }
                });
            }
            Action::Warn(message) => warn(&message),
            Action::Kill(after) => {
                let kill = Arc::clone(&self.kill);
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    kill.notify_one();
                });
            }
        }
    }

    fn load_record(&self) {
        let (service, events) = (Arc::clone(&self.service), self.events.clone());
        tokio::spawn(async move {
            let read = service.record().await.map(Box::new);
            let _ = events.send(Event::Record(read));
        });
    }

    fn load_grants(&self) {
        let (service, events) = (Arc::clone(&self.service), self.events.clone());
        tokio::spawn(async move { events.send(Event::Grants(service.grants().await)) });
    }

    fn look_up(&self, call: CallId, named: ResourceName) {
        let (service, events) = (Arc::clone(&self.service), self.events.clone());
        tokio::spawn(async move {
            let found = service.resource(&named).await;
            let _ = events.send(Event::Resource(call, found));
        });
    }

    fn ask(&mut self, call: CallId, question: serde_json::Value, key: String) {
        let (service, events) = (Arc::clone(&self.service), self.events.clone());
        self.reports.spawn(async move {
            let decided = service.decide(&question, &key).await;
            let is_late = decided.is_err();
            let _ = events.send(Event::Decided(call, decided));
            if !is_late {
                return;
            }
            // The decision may exist. If it permits, it is reported as not used.
            if let Some(decision_id) = service.late_decision(&question, &key).await {
                let detail = "the decision came too late";
                let _ = service.report(&decision_id, Outcome::Abandoned, detail).await;
            }
        });
    }

    fn watch(&mut self, call: CallId, decision_id: String) {
        let (service, events) = (Arc::clone(&self.service), self.events.clone());
        let task = tokio::spawn(async move {
            watch::stop_conditions(&service, call, &decision_id, &events).await;
        });
        self.streams.entry(call).or_default().push(task.abort_handle());
    }

    fn follow(&mut self, call: CallId, decision_id: String) {
        let (service, events) = (Arc::clone(&self.service), self.events.clone());
        let task = tokio::spawn(async move {
            watch::approval(&service, call, &decision_id, &events).await;
        });
        self.streams.entry(call).or_default().push(task.abort_handle());
    }

    /// Waits for the disk on another thread. This thread can then notice the end of the permission.
    fn begin(&self, call: CallId, decision_id: &str, is_approved: bool) {
        let events = self.events.clone();
        let begun = move |begun: Result<(), String>| drop(events.send(Event::Begun(call, begun)));
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = match journal.as_mut() {
            Ok(journal) => journal,
            Err(why) if is_approved => return begun(Err(why.clone())),
            // The command has warned of it.
            Err(_) => return begun(Ok(())),
        };
        let written = journal.begin(decision_id);
        match written.and_then(|()| is_approved.then(|| journal.sync()).transpose()) {
            Ok(Some(sync)) => {
                spawn_blocking(move || begun(sync().map_err(|error| error.to_string())));
            }
            Ok(None) => begun(Ok(())),
            Err(error) => begun(Err(error.to_string())),
        }
    }

    fn report(&mut self, decision_id: String, outcome: Outcome, detail: String) {
        let (service, journal) = (Arc::clone(&self.service), Arc::clone(&self.journal));
        self.reports.spawn(async move {
            if let Err(why) = service.report(&decision_id, outcome, &detail).await {
                return warn(&format!("the outcome of {decision_id} is not reported: {why}"));
            }
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            let done = journal.as_mut().map_or(Ok(()), |journal| journal.reported(&decision_id));
            done.unwrap_or_else(|why| warn(&format!("the journal can't be written: {why}")));
        });
    }

    /// Reports the actions of crashed processes.
    fn report_left(&mut self) {
        let Some(folder) = &self.folder else { return };
        for found in left(folder) {
            let service = Arc::clone(&self.service);
            self.reports.spawn(async move {
                for decision_id in &found.decisions {
                    let detail = "outcome unknown: the gateway ended before the call did";
                    if let Err(why) = service.report(decision_id, Outcome::Failed, detail).await {
                        return warn(&format!(
                            "the outcome of {decision_id} is not reported: {why}"
                        ));
                    }
                }
                found.remove();
            });
        }
    }
}

/// Writes a message for the person who runs the command. Standard output has the messages of MCP.
fn warn(message: &str) {
    eprintln!("agent-authority: {}", crate::mcp::text::Shown(message));
}
