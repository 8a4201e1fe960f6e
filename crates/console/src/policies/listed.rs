//! A version of a policy's text in the list of versions, with its author, its last activation and its
//! last observation.

use authority_model::proto::registry::PolicyVersion;

use super::observe::Observed;
use crate::kit::prelude::*;

/// A version of the text, in the list.
pub(super) struct Listed {
    pub(super) number: i32,
    pub(super) by: String,
    pub(super) at: Option<Moment>,
    pub(super) in_force: bool,
    /// Whether the page compares it.
    pub(super) shown: bool,
    pub(super) activation: Option<Activation>,
    pub(super) observed: Option<Observed>,
}

/// The last activation of a version: time, author and reason, and the time at which another version
/// replaced it.
pub(super) struct Activation {
    pub(super) at: Moment,
    pub(super) by: String,
    pub(super) reason: Option<String>,
    pub(super) superseded: Option<Moment>,
}

impl Listed {
    /// `in_force` is the number of the version that is in force, if one is.
    pub(super) fn of(version: &PolicyVersion, in_force: Option<i32>, view: &View) -> Self {
        Self {
            number: version.version,
            by: version.created_by.clone(),
            at: Moment::of_time(version.created_at, view.now),
            in_force: in_force == Some(version.version),
            shown: false,
            activation: Activation::of(version, view),
            observed: version.observation.as_ref().and_then(|one| Observed::of(one, view)),
        }
    }
}

impl Activation {
    fn of(version: &PolicyVersion, view: &View) -> Option<Self> {
        Some(Self {
            at: Moment::of_time(version.activated_at, view.now)?,
            by: version.activated_by.clone().unwrap_or_default(),
            reason: version.activation_reason.clone(),
            superseded: Moment::of_time(version.superseded_at, view.now),
        })
    }
}
