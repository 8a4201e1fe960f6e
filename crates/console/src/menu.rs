//! The menu: the records that this person may list, by the API's own rules.

use crate::{records::KINDS, rpc, view::View};

/// Kinds under one heading.
pub(crate) struct Group {
    pub(crate) label: &'static str,
    pub(crate) entries: Vec<Entry>,
}

pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) label: &'static str,
    pub(crate) about: &'static str,
}

/// A page of records that are of no kind, under the heading of those that they are like: path, name, what they are, and
/// the operation that it needs.
const KEYS: (&str, &str, &str, &str, &str) = (
    "Delegations and keys",
    "/console/keys",
    "Signing keys",
    "What the installation signs with, and the replacement of its keys.",
    rpc::LIST_KEYS,
);

impl View {
    pub(crate) fn menu(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for kind in KINDS.iter().filter(|kind| self.may(&kind.list.rpc)) {
            let path = format!("/console/records/{}", kind.path);
            let entry = Entry { path, label: &kind.many, about: &kind.about };
            match groups.last_mut() {
                Some(group) if group.label == kind.area => group.entries.push(entry),
                _ => groups.push(Group { label: kind.area, entries: vec![entry] }),
            }
        }
        let (heading, path, label, about, needed) = KEYS;
        let group = groups.iter_mut().find(|group| group.label == heading);
        if let Some(group) = group.filter(|_| self.may(needed)) {
            group.entries.push(Entry { path: path.to_owned(), label, about });
        }
        groups
    }
}
