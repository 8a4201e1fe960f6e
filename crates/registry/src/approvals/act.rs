//! One act of one person: the eligibility check and the signed record of the act.

use authority_model::{proto::approval::ApprovalAct, schema::approval_acts, wire::Time};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};

use super::{
    eligible::{ACTED, Eligibility, UNKNOWN_TENANT},
    fresh,
};
use crate::flow::{
    ineligible::{Ineligible, IneligibleReason},
    prelude::*,
};
use authority_api::identity::{Caller, CallerKind, Role};
use authority_evidence::{self as evidence, Act as SignedTerms, SignedAct};
use authority_graph::TenantHandle;
use authority_keys::{Keys, Purpose};
use authority_ledger::spending::{APPROVE, DECLINE, WITHDRAW};

/// An approver's act.
pub(crate) enum ApproverAct {
    Approve(Option<String>),
    Decline(String),
}

/// The verdict of an act that takes a decline back.
const REOPEN: &str = "reopen";
/// The verdict of an act that pins the definition of a tool.
const PIN: &str = "pin";

/// The request, delegation or tool that an act concerns.
pub(crate) struct Terms<'a> {
    pub(crate) tenant_id: TenantId,
    /// The ID of the approval, the delegation or the tool.
    pub(crate) about: &'a str,
    /// The digest of exactly this request, delegation or definition of a tool.
    pub(crate) question: [u8; 32],
}

/// A person, identified by issuer and subject, not by name.
struct Person<'a> {
    by: String,
    role: &'a str,
}

impl<'a> Person<'a> {
    fn of(caller: &'a Caller) -> Result<Self, Error> {
        let by = caller.identity();
        match &caller.kind {
            CallerKind::Owner { .. } => Ok(Self { by, role: Role::Owner.as_str() }),
            CallerKind::Member { role, .. } => Ok(Self { by, role: role.as_str() }),
            CallerKind::Key { .. } | CallerKind::Anonymous => {
                Err(Error::Role("only a person may approve or decline".to_owned()))
            }
        }
    }
}

/// The context in which acts are checked and signed. `handle` is the tenant's authority, which does
/// not change until the transaction has ended.
pub(crate) struct ActContext<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) handle: Option<&'a TenantHandle>,
    /// Determines who is eligible. A person can't approve their own request.
    pub(crate) eligibility: &'a Eligibility,
}

/// The parts of an act that are signed.
pub(crate) struct Statement {
    /// A verdict of [`ApprovalAct`].
    pub(crate) verdict: &'static str,
    pub(crate) comment: Option<String>,
    /// Whether the act is in the person's own interest, which `self_approval` permits.
    pub(crate) own_interest: bool,
}

impl Statement {
    /// Creates the statement of a withdrawal.
    pub(crate) fn withdraws(reason: String) -> Self {
        Self { verdict: WITHDRAW, comment: Some(reason), own_interest: false }
    }

    /// Creates the statement that pins the definition of a tool.
    pub(crate) fn pins() -> Self {
        Self { verdict: PIN, comment: None, own_interest: false }
    }

    /// Creates the statement that takes a decline back.
    pub(crate) fn reopens(reason: String) -> Self {
        Self { verdict: REOPEN, comment: Some(reason), own_interest: false }
    }
}

/// Checks, signs and stores the caller's act. `before` contains the earlier acts.
pub(crate) async fn make(
    db: &mut Db,
    caller: &Caller,
    context: ActContext<'_>,
    terms: Terms<'_>,
    before: &[ApprovalAct],
    said: &ApproverAct,
    now: DateTime<Utc>,
) -> Result<ApprovalAct, Error> {
    let own_interest = context.eligibility.may_act(context.handle, caller, before)?;
    if matches!(said, ApproverAct::Approve(_)) {
        let handle =
            context.handle.ok_or_else(|| context.eligibility.unreadable(UNKNOWN_TENANT))?;
        fresh::require(handle, caller, now)?;
    }
    let (verdict, comment) = match said {
        ApproverAct::Approve(comment) => (APPROVE, comment.clone()),
        ApproverAct::Decline(reason) => (DECLINE, Some(reason.clone())),
    };
    let statement = Statement { verdict, comment, own_interest };
    sign(db, caller, context.keys, &terms, statement, now).await
}

/// Signs and stores a person's act without an eligibility check.
pub(crate) async fn sign(
    db: &mut Db,
    caller: &Caller,
    keys: &Keys,
    terms: &Terms<'_>,
    statement: Statement,
    now: DateTime<Utc>,
) -> Result<ApprovalAct, Error> {
    let person = Person::of(caller)?;
    let Statement { verdict, comment, own_interest } = statement;
    let signed = SignedTerms {
        tenant_id: &terms.tenant_id,
        about: terms.about,
        question: &terms.question,
        by: &person.by,
        role: person.role,
        verdict,
        comment: comment.as_deref(),
        own_interest,
        at: now,
    };
    let SignedAct { text, by_salt, comment_salt } =
        evidence::sign_act(&signed, &keys.signer(Purpose::Evidence))?;
    let (by_salt, comment_salt) =
        (STANDARD.encode(by_salt), comment_salt.map(|s| STANDARD.encode(s)));
    // Each withdrawal, reopening or pin begins a new round, in which the same people may act again.
    let round: i64 = approval_acts::table
        .filter(approval_acts::about.eq(terms.about).and(approval_acts::withdraws))
        .count()
        .get_result(db)
        .await?;
    let kept = diesel::insert_into(approval_acts::table)
        .values((
            approval_acts::about.eq(terms.about),
            approval_acts::person.eq(&person.by),
            approval_acts::tenant_id.eq(terms.tenant_id.as_str()),
            approval_acts::record.eq(&text.record),
            approval_acts::kid.eq(&*text.kid),
            approval_acts::signature.eq(&text.signature[..]),
            approval_acts::by_salt.eq(&by_salt),
            approval_acts::comment.eq(&comment),
            approval_acts::comment_salt.eq(&comment_salt),
            approval_acts::created_at.eq(Time::from(now)),
            approval_acts::round.eq(i32::try_from(round).unwrap_or(i32::MAX)),
            // Also set for a reopening, because the person who declined may also reopen, and for a
            // pin, because the same person may pin the next definition.
            approval_acts::withdraws.eq([WITHDRAW, REOPEN, PIN].contains(&verdict)),
        ))
        .on_conflict_do_nothing()
        .execute(db)
        .await?;
    if kept == 0 {
        return Err(Error::NotEligible(Ineligible {
            reason: IneligibleReason::ActedAlready,
            rule: ACTED.to_owned(),
            remedy: None,
        }));
    }
    Ok(ApprovalAct {
        by: person.by,
        name: caller.actor.clone(),
        role: person.role.to_owned(),
        verdict: verdict.to_owned(),
        comment,
        at: Some(Time::from(now)),
        record: text.record,
        kid: text.kid.to_string(),
        signature: STANDARD.encode(text.signature),
        self_: own_interest,
        by_salt: Some(by_salt),
        comment_salt,
    })
}
