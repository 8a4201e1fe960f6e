//! One act of one person: who may, and what is signed and kept of it.

use authority_model::{
    proto::approval::ApprovalAct,
    schema::{approval_acts, principals},
    wire::Time,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};

use super::super::prelude::*;
use authority_engine::{
    evidence::{self, Act as SignedTerms},
    identity::{Caller, Standing},
    keys::{Keys, Purpose},
    spending::APPROVE,
};

/// What a person says.
pub(in super::super) enum Said {
    Approve(Option<String>),
    Decline(String),
}

/// The word of an act that declines.
pub(super) const DECLINE: &str = "decline";
/// The word of one that takes back what was approved.
pub(in super::super) const WITHDRAW: &str = "withdraw";

/// What they say it of.
pub(in super::super) struct Terms<'a> {
    pub(in super::super) tenant_id: &'a str,
    /// The approval or the delegation.
    pub(in super::super) about: &'a str,
    /// Who would act on it: no one approves for themselves, or for an agent of their own.
    pub(in super::super) actor_id: &'a str,
    /// The digest of what exactly is approved.
    pub(in super::super) question: [u8; 32],
}

/// A person: issuer and subject are who they are, whatever they are called.
struct Person<'a> {
    by: String,
    subject: &'a str,
    role: &'a str,
}

impl<'a> Person<'a> {
    fn of(caller: &'a Caller) -> Result<Self, Error> {
        let by = caller.identity();
        match &caller.standing {
            Standing::Owner { subject, .. } => Ok(Self { by, subject, role: "owner" }),
            Standing::Member { subject, role, .. } => Ok(Self { by, subject, role }),
            Standing::Key { .. } | Standing::Anonymous => {
                Err(Error::Role("only a person approves or declines".to_owned()))
            }
        }
    }
}

/// Signs and keeps what the caller says; `before` are the acts there are.
pub(in super::super) async fn make(
    db: &mut Db,
    caller: &Caller,
    keys: &Keys,
    terms: Terms<'_>,
    before: &[ApprovalAct],
    said: &Said,
    now: DateTime<Utc>,
) -> Result<ApprovalAct, Error> {
    let person = Person::of(caller)?;
    if before.iter().any(|act| act.by == person.by) {
        return Err(Error::NotEligible("you have acted on this already".to_owned()));
    }
    if speaks_for(db, terms.tenant_id, person.subject, terms.actor_id).await? {
        let text = format!("`{}` is you, or an agent of yours", terms.actor_id);
        return Err(Error::NotEligible(text));
    }
    let (verdict, comment) = match said {
        Said::Approve(comment) => (APPROVE, comment.clone()),
        Said::Decline(reason) => (DECLINE, Some(reason.clone())),
    };
    sign(db, caller, keys, &terms, verdict, comment, now).await
}

/// Signs and keeps what a person says, eligible or not; `verdict`: a word of [`ApprovalAct`].
pub(in super::super) async fn sign(
    db: &mut Db,
    caller: &Caller,
    keys: &Keys,
    terms: &Terms<'_>,
    verdict: &'static str,
    comment: Option<String>,
    now: DateTime<Utc>,
) -> Result<ApprovalAct, Error> {
    let person = Person::of(caller)?;
    let signed = SignedTerms {
        tenant_id: terms.tenant_id,
        about: terms.about,
        question: &terms.question,
        by: &person.by,
        role: person.role,
        verdict,
        comment: comment.as_deref(),
        at: now,
    };
    let signed = evidence::sign_act(&signed, &keys.signer(Purpose::Evidence))?;
    // What was withdrawn may be approved anew, by the same people.
    let round: i64 = approval_acts::table
        .filter(approval_acts::about.eq(terms.about).and(approval_acts::withdraws))
        .count()
        .get_result(db)
        .await?;
    let kept = diesel::insert_into(approval_acts::table)
        .values((
            approval_acts::about.eq(terms.about),
            approval_acts::person.eq(&person.by),
            approval_acts::tenant_id.eq(terms.tenant_id),
            approval_acts::record.eq(&signed.record),
            approval_acts::kid.eq(&*signed.kid),
            approval_acts::signature.eq(&signed.signature[..]),
            approval_acts::created_at.eq(Time::from(now)),
            approval_acts::round.eq(i32::try_from(round).unwrap_or(i32::MAX)),
            approval_acts::withdraws.eq(verdict == WITHDRAW),
        ))
        .on_conflict_do_nothing()
        .execute(db)
        .await?;
    if kept == 0 {
        return Err(Error::NotEligible("you have acted on this already".to_owned()));
    }
    Ok(ApprovalAct {
        by: person.by,
        name: caller.actor.clone(),
        role: person.role.to_owned(),
        verdict: verdict.to_owned(),
        comment,
        at: Some(Time::from(now)),
        record: signed.record,
        kid: signed.kid.to_string(),
        signature: STANDARD.encode(signed.signature),
    })
}

/// Whether the person is the principal, or the one that owns it.
async fn speaks_for(
    db: &mut Db,
    tenant_id: &str,
    subject: &str,
    actor_id: &str,
) -> QueryResult<bool> {
    let own: Vec<String> = principals::table
        .filter(principals::tenant_id.eq(tenant_id))
        .filter(principals::external_subject.eq(subject))
        .select(principals::id)
        .load(db)
        .await?;
    if own.is_empty() {
        return Ok(false);
    }
    let owner: Option<Option<String>> = principals::table
        .filter(principals::tenant_id.eq(tenant_id).and(principals::id.eq(actor_id)))
        .select(principals::owner_principal_id)
        .first(db)
        .await
        .optional()?;
    let owner = owner.flatten();
    Ok(own.iter().any(|id| id == actor_id || owner.as_ref() == Some(id)))
}
