//! Months of decisions that are archived, removed from the tables, and can still be verified and
//! replayed.

mod command_line;
mod damaged;
mod held;
mod interrupted;
mod late;
mod lists;
mod log;
mod months;
mod moved;
mod partitions;
mod personal;
mod planted;
mod reading;
mod s3;
mod shared;

use std::time::Duration;

use authority_archive::{Archiver, Parts, StepResult, offline};
use authority_evidence::verify::{Trust, key_set};
use authority_process::{clock::Clock, worker::Supervisor};
use chrono::{DateTime, Datelike, Months, TimeDelta, Utc};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Integer, Nullable},
};
use diesel_async::RunQueryDsl;
use serde_json::Value;

use crate::support::{Answered, Client, Members, TENANT, TestApp, Wishes, asking};

/// A size in bytes that no object of these tests exceeds.
const MOST: u64 = 1 << 20;

/// The demonstration tenant with decisions of a past month, and a service that runs today.
struct World {
    /// The service of that month, with a fixed clock.
    past: TestApp,
    then: Clock,
    /// The service that runs today, on the same database.
    app: TestApp,
}

/// Returns the middle of the month that was this many months ago.
fn months_ago(count: u32) -> DateTime<Utc> {
    let now = Clock::default().now() - Months::new(count);
    now.with_day(15).unwrap()
}

impl World {
    /// Starts a world in which decisions are made three months ago.
    async fn start() -> Self {
        let then = Clock::fixed(months_ago(3));
        let past = TestApp::wished(Wishes { clock: then.clone(), ..Wishes::default() }).await;
        past.demo().await;
        let app = past.beside(Wishes::default()).await;
        Self { past, then, app }
    }
}

impl World {
    fn owner(&self) -> Client {
        self.app.owner()
    }

    /// Makes this many decisions in the past month; returns their ids.
    async fn decided(&self, count: usize) -> Vec<String> {
        self.decided_by(TENANT, "svc:agent:acme:invoice-bot", count).await
    }

    async fn decided_by(&self, tenant_id: &str, subject: &str, count: usize) -> Vec<String> {
        let key = self.past.api_key(tenant_id, &["runtime:write"]).await;
        let client = self.past.client(&key);
        let mut ids = Vec::new();
        for number in 0..count {
            self.then.advance(TimeDelta::milliseconds(7));
            let ask =
                asking(f64::from(u32::try_from(number).unwrap()), "DE").with("subject", subject);
            let answer = client.evaluate(ask).await.assert_status(200);
            ids.push(answer["decision_id"].as_str().unwrap().to_owned());
        }
        ids
    }

    async fn set(&self, tenant_id: &str, body: Value) {
        self.owner().update_tenant(tenant_id, body).await.assert_status(200);
    }

    /// Returns a client of today's service with a key that reads and replays evidence.
    async fn reader(&self, tenant_id: &str) -> Client {
        let scopes = ["runtime:read", "evidence:read", "evidence:write"];
        self.app.client(&self.app.api_key(tenant_id, &scopes).await)
    }

    fn parts(&self) -> Parts {
        self.app.app.archiving.clone().unwrap()
    }

    /// Returns an archiver with small parts: a few decisions fill several of them.
    fn archiver(&self) -> Archiver {
        Archiver::new(Parts { part: 4, ..self.parts() })
    }

    /// Runs steps until a month is archived, and stops before any row is removed.
    async fn until_archived(&self) -> Archiver {
        self.leases_ended().await;
        let archiver = self.archiver();
        for _ in 0..100 {
            if archiver.step().await.unwrap() == StepResult::Archived {
                return archiver;
            }
        }
        panic!("no month is archived");
    }

    /// Ends the leases, as if a few minutes had passed.
    async fn leases_ended(&self) {
        let ended = "UPDATE archive_runs SET leased_until = now() - interval '1 second'";
        self.app.database.run(ended).await;
    }

