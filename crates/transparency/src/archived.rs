//! Reads sealed decisions from the tables or, if they were archived, from the archive.

use authority_api::identity::Caller;
use authority_archive::Archived;
use authority_ids::DecisionId;
use authority_ledger::{
    stored_decisions::{self, Stored},
    stored_packs::{self, Altered},
};

use super::{Error, Transparency};

/// A pack's text, or the error if the stored pack was altered.
pub(super) type Pack = Result<String, Altered>;

impl Transparency {
    /// Returns the archived decision, if the caller may see it.
    pub(super) async fn archived(
        &self,
        caller: &Caller,
        id: &DecisionId,
    ) -> Result<Option<Archived>, Error> {
        let Some(archived) = self.0.archives.find(&caller.scope(), id).await? else {
            return Ok(None);
        };
        let is_theirs = caller.acts_for(&archived.summary()?.subject);
        Ok(Some(archived).filter(|_| is_theirs))
    }

    /// Returns the pack of the archived decision.
    pub(super) async fn archived_pack(
        &self,
        caller: &Caller,
        id: &DecisionId,
    ) -> Result<Option<String>, Error> {
        let Some(archived) = self.archived(caller, id).await? else { return Ok(None) };
        Ok(Some(archived.pack()?.to_owned()))
    }

    /// Returns the decision and its pack, from the tables or the archive.
    pub(super) async fn basis(
        &self,
        caller: &Caller,
        id: &DecisionId,
    ) -> Result<(Stored, Pack), Error> {
        if self.is_shown(caller, id).await? {
            let (scope, of) = (caller.scope(), id.clone());
            let (within, keys) = (scope.tenant.clone(), self.0.keys.clone());
            let read = self.0.store.read_tx(&scope, async move |db| {
                let Some(stored) = stored_decisions::one(db, within.as_ref(), &of).await? else {
                    return Ok(None);
                };
                let pack = stored_packs::one(db, &keys, within.as_ref(), &of).await?;
                let pack = pack.ok_or_else(|| Error::NotSealed(of.to_string()))?;
                let pack = match pack {
                    Ok(pack) => Ok(pack.text()?),
                    Err(altered) => Err(altered),
                };
                Ok::<_, Error>(Some((stored, pack)))
            });
            if let Some(basis) = read.await? {
                return Ok(basis);
            }
        }
        let missing = || Error::NotFound("decision", id.to_string());
        let archived = self.archived(caller, id).await?.ok_or_else(missing)?;
        Ok((archived.stored()?, Ok(archived.pack()?.to_owned())))
    }
}
