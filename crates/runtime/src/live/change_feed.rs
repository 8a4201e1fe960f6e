//! Changes of held decisions, for all streams on this node. There is one listener and one reader.
//!
//! A notification has the ID of an approval or a decision. The state of this approval or decision
//! is then read once for all streams that watch it. Because notifications may be lost, all watched
//! states are also read every few seconds.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use authority_model::schema::{approvals, decision_reports};
use diesel::prelude::*;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Db, Notification, RunQueryDsl, Scope, Store};

/// The channel of the notifications by the triggers of approvals and reports.
const CHANNEL: &str = "decision_news";
/// The interval at which everything is read, in addition to notifications.
const EVERY: Duration = Duration::from_secs(5);

/// The state of an approval or of a permitted decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The approval's state, or the decision's reported outcome.
    pub(super) word: String,
    /// The decision that used the approval.
    pub(super) used_by: Option<String>,
}

/// The last known state of a watched approval or decision. `None` before the first read.
pub(super) type Topic = watch::Receiver<Option<Change>>;

type Topics = Mutex<HashMap<String, watch::Sender<Option<Change>>>>;

/// The approvals and decisions watched on this node.
pub(super) struct ChangeFeed {
    topics: Arc<Topics>,
    ask: mpsc::UnboundedSender<String>,
}

impl ChangeFeed {
    /// Returns the feed and its background work.
    pub(super) fn new(store: &Store) -> (Self, Worker) {
        let topics = Arc::new(Topics::default());
        let (ask, asked) = mpsc::unbounded_channel();
        let heard = store.notifications(CHANNEL);
        let reader = Reader { topics: Arc::clone(&topics), store: store.clone(), heard, asked };
        let reader = Arc::new(tokio::sync::Mutex::new(reader));
        let worker = Worker::endless("change_feed", move |context| {
            let reader = Arc::clone(&reader);
            async move {
                reader.lock().await.run(&context).await;
                Ok::<_, store::Error>(())
            }
        });
        (Self { topics, ask }, worker.with_rounds(EVERY))
    }

    /// Watches an approval or a decision. Its state is read once after this call. Changes between
    /// the watcher's own read and this call are therefore not missed.
    pub(super) fn of(&self, id: &str) -> Topic {
        let topic = {
            let mut topics = self.topics.lock();
            let sender = topics.entry(id.to_owned()).or_insert_with(|| watch::Sender::new(None));
            sender.subscribe()
        };
        // Sending can't fail, because the reader exists longer than this value.
        let _ = self.ask.send(id.to_owned());
        topic
    }
}

/// Reads the states for all watchers.
struct Reader {
    topics: Arc<Topics>,
    store: Store,
    heard: ReceiverStream<Notification>,
    asked: mpsc::UnboundedReceiver<String>,
}

impl Reader {
    /// Reads all states first, because a run that panicked may have missed changes. Then reads the
    /// states to which notifications refer.
    async fn run(&mut self, context: &Context) {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut named = BTreeSet::new();
            let mut all = false;
            tokio::select! {
                () = context.stopped() => return,
                Some(id) = self.asked.recv() => all |= name(Notification::Received(id), &mut named),
                Some(heard) = self.heard.next() => all |= name(heard, &mut named),
                _ = tick.tick() => all = true,
            }
            // Requests and notifications that arrived in the meantime are handled in the same read.
            while let Ok(id) = self.asked.try_recv() {
                named.insert(id);
            }
            while let Some(Some(heard)) = self.heard.next().now_or_never() {
                all |= name(heard, &mut named);
            }
            let wanted = self.wanted(named, all);
            // If this fails, everything is read again in a few seconds.
            let _ = context.round(self.read(wanted)).await;
        }
    }

    /// Returns the IDs in `named` that are watched, or all watched IDs.
    fn wanted(&self, named: BTreeSet<String>, all: bool) -> Vec<String> {
        let mut topics = self.topics.lock();
        if all {
            topics.retain(|_, topic| topic.receiver_count() > 0);
            return topics.keys().cloned().collect();
        }
        named.into_iter().filter(|id| topics.contains_key(id)).collect()
    }

    async fn read(&self, ids: Vec<String>) -> Result<(), store::Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let scope = Scope::service();
        let found = self
            .store
            .read_tx(&scope, async move |db| Ok::<_, store::Error>(changes(db, &ids).await?));
        let found = found.await?;
        let topics = self.topics.lock();
        for (id, said) in found {
            let Some(topic) = topics.get(&id) else { continue };
            topic.send_if_modified(|known| {
                let is_new = known.as_ref() != Some(&said);
                *known = Some(said);
                is_new
            });
        }
        Ok(())
    }
}

/// Adds the ID in a notification. Returns whether everything must be read.
fn name(heard: Notification, named: &mut BTreeSet<String>) -> bool {
    match heard {
        Notification::Received(id) => {
            named.insert(id);
            false
        }
        Notification::Listening => true,
    }
}

/// Reads the states of these approvals and decisions.
pub(super) async fn changes(db: &mut Db, ids: &[String]) -> QueryResult<BTreeMap<String, Change>> {
    let states: Vec<(String, String, Option<String>)> = approvals::table
        .filter(approvals::id.eq_any(ids))
        .select((approvals::id, approvals::state, approvals::used_by))
        .load(db)
        .await?;
    let outcomes: Vec<(String, String)> = decision_reports::table
        .filter(decision_reports::decision_id.eq_any(ids))
        .select((decision_reports::decision_id, decision_reports::outcome))
        .load(db)
        .await?;
    let states = states.into_iter().map(|(id, word, used_by)| (id, Change { word, used_by }));
    let outcomes = outcomes.into_iter().map(|(id, word)| (id, Change { word, used_by: None }));
    Ok(states.chain(outcomes).collect())
}
