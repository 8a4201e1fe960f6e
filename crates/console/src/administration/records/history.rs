//! The history of a record: each version, the newest first, with its changes.

use authority_model::proto::runtime::{
    EntityVersion, ListEntityHistoryRequest, ListEntityHistoryResponse,
};

use super::shown::{Datum, Link, Shown, name};
use crate::kit::{
    kinds::{Kind, Member},
    prelude::*,
};

/// The number of versions on a record's page.
const VERSIONS: i32 = 10;

/// A version of a record.
pub(super) struct Version {
    pub(super) actor: Link,
    pub(super) at: Option<Moment>,
    /// The members that differ from the version before.
    pub(super) changes: Vec<Change>,
    /// The record as it was; none if it was deleted.
    pub(super) members: Vec<Argument>,
}

/// A member that a version changed.
pub(super) struct Change {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) before: Before,
    /// `None` if the version removed the value.
    pub(super) after: Option<Datum>,
}

/// The earlier value of a member.
pub(super) enum Before {
    /// The version before could not be read.
    Unread,
    Nothing,
    Value(Datum),
}

impl Version {
    /// The verb for the change, before its author.
    pub(super) fn verb(&self) -> &'static str {
        match (self.members.is_empty(), self.changes.is_empty()) {
            (true, _) => t::records::DELETED_BY,
            (_, true) => t::records::WRITTEN_BY,
            _ => t::records::CHANGED_BY,
        }
    }
}

/// A record's history, as far as it is known.
pub(super) enum History {
    /// No history of such records is kept, or the person may not read it.
    Absent,
    /// It could not be read.
    Unread,
    Read {
        versions: Vec<Version>,
        /// The page token for older versions.
        older: Option<String>,
    },
}

impl History {
    pub(super) async fn of(view: &View, kind: &Kind, id: &str, token: &str) -> Self {
        if !view.may(rpc::LIST_ENTITY_HISTORY) {
            return Self::Absent;
        }
        let listed = match read(view, id, VERSIONS, token).await {
            Ok(listed) => listed,
            Err(status) if is_absent(&status) => return Self::Absent,
            Err(_) => return Self::Unread,
        };
        let older = listed.next_page_token;
        let mut all = listed.versions;
        let shown = all.len();
        // The changes of the last version are relative to the version before it.
        if let Some(token) = older.as_ref().filter(|_| changes(&all)) {
            let before = read(view, id, 1, token).await.ok();
            all.extend(before.and_then(|read| read.versions.into_iter().next()));
        }
        let versions = (0..shown).filter_map(|place| version(view, kind, &all, place));
        let mut versions: Vec<_> = versions.collect();
        name_all(view, &mut versions).await;
        Self::Read { versions, older }
    }
}

async fn read(
    view: &View,
    id: &str,
    limit: i32,
    token: &str,
) -> Result<ListEntityHistoryResponse, tonic::Status> {
    let request = ListEntityHistoryRequest {
        entity_id: id.to_owned(),
        limit: Some(limit),
        page_token: token.to_owned(),
    };
    view.calls.call(&request).await
}

/// Whether the oldest of these versions changed something.
fn changes(versions: &[EntityVersion]) -> bool {
    versions.last().is_some_and(|version| !version.changed.is_empty())
}

/// The version at this index, with its changes since the next, older version.
fn version(view: &View, kind: &Kind, all: &[EntityVersion], place: usize) -> Option<Version> {
    let (version, before) = (all.get(place)?, all.get(place + 1));
    let now = version.record.as_ref().map(|record| &record.0);
    let before = before.map(|before| before.record.as_ref().map(|record| &record.0));
    // Left out, because the page shows the time of the version.
    let changed = version.changed.iter().filter(|name| *name != "updated_at");
    let changes = changed.map(|name| change(view, kind, name, before, now));
    Some(Version {
        actor: Link::of(view, version.actor.clone()),
        at: Moment::of_time(version.valid_from, view.now),
        changes: changes.collect(),
        members: now.map(arguments).unwrap_or_default(),
    })
}

type Record<'a> = Option<&'a Map<String, Value>>;

fn change(
    view: &View,
    kind: &Kind,
    name: &str,
    before: Option<Record<'_>>,
    now: Record<'_>,
) -> Change {
    let member = kind.record.get_field_by_name(name).map(|field| Member::of(&field));
    let of = |record: Record<'_>| {
        let value = record?.get(name);
        match &member {
            Some(member) => Some(Shown::of(view, member, value)?.datum),
            None => Some(Datum::Text(Argument::new("", crate::kit::kinds::plain(value?)))),
        }
    };
    Change {
        label: member.as_ref().map_or_else(|| name.to_owned(), |member| member.label.clone()),
        before: match before {
            None => Before::Unread,
            Some(record) => of(record).map_or(Before::Nothing, Before::Value),
        },
        after: of(now),
        name: name.to_owned(),
    }
}

/// Adds the names of the records to the ids in changes and authors.
async fn name_all(view: &View, versions: &mut [Version]) {
    let mut links = Vec::new();
    for version in versions {
        links.push(&mut version.actor);
        for change in &mut version.changes {
            if let Before::Value(datum) = &mut change.before {
                links.extend(datum.links());
            }
            links.extend(change.after.iter_mut().flat_map(Datum::links));
        }
    }
    name(view, links).await;
}
