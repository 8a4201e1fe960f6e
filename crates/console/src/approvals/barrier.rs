//! Why a person cannot answer a request, before they try.

use authority_model::proto::approval::Approval;

use super::request::has_acted;
use crate::{rpc, show::short, view::View};

/// Why this person cannot act.
pub(super) enum Barrier {
    /// The person has approved. The text describes the missing approvals.
    Approved(String),
    Rule {
        rule: String,
        /// The exact rules for who could act instead.
        remedy: String,
    },
}

/// The rule for a role that answers no request.
pub(super) const READS: &str = "your role reads requests and does not decide them";

impl Barrier {
    /// `None` if the person can act. The request must have been read by its id.
    pub(super) fn of(view: &View, approval: &Approval) -> Option<Self> {
        if !view.may(rpc::APPROVE_APPROVAL) {
            return Some(Self::Rule { rule: READS.to_owned(), remedy: String::new() });
        }
        let why = approval.ineligibility.clone()?;
        if has_acted(view, approval) {
            return Some(Self::Approved(match approval.needed - approval.given {
                ..=1 => "one more person".to_owned(),
                more => format!("{more} more people"),
            }));
        }
        let rule = why.rule.replace("the agent", short(&approval.subject));
        Some(Self::Rule { rule, remedy: why.remedy })
    }

    /// The rule, where there is one.
    pub(super) fn rule(&self) -> Option<&str> {
        match self {
            Self::Approved(_) => None,
            Self::Rule { rule, .. } => Some(rule),
        }
    }
}
