//! Registers that a stream needs events of on-demand types. These are created only while a receiver
//! selects them.
//!
//! The registration is a row of `event_demands`, which is part of the tenant's authority: decisions
//! made after its commit create the events. The node with the stream renews the row. If the node
//! dies, the row expires.

use std::time::Duration;

use authority_ids::{RecordId, TenantId};
use authority_model::schema::event_demands;
use chrono::TimeDelta;
use diesel::{dsl::now, prelude::*, sql_types::Timestamptz};
use tokio_util::sync::{CancellationToken, DropGuard};

use authority_process::worker::Worker;
use authority_store::{self as store, RunQueryDsl, Scope, Store, new_id};

/// How long a row is valid without renewal.
const LASTS: TimeDelta = TimeDelta::minutes(2);
const RENEW: Duration = Duration::from_secs(30);

/// A stream's registration. Dropping it ends the registration.
pub(crate) struct Demand(
    #[expect(dead_code, reason = "ends the demand when it is dropped")] DropGuard,
);

impl Demand {
    /// Registers the stream's on-demand types and returns once the row is committed.
    pub(crate) async fn open(
        store: &Store,
        tenant_id: &TenantId,
        event_types: Vec<&'static str>,
    ) -> Result<Self, store::Error> {
        let id = String::from(RecordId::new("event_stream", new_id()));
        let row = (
            event_demands::id.eq(id.clone()),
            event_demands::tenant_id.eq(String::from(tenant_id)),
            event_demands::event_types.eq(event_types),
            event_demands::until.eq((now.into_sql::<Timestamptz>() + LASTS).nullable()),
        );
        let scope = Scope::service();
        let insert = diesel::insert_into(event_demands::table).values(row);
        store
            .write_tx(&scope, async move |db| Ok::<_, store::Error>(insert.execute(db).await?))
            .await?;
        let ended = CancellationToken::new();
        tokio::spawn(hold(store.clone(), id, ended.clone()));
        Ok(Self(ended.drop_guard()))
    }
}

/// Renews the row until the registration ends, and then deletes it.
async fn hold(store: Store, id: String, ended: CancellationToken) {
    let scope = Scope::service();
    while tokio::time::timeout(RENEW, ended.cancelled()).await.is_err() {
        let row = event_demands::table.find(id.clone());
        let until = (now.into_sql::<Timestamptz>() + LASTS).nullable();
        let renew = diesel::update(row).set(event_demands::until.eq(until));
        let renewed =
            store.write_tx(&scope, async move |db| Ok::<_, store::Error>(renew.execute(db).await?));
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "failed to renew a stream's demand");
        }
    }
    let delete = diesel::delete(event_demands::table.find(id));
    let deleted =
        store.write_tx(&scope, async move |db| Ok::<_, store::Error>(delete.execute(db).await?));
    if let Err(error) = deleted.await {
        tracing::warn!(%error, "failed to delete a stream's demand; it will expire");
    }
}

/// Deletes expired rows.
pub(crate) fn sweep(store: Store) -> Worker {
    Worker::periodic("event_demands", RENEW, move || {
        let store = store.clone();
        async move {
            let old = event_demands::table
                .filter(event_demands::until.lt(now.into_sql::<Timestamptz>().nullable()));
            let scope = Scope::service();
            let swept = store.write_tx(&scope, async move |db| {
                Ok::<_, store::Error>(diesel::delete(old).execute(db).await?)
            });
            swept.await.map(drop)
        }
    })
}
