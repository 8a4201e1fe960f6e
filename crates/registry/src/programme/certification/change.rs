//! Changes a certification: revokes it or changes its end.

use authority_crypto::Signer;
use authority_model::{
    proto::programme::{Certification, CertificationChange, UpdateCertificationRequest},
    schema::certifications,
    validate::{Validate, Violations},
    wire::FieldMask,
};
use std::sync::Arc;

use super::{
    lapse,
    signed::{self, ISSUER},
};
use crate::flow::{
    operations::{admit, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

/// The request field that violations refer to.
const FIELD: &str = "change";

impl Registry {
    pub(super) async fn change_certification(
        &self,
        call: Request<UpdateCertificationRequest>,
    ) -> Reply<Certification> {
        let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
        let (caller, request, mut faults) = admit(call)?;
        let UpdateCertificationRequest { id, change, update_mask } = request;
        let (change, mask) = (change.unwrap_or_default(), update_mask.unwrap_or_default());
        faults.within(FIELD, |faults| examine(&change, &mask, faults));
        Error::unless_clean(faults)?;
        let names = |member: &str| mask.paths.iter().any(|path| path == member);
        let (revokes, ends) = (names("revoke"), names("not_after"));
        let signer = if ends {
            Some(self.keys.programme_signer().await.map_err(Error::from)?)
        } else {
            None
        };
        let now = self.clock.now();
        let changed = self.idempotent(&caller, key, async move |db| {
            let was = or_not_found(Certification::lock(db, None, &id).await, &id)?;
            if_match.check(&was)?;
            unless_revoked(&was)?;
            if mask.paths.is_empty() {
                return Ok::<_, Error>(was);
            }
            let mut row = was;
            if let Some(signer) = signer {
                end(&mut row, &change, &signer)?;
            }
            if revokes {
                row.revoked_at = Some(now.into());
                row.revoke_reason = change.revoke_reason;
            }
            let changed = diesel::update(certifications::table.find(&row.id))
                .set((
                    certifications::not_after.eq(row.not_after),
                    certifications::signed.eq(row.signed),
                    certifications::signature_kid.eq(row.signature_kid.unwrap_or_default()),
                    certifications::signature_value_b64
                        .eq(row.signature_value_b64.unwrap_or_default()),
                    certifications::revoked_at.eq(row.revoked_at),
                    certifications::revoke_reason.eq(row.revoke_reason),
                    certifications::updated_at.eq(clock_timestamp()),
                ))
                .returning(Certification::as_returning())
                .get_result(db)
                .await?;
            lapse::check(db, &row.consultant_id, None, now).await?;
            Ok(changed)
        });
        Ok(tagged(changed.await?.reply()))
    }
}

fn examine(change: &CertificationChange, mask: &FieldMask, found: &mut Violations) {
    change.validate(found);
    for path in &mask.paths {
        match path.as_str() {
            "not_after" => {}
            "revoke" | "revoke_reason" if change.revoke == Some(true) => {}
            "revoke" => found.add("revoke", "must be true: a revocation is final"),
            "revoke_reason" => found.add("revoke_reason", "requires `revoke`: true"),
            other => found.add(other, "can't be changed"),
        }
    }
}

fn unless_revoked(row: &Certification) -> Result<(), Error> {
    if row.revoked_at.is_none() {
        return Ok(());
    }
    let (id, state) = (row.id.clone(), "revoked".to_owned());
    Err(Error::Final { kind: Certification::KIND, id, state })
}

/// Changes the end of a certification. If an issuer signed it, only an earlier end is allowed.
fn end(
    row: &mut Certification,
    change: &CertificationChange,
    signer: &Arc<Signer>,
) -> Result<(), Error> {
    let before = std::mem::replace(&mut row.not_after, change.not_after);
    let mut found = Violations::default();
    let (from, until) = (("not_before", row.not_before), ("not_after", row.not_after));
    found.within(FIELD, |found| rules::span(from, until, found));
    Error::unless_clean(found)?;
    if row.signed_by != ISSUER {
        return signed::sign(row, signer);
    }
    let is_later = match (before, row.not_after) {
        (_, None) => before.is_some(),
        (None, Some(_)) => false,
        (Some(before), Some(after)) => after > before,
    };
    if is_later {
        let text = "an issuer signed the certification's end; it can only be made earlier";
        return Err(Error::NotAllowed(text.to_owned()));
    }
    Ok(())
}
