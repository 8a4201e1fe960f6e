//! Reads pages of decisions with their evidence, for archiving. Seals unsealed decisions first.

use std::sync::Arc;

use authority_archive::{Evidence, Page, ReadEvidence};
use authority_evidence::bundle;
use authority_ids::ApprovalRef;
use authority_keys::Keys;
use authority_ledger::{
    stored_decisions::{self, Stored},
    stored_packs::{self, StoredPack},
};
use authority_model::schema::decisions;
use authority_store::{RunQueryDsl, Scope};
use diesel::prelude::*;
use futures_util::FutureExt;

use super::{Error, Transparency, seal::Packs, service::whole};

/// A page's decisions in the order of ids, held ones with the id of their approval request.
type Decisions = Vec<(Stored, Option<String>)>;

impl Transparency {
    /// Returns the function that reads pages of decisions with their evidence.
    pub fn pages(&self) -> ReadEvidence {
        let this = self.clone();
        Arc::new(move |page| {
            let this = this.clone();
            async move { Ok(this.page(page).await?) }.boxed()
        })
    }

    async fn page(&self, page: Page) -> Result<Vec<Evidence>, Error> {
        let (decisions, mut packs) = self.stored_page(page.clone()).await?;
        let Some((last, _)) = decisions.last() else { return Ok(Vec::new()) };
        if packs.len() < decisions.len() {
            let most = i64::try_from(page.most).unwrap_or(i64::MAX);
            let mut leaves = self.0.logs.open(&page.tenant_id, page.after, most).await?;
            leaves.list.retain(|leaf| leaf.decision_id <= last.id);
            packs.extend(self.0.logs.seal_leaves(&page.tenant_id, leaves).await?);
        }
        let keys = self.0.keys.clone();
        let make = move || {
            let evidence = decisions.into_iter().map(|(stored, approval_id)| {
                let unsealed = || Error::NotSealed(stored.id.clone().into());
                let pack = packs.remove(&stored.id).ok_or_else(unsealed)??;
                evidence(&keys, pack, &stored, approval_id.map(ApprovalRef::from))
            });
            evidence.collect()
        };
        // Parsing and writing the texts of a page can take long.
        let made = tokio::task::spawn_blocking(make).await;
        made.map_err(|crash| Error::Unreadable(crash.to_string()))?
    }

    async fn stored_page(&self, page: Page) -> Result<(Decisions, Packs), Error> {
        let keys = self.0.keys.clone();
        let read = self.0.store.read_tx(&Scope::service(), async move |db| {
            let most = i64::try_from(page.most).unwrap_or(i64::MAX);
            let found: Vec<(stored_decisions::DecisionRow, Option<String>)> = decisions::table
                .filter(decisions::tenant_id.eq(page.tenant_id.as_str()))
                .filter(decisions::id.gt(page.after).and(decisions::id.lt(page.before)))
                .order(decisions::id)
                .limit(most)
                .select((stored_decisions::DecisionRow::as_select(), decisions::approval_id))
                .load(db)
                .await?;
            let (rows, approvals): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            let ids = rows.iter().map(|row| row.id.as_str());
            let packs = stored_packs::page(db, &keys, Some(&page.tenant_id), ids).await?;
            let stored = stored_decisions::complete(db, rows).await?;
            Ok::<_, Error>((stored.into_iter().zip(approvals).collect(), packs))
        });
        read.await
    }
}

fn evidence(
    keys: &Keys,
    pack: StoredPack,
    stored: &Stored,
    approval_id: Option<ApprovalRef>,
) -> Result<Evidence, Error> {
    let pack = pack.text()?;
    let is_whole = stored.sealed.is_whole();
    let bundle = is_whole.then(|| whole(keys, &pack, stored)).transpose()?;
    let remains = (!is_whole).then(|| bundle::remains(&stored.sealed)).transpose()?;
    Ok(Evidence { decision_id: stored.id.clone(), approval_id, pack, bundle, remains })
}
