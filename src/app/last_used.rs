//! When API keys were last used: kept in memory by identity, written now and then, never by a call.

use std::{sync::Arc, time::Duration};

use authority_model::schema::api_keys;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use crate::{
    identity::LastUsed,
    store::{Error, Scope, Store},
};

const EVERY: Duration = Duration::from_secs(30);

/// Writes what was noted since. Never returns.
pub(super) async fn keep(used: Arc<LastUsed>, store: Store) {
    loop {
        tokio::time::sleep(EVERY).await;
        let noted = used.drain();
        if noted.is_empty() {
            continue;
        }
        let scope = Scope { tenant: None, actor: "service".to_owned() };
        let written = store.act(&scope, async move |db| {
            for (id, at) in noted {
                diesel::update(api_keys::table.find(&*id))
                    .set(api_keys::last_used_at.eq(at))
                    .execute(db)
                    .await?;
            }
            Ok::<_, Error>(())
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "cannot write when API keys were last used");
        }
    }
}
