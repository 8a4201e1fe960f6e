//! A stream's demand for events that exist only while someone takes them.
//!
//! Its row is part of the tenant's authority, so that every decision after it has its event. Who holds the
//! row renews it; the row of a node that died ends by itself.

use std::time::Duration;

use authority_ids::TenantId;
use authority_model::schema::event_demands;
use chrono::TimeDelta;
use diesel::{dsl::now, prelude::*, sql_types::Timestamptz};
use tokio_util::sync::{CancellationToken, DropGuard};

use authority_core::{
    store::{self, RunQueryDsl, Scope, Store, new_id},
    worker::Worker,
};

/// How long a row lasts without being renewed.
const LASTS: TimeDelta = TimeDelta::minutes(2);
const RENEW: Duration = Duration::from_secs(30);

/// Holds a demand until it is dropped.
pub(crate) struct Demand(
    #[expect(dead_code, reason = "ends the demand when it is dropped")] DropGuard,
);

impl Demand {
    /// Returns when the demand is committed.
    pub(crate) async fn open(
        store: &Store,
        tenant_id: &TenantId,
        event_types: Vec<&'static str>,
    ) -> Result<Self, store::Error> {
        let id = format!("svc:event_stream:{}", new_id());
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

/// Renews the row until the demand has ended, and then deletes it.
async fn hold(store: Store, id: String, ended: CancellationToken) {
    let scope = Scope::service();
    while tokio::time::timeout(RENEW, ended.cancelled()).await.is_err() {
        let row = event_demands::table.find(id.clone());
        let until = (now.into_sql::<Timestamptz>() + LASTS).nullable();
        let renew = diesel::update(row).set(event_demands::until.eq(until));
        let renewed =
            store.write_tx(&scope, async move |db| Ok::<_, store::Error>(renew.execute(db).await?));
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "cannot renew a stream's demand");
        }
    }
    let delete = diesel::delete(event_demands::table.find(id));
    let deleted =
        store.write_tx(&scope, async move |db| Ok::<_, store::Error>(delete.execute(db).await?));
    if let Err(error) = deleted.await {
        tracing::warn!(%error, "a stream's demand stays until it ends by itself");
    }
}

/// Deletes the rows that nobody renews.
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
