//! Marks the requests of a list that the person may not decide. Lists do not contain this
//! information, but a request that is read by its id does. One request of each group with the same
//! rule is read.

use std::collections::HashMap;

use authority_model::proto::approval::Approval;

use super::{
    barrier::Barrier,
    request::{has_acted, read},
};
use crate::{calls::some_at_once, view::View};

/// The maximum number of requests read for a list. The other requests have no mark.
const MOST: usize = 12;

/// The data that determines the eligible people: the agent, its authority, the requesters, and the
/// number of approvals needed.
type Group = (String, Vec<String>, Vec<String>, i32);

fn group(approval: &Approval) -> Group {
    let chain = approval.authority.as_ref().map(|used| used.chain.clone()).unwrap_or_default();
    let asked = approval.requested_by.iter().map(|who| format!("{} {}", who.kind, who.id));
    (approval.subject.clone(), chain, asked.collect(), approval.needed)
}

/// For each request, the rule by which another person must decide it. The rule comes from a
/// similar request. The mark in a list may therefore differ from the request's own page, which is
/// authoritative, like the API.
pub(super) async fn not_mine(view: &View, approvals: &[Approval]) -> Vec<Option<String>> {
    let mut groups: HashMap<Group, &str> = HashMap::new();
    for approval in approvals.iter().filter(|approval| !has_acted(view, approval)) {
        if groups.len() < MOST {
            groups.entry(group(approval)).or_insert(&approval.id);
        }
    }
    let read = groups.into_iter().map(|(group, id)| async move {
        let rule = read(view, id).await.ok().and_then(|one| Barrier::of(view, &one));
        (group, rule.and_then(|barrier| barrier.rule().map(str::to_owned)))
    });
    let rules: HashMap<Group, Option<String>> = some_at_once(read).await.into_iter().collect();
    approvals.iter().map(|approval| rules.get(&group(approval)).cloned().flatten()).collect()
}
