//! Why a person cannot decide a request, as the API answers it.

use authority_model::proto::approval::{Approval, Ineligibility};

use crate::{kit::show::short, texts as t};

/// The code of the reason that the person has approved already.
const ACTED: &str = "acted_already";

/// Why another person must decide.
pub(super) struct OtherPerson {
    /// The rule, for people.
    pub(super) rule: String,
    /// The exact rules for who could act instead.
    pub(super) remedy: String,
    /// The roles that decide requests, in words.
    pub(super) roles: String,
}

/// Why another person must decide. `None` if this person can, or has approved already. The request
/// must have been read by its id.
pub(super) fn other_person(approval: &Approval) -> Option<OtherPerson> {
    let why = approval.ineligibility.as_ref().filter(|why| why.reason != ACTED)?;
    let agent = short(&approval.subject);
    let rule = match why.reason.as_str() {
        "owner" => t::inbox::you_own(agent),
        "delegator" => t::inbox::you_delegate(agent),
        "key_maker" => t::inbox::YOUR_KEY.to_owned(),
        "asker" => t::inbox::YOU_ASKED.to_owned(),
        _ => why.rule.clone(),
    };
    Some(OtherPerson { rule, remedy: why.remedy.clone(), roles: roles(why) })
}

/// How many people are missing after this person's approval: at least one. `None` if the person has
/// not approved.
pub(super) fn missing_people(approval: &Approval) -> Option<i32> {
    approval.ineligibility.as_ref().filter(|why| why.reason == ACTED)?;
    Some((approval.needed - approval.given).max(1))
}

/// The roles of a tenant in words: `admin, approver or legal`.
fn roles(why: &Ineligibility) -> String {
    let roles = why.permitted_roles.iter().filter(|role| *role != "owner");
    let roles: Vec<&str> = roles.map(String::as_str).collect();
    match roles.split_last() {
        Some((last, others)) if !others.is_empty() => t::inbox::roles_or(others.join(", "), last),
        _ => roles.join(", "),
    }
}
