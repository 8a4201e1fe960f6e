//! What became of a record: each of its versions, the newest first.

use authority_model::proto::runtime::{ListEntityHistoryRequest, ListEntityHistoryResponse};

use crate::{
    problem::is_absent,
    rpc,
    show::{Argument, Moment, arguments},
    view::View,
};

/// The versions on a record's page.
const VERSIONS: i32 = 10;

/// A version of a record.
pub(super) struct Version {
    pub(super) actor: String,
    pub(super) at: Option<Moment>,
    /// The members that differ from the version before.
    pub(super) changed: Vec<String>,
    /// The record as it was; none if it was deleted.
    pub(super) members: Vec<Argument>,
}

impl Version {
    /// What was done, before who did it.
    pub(super) fn verb(&self) -> &'static str {
        match (self.members.is_empty(), self.changed.is_empty()) {
            (true, _) => "deleted by",
            (_, true) => "written by",
            _ => "changed by",
        }
    }
}

/// A record's history, as far as it is known.
pub(super) enum History {
    /// None is kept of such records, or the person may not read it.
    Absent,
    /// It could not be read: what it says is not known.
    Unread,
    Read {
        versions: Vec<Version>,
        /// Where the older ones begin.
        older: Option<String>,
    },
}

impl History {
    pub(super) async fn of(view: &View, id: &str, token: &str) -> Self {
        if !view.may(rpc::LIST_ENTITY_HISTORY) {
            return Self::Absent;
        }
        let request = ListEntityHistoryRequest {
            entity_id: id.to_owned(),
            limit: Some(VERSIONS),
            page_token: token.to_owned(),
        };
        let listed = view.calls.call(rpc::LIST_ENTITY_HISTORY, &request).await;
        let listed: ListEntityHistoryResponse = match listed {
            Ok(listed) => listed,
            Err(status) if is_absent(&status) => return Self::Absent,
            Err(_) => return Self::Unread,
        };
        let versions = listed.versions.into_iter().map(|version| Version {
            actor: version.actor,
            at: Moment::of_time(version.valid_from, view.now),
            changed: version.changed,
            members: version.record.map(|record| arguments(&record.0)).unwrap_or_default(),
        });
        Self::Read { versions: versions.collect(), older: listed.next_page_token }
    }
}
