//! Stage 2: checks whether the declared purpose is admissible and whether the authority is bound to
//! it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{candidate::Candidate, case::Case};
use crate::{
    facts::{gathered::Facts, records::Purpose},
    pattern::covered,
    reason::Reason,
    request::{
        draft::Request,
        jurisdiction::{self, covers},
    },
};

/// Checks that a declared purpose is a record of the tenant.
pub(crate) fn is_known(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let known = case.request.purpose.is_none() || case.purpose().is_some();
    if known { Ok(()) } else { Err(Reason::PurposeUnknown) }
}

/// Checks that the purpose admits this action, class, place and time.
pub(crate) fn is_admitted(case: &Case<'_>, _: &Candidate<'_>) -> Result<(), Reason> {
    let admits = |purpose| admits_but_for_place(case, purpose) && admits_place(case, purpose);
    let admitted = case.purpose().is_none_or(admits);
    if admitted { Ok(()) } else { Err(Reason::PurposeNotAdmitted) }
}

fn admits_but_for_place(case: &Case<'_>, purpose: &Purpose) -> bool {
    let class = case.subject().map(|subject| subject.class);
    purpose.active
        && purpose.window.holds(case.at)
        && covered(&purpose.allowed_actions, &case.request.action)
        && admits_one(&purpose.principal_classes, |own| Some(*own) == class)
}

fn admits_place(case: &Case<'_>, purpose: &Purpose) -> bool {
    let here = case.request.jurisdiction();
    admits_one(&purpose.jurisdictions, |own| here.is_some_and(|here| covers(own, here)))
}

/// Whether the list admits a value. An empty list admits all.
fn admits_one<T>(list: &[T], is: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(is)
}

/// Checks that every link that is limited to some purposes includes this purpose.
pub(crate) fn is_in_scope(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let mut bound = candidate.links().iter().filter(|link| !link.bounds.purposes.is_empty());
    match &case.request.purpose {
        Some(own) if bound.all(|link| link.bounds.purposes.contains(own)) => Ok(()),
        Some(_) => Err(Reason::PurposeOutOfScope),
        None if bound.next().is_none() => Ok(()),
        None => Err(Reason::PurposeRequired),
    }
}

/// The verdict of `POST /v1/purpose/admit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    Admit,
    Reject,
    /// The purpose may be admitted if the request has more fields.
    RequireClarification,
}

impl Admission {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Reject => "reject",
            Self::RequireClarification => "require_clarification",
        }
    }
}

/// Runs only stage 2.
pub fn admit(request: &Request, facts: &Facts, at: DateTime<Utc>) -> (Admission, Option<Reason>) {
    let case = Case::new(request, facts, at);
    let candidate = Candidate::nothing(&case);
    if request.purpose.is_none() {
        return (Admission::RequireClarification, Some(Reason::PurposeRequired));
    }
    if let Err(reason) = is_known(&case, &candidate) {
        return (Admission::Reject, Some(reason));
    }
    if !request.jurisdiction().is_none_or(jurisdiction::is_known) {
        return (Admission::Reject, Some(Reason::JurisdictionUnsupported));
    }
    if is_admitted(&case, &candidate).is_ok() {
        return (Admission::Admit, None);
    }
    let unplaced = request.jurisdiction().is_none()
        && case.purpose().is_some_and(|purpose| admits_but_for_place(&case, purpose));
    let admission = if unplaced { Admission::RequireClarification } else { Admission::Reject };
    (admission, Some(Reason::PurposeNotAdmitted))
}