    /// Runs steps until the archiver is idle, and returns them.
    async fn run(&self) -> Vec<StepResult> {
        steps(&self.archiver()).await
    }

    /// Simulates that a day has passed: daily usage has been counted, and stored rows are so old
    /// that they are surely committed.
    async fn counted(&self) {
        let later = "
            SET session_replication_role = replica;
            UPDATE usage_cursor SET counted_until = time_bound('svc:decision:', now());
            UPDATE decision_reports SET stored_at = stored_at - interval '1 day';
            UPDATE replay_proofs SET stored_at = stored_at - interval '1 day'";
        self.app.database.run(later).await;
    }

    async fn count(&self, table: &str, which: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            count: i64,
        }
        let mut db = self.app.database.owner().await;
        let query = format!("SELECT count(*) AS count FROM {table} WHERE {which}");
        diesel::sql_query(query).get_result::<Count>(&mut db).await.unwrap().count
    }

    /// Returns the names of the objects in the archive of the tenant's month.
    async fn objects(&self, slug: &str) -> Vec<String> {
        let listed = self.parts().bucket.list(slug).await.unwrap();
        listed.into_iter().map(|object| object.name).collect()
    }
}

/// Returns the number of decisions that the steps removed.
fn removed(done: &[StepResult]) -> i32 {
    let removed =
        done.iter().map(|step| if let StepResult::Removed(count) = step { *count } else { 0 });
    removed.sum()
}

/// Runs this archiver's steps until it is idle, and returns them.
async fn steps(archiver: &Archiver) -> Vec<StepResult> {
    let mut done = Vec::new();
    loop {
        match archiver.step().await.unwrap() {
            StepResult::Idle => return done,
            step => done.push(step),
        }
        assert!(done.len() < 1000, "{done:?}");
    }
}

impl World {
    /// Returns the month of the decisions, such as `2026-07`.
    fn month(&self) -> String {
        self.then.now().format("%Y-%m").to_string()
    }

    /// Returns the damage that `archive verify` finds in the bucket.
    async fn damages(&self) -> Vec<String> {
        let (bucket, trust) = (self.parts().bucket, self.trust().await);
        let mut damages = Vec::new();
        for found in offline::list(&bucket, &trust).await.unwrap() {
            match &found.manifest {
                Ok((manifest, _)) => {
                    let wrong = offline::inspect(&bucket, &found, manifest, &trust).await.unwrap();
                    damages.extend(wrong.iter().map(|one| format!("{}: {}", one.object, one.what)));
                }
                Err(fault) => damages.push(format!("{}: {fault}", found.name)),
            }
        }
        damages
    }

    async fn trust(&self) -> Trust {
        let (_, jwks) = self.owner().text("GET", "/.well-known/jwks.json", None).await;
        Trust { keys: Some(key_set(jwks.as_bytes()).unwrap()), log_key: None }
    }

    /// Removes rows with the service's rights, without the worker's checks; returns the number of
    /// rows, or `None` if the database refuses.
    async fn removed(&self, tenant_id: &str) -> Option<i32> {
        let month = self.month();
        self.removed_by(&format!("SELECT remove_archived('{tenant_id}', '{month}') AS removed"))
            .await
    }

    async fn removed_by(&self, query: &str) -> Option<i32> {
        #[derive(QueryableByName)]
        struct Removed {
            #[diesel(sql_type = Nullable<Integer>)]
            removed: Option<i32>,
        }
        let mut db = self.app.app.store.system().await.unwrap();
        diesel::sql_query(query).get_result::<Removed>(&mut db).await.unwrap().removed
    }

    /// Runs, once, the worker that erases contexts by age.
    async fn contexts_erased(&self) {
        let supervisor = Supervisor::default();
        let (store, clock) = (self.app.database.store(), Clock::default());
        supervisor.run([authority_registry::erase_by_age(store, clock, 730, false)]);
        while supervisor.statuses().reports()[0].since_success.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        supervisor.shutdown().cancel();
    }
}
