//! An approval permits one decision, however many calls use it: with keys of their own or with one
//! key, by several operations and nodes, and after calls that got no answer.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{approved, citing, demo};
use crate::support::{
    BATCH_EVALUATE, Client, EVALUATE, EVALUATE_DECISION, TENANT, TestApp, Wishes, asking,
};

const WAITERS: usize = 50;
/// How long a call is repeated.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ends every other connection to the database.
const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid() \
                   AND backend_type = 'client backend'";

/// A caller of one operation, with the idempotency key of its call.
struct Waiter {
    node: Client,
    path: &'static str,
    body: Value,
    key: String,
}

impl Waiter {
    fn new(node: &Client, (path, body): (&'static str, Value), key: String) -> Self {
        Self { node: node.clone(), path, body, key }
    }

    async fn call(&self) -> (u16, Value) {
        let headers = [("idempotency-key", self.key.as_str())];
        self.node.call("POST", self.path, Some(self.body.clone()), &headers).await
    }

    /// Repeats the call until it is answered. Returns the decisions that permit.
    async fn permitted(&self) -> BTreeSet<String> {
        let begun = Instant::now();
        loop {
            let (status, answer) = self.call().await;
            let items: Vec<&Value> = match answer["results"].as_array() {
                Some(results) => results.iter().map(|result| &result["answer"]).collect(),
                None => vec![&answer],
            };
            if status == 200 && items.iter().all(|item| item["decision_id"].is_string()) {
                let permits =
                    |item: &&&Value| item["decision"].as_str().unwrap().starts_with("allow");
                let id = |item: &&Value| item["decision_id"].as_str().unwrap().to_owned();
                return items.iter().filter(permits).map(id).collect();
            }
            assert!([0, 200, 409, 503].contains(&status), "{status}: {answer:#}");
            assert!(begun.elapsed() < PATIENCE, "{status}: {answer:#}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Makes the calls at the same time. Returns the decisions that permit.
async fn permitted(waiters: &[Waiter]) -> BTreeSet<String> {
    join_all(waiters.iter().map(Waiter::permitted)).await.into_iter().flatten().collect()
}

/// Returns the decisions that the service recorded as permitted by the approval. Checks that the
/// approval records one of these decisions.
async fn recorded(app: &TestApp, id: &str) -> BTreeSet<String> {
    let owner = app.owner();
    let get = async |path: String| {
        let begun = Instant::now();
        loop {
            let (status, answer) = owner.get(&path).await;
            if status == 200 {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{status}: {answer:#}");
            sleep(Duration::from_millis(50)).await;
        }
    };
    let listed =
        get(format!("/api/v1/decisions?tenant_id={TENANT}&decision=allow&limit=500")).await;
    let listed = listed["decisions"].as_array().unwrap().iter();
    let own = listed.filter(|decision| decision["approval_id"] == json!(id));
    let own: BTreeSet<String> =
        own.map(|decision| decision["decision_id"].as_str().unwrap().to_owned()).collect();
    let approval = get(format!("/api/v1/approvals/{id}")).await["approval"].clone();
    assert_eq!(approval["state"], "used", "{approval:#}");
    assert!(own.contains(approval["used_by"].as_str().unwrap()), "{approval:#}");
    own
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_with_their_own_keys_get_one_permission() {
    let (app, client, _) = demo().await;
    let beside = app.beside(Wishes::default()).await;
    let nodes = [&client, &beside.client(&client.token)];
    let ask = asking(25_000.0, "DE");
    let id = approved(&app, &client, &ask).await;
    let cited = citing(&ask, &id);
    // The tenant lets requests use a ready approval that they do not cite.
    let calls = [
        (EVALUATE, cited.clone()),
        (EVALUATE, ask),
        (EVALUATE_DECISION, cited.clone()),
        (BATCH_EVALUATE, json!({"requests": [cited, cited]})),
    ];
    let waiters: Vec<Waiter> = (0..WAITERS)
        .map(|number| {
            let node = nodes[number / calls.len() % nodes.len()];
            Waiter::new(node, calls[number % calls.len()].clone(), format!("waiter-{number}"))
        })
        .collect();
    let first = permitted(&waiters).await;
    assert_eq!(first.len(), 1, "{first:#?}");
    assert_eq!(recorded(&app, &id).await, first);
    // Each call gets its own answer again, also from the other node.
    let moved = waiters.into_iter().enumerate().map(|(number, waiter)| {
        let node = nodes[(number / calls.len() + 1) % nodes.len()].clone();
        Waiter { node, ..waiter }
    });
    let moved: Vec<Waiter> = moved.collect();
    assert_eq!(permitted(&moved).await, first);
    assert_eq!(recorded(&app, &id).await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_with_one_key_get_the_same_permission() {
    let (app, client, _) = demo().await;
    let beside = app.beside(Wishes::default()).await;
    let nodes = [&client, &beside.client(&client.token)];
    let ask = asking(25_000.0, "DE");
    let id = approved(&app, &client, &ask).await;
    let waiters = (0..WAITERS).map(|number| {
        let node = nodes[number % nodes.len()];
        Waiter::new(node, (EVALUATE, citing(&ask, &id)), "one".to_owned())
    });
    let waiters: Vec<Waiter> = waiters.collect();
    let first = permitted(&waiters).await;
    assert_eq!(first.len(), 1, "{first:#?}");
    for waiter in &waiters {
        assert_eq!(waiter.permitted().await, first);
    }
    assert_eq!(recorded(&app, &id).await, first);
}

/// Callers give up in every stage of the decision, and repeat the call with its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_were_given_up_get_one_permission() {
    let (app, client, _) = demo().await;
    for round in 0..4_u32 {
        let ask = asking(25_000.0 + f64::from(round), "DE");
        let id = approved(&app, &client, &ask).await;
        let waiter = |number: usize| {
            let key = format!("waiter-{round}-{number}");
            Waiter::new(&client, (EVALUATE, citing(&ask, &id)), key)
        };
        let waiters: Vec<Waiter> = (0..WAITERS).map(waiter).collect();
        let given_up = waiters.iter().zip(0..).map(|(waiter, millis)| async move {
            timeout(Duration::from_millis(millis), waiter.call()).await.is_err()
        });
        let given_up = join_all(given_up).await.into_iter().filter(|given_up| *given_up).count();
        assert!(given_up > 0);
        let first = permitted(&waiters).await;
        assert_eq!(first.len(), 1, "{given_up} given up: {first:#?}");
        let later: Vec<Waiter> = (WAITERS..WAITERS + 5).map(waiter).collect();
        assert_eq!(permitted(&later).await, BTreeSet::new());
        assert_eq!(recorded(&app, &id).await, first);
    }
}

/// If the connection is cut during a commit, the service can't know whether the commit succeeded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_spent_once_when_connections_are_cut() {
    let (app, client, _) = demo().await;
    let mut approvals = Vec::new();
    for round in 0..8_u32 {
        let ask = asking(25_000.0 + f64::from(round), "DE");
        let id = approved(&app, &client, &ask).await;
        approvals.push((round, ask, id));
    }
    for (round, ask, id) in approvals {
        let waiters = (0..20).map(|number| {
            let key = format!("waiter-{round}-{number}");
            Waiter::new(&client, (EVALUATE, citing(&ask, &id)), key)
        });
        let waiters: Vec<Waiter> = waiters.collect();
        let cut = async {
            sleep(Duration::from_millis(4) * round).await;
            app.database.run(CUT).await;
        };
        let (first, ()) = tokio::join!(permitted(&waiters), cut);
        assert_eq!(first.len(), 1, "round {round}: {first:#?}");
        assert_eq!(recorded(&app, &id).await, first, "round {round}");
    }
}
