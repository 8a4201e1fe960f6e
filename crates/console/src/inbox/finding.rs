//! The reality findings that hold a request. Only findings that a page has shown count as reviewed:
//! the address of the second step and its form name each finding with the time at which it began.

use authority_model::proto::approval::{Approval, ApprovalReality};

use crate::kit::prelude::*;

pub(super) struct Finding {
    /// `<id>@<since>`, as the API expects it in `reviewed`. It does not match a finding that began
    /// at another time.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) drift: String,
    pub(super) since: Option<Moment>,
    /// Whether an approval can meet it.
    pub(super) is_review: bool,
    pub(super) anchors: Vec<String>,
}

impl Finding {
    fn of(found: &ApprovalReality, now: DateTime<Utc>) -> Self {
        Self {
            key: found.since.map_or(found.id.clone(), |since| format!("{}@{since}", found.id)),
            name: found.name.clone().unwrap_or_else(|| short(&found.id).to_owned()),
            drift: found.drift_type.replace('_', " "),
            since: Moment::of_time(found.since, now),
            is_review: found.effect == "require_human_review",
            anchors: found.anchors.iter().map(|anchor| anchor.name.clone()).collect(),
        }
    }

    /// The finding as a sentence, for the list of changes.
    pub(super) fn line(&self) -> String {
        match &self.since {
            Some(since) => t::inbox::found_since(&self.name, &self.drift, &since.shown),
            None => t::inbox::found(&self.name, &self.drift),
        }
    }

    /// The finding as a sentence of a page.
    pub(super) fn marked(&self) -> Safe<String> {
        match &self.since {
            Some(since) => t::inbox::finding_since(&self.name, &self.drift, since.time()),
            None => t::inbox::finding(&self.name, &self.drift),
        }
    }
}

/// All that holds a request.
pub(super) fn findings(approval: &Approval, now: DateTime<Utc>) -> Vec<Finding> {
    approval.reality.iter().map(|found| Finding::of(found, now)).collect()
}

/// The findings that an approval counts as reviewed.
pub(super) fn to_review(approval: &Approval, now: DateTime<Utc>) -> Vec<Finding> {
    let mut findings = findings(approval, now);
    findings.retain(|found| found.is_review);
    findings
}

/// The second step of an approval, for a page that shows these.
pub(super) fn approve_path(id: &str, findings: &[Finding]) -> String {
    let shown = findings.iter().filter(|found| found.is_review);
    let shown: Vec<String> =
        shown.map(|found| format!("reviewed={}", encoded(&found.key))).collect();
    let query = if shown.is_empty() { "" } else { "?" };
    format!("/console/approvals/{id}/approve{query}{}", shown.join("&"))
}
