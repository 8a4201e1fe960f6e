//! Tenants that have every decision sealed: soon after it was made, without anybody asking.

use std::{collections::HashMap, time::Duration};

use authority_model::schema::tenants;
use chrono::TimeDelta;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text},
};
use diesel_async::RunQueryDsl;
use futures_util::future::join_all;

use super::{Error, Proof};
use crate::store::Scope;

const EVERY: Duration = Duration::from_secs(1);
/// How many are looked for at a time.
const PAGE: i64 = 2048;
/// A decision is committed this long after its time at the latest.
const LATEST: TimeDelta = TimeDelta::minutes(10);

/// Seals for them, for ever.
pub async fn seal_by_themselves(proof: Proof) {
    // Where to go on looking, by tenant.
    let mut seen = HashMap::new();
    loop {
        match proof.seal_open(&mut seen).await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(EVERY).await,
            Err(error) => {
                tracing::warn!(%error, "cannot seal by itself");
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

#[derive(QueryableByName)]
struct Open {
    #[diesel(sql_type = Text)]
    id: String,
}

impl Proof {
    /// Seals a page of each tenant's open decisions; whether there may be more.
    async fn seal_open(&self, seen: &mut HashMap<String, String>) -> Result<bool, Error> {
        let scope = Scope::service();
        let tenants: Vec<String> = self
            .0
            .store
            .read(&scope, async move |db| {
                let sealing = tenants::table
                    .filter(tenants::auto_seal.and(tenants::deleted_at.is_null()))
                    .select(tenants::id);
                Ok::<_, Error>(sealing.load(db).await?)
            })
            .await?;
        let before = (self.0.clock.now() - LATEST).timestamp_millis().max(0);
        let settled = format!("svc:decision:{before:012x}");
        let mut more = false;
        for tenant_id in tenants {
            let from = seen.get(&tenant_id).cloned().unwrap_or_default();
            let of = tenant_id.clone();
            let open: Vec<String> = self
                .0
                .store
                .read(&scope, async move |db| {
                    let open: Vec<Open> = diesel::sql_query(
                        "SELECT d.id FROM decisions d WHERE d.tenant_id = $1 AND d.id > $2 \
                         AND NOT EXISTS (SELECT FROM evidence_packs p WHERE p.decision_id = d.id) \
                         ORDER BY d.id LIMIT $3",
                    )
                    .bind::<Text, _>(of)
                    .bind::<Text, _>(from)
                    .bind::<BigInt, _>(PAGE)
                    .load(db)
                    .await?;
                    Ok::<_, Error>(open.into_iter().map(|open| open.id).collect())
                })
                .await?;
            // A full page: go on behind it. Else look once more at what may still be committed.
            let full = i64::try_from(open.len()).is_ok_and(|found| found == PAGE);
            let last = open.last().cloned().unwrap_or_default();
            let sealed = open.into_iter().map(|id| self.seal(id, None));
            let sealed: Result<Vec<_>, _> = join_all(sealed).await.into_iter().collect();
            if let Err(error) = sealed {
                // Its log cannot go on: the others' can.
                tracing::warn!(%error, tenant = tenant_id, "cannot seal by itself");
                continue;
            }
            more |= full;
            seen.insert(tenant_id, if full { last } else { settled.clone() });
        }
        Ok(more)
    }
}
