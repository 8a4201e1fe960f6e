//! Decides which channels get a message about a request.

use std::collections::BTreeSet;

use authority_presentation::Amount;
use chrono::{DateTime, Utc};

use super::{channel::ChannelRow, settings::Settings};

/// A channel of the request's tenant.
pub(super) struct Candidate<'a> {
    pub(super) channel: &'a ChannelRow,
    pub(super) settings: Settings,
    /// Whether the channel's person may decide the request; true for a channel of the tenant.
    pub(super) may_decide: bool,
}

/// Returns the ids of the channels that get a message.
///
/// A channel of a person who is away stands for the channels of the substitute, if the substitute may
/// decide and is not away. Otherwise it gets the message itself.
pub(super) fn recipients(
    candidates: &[Candidate<'_>],
    action: &str,
    amount: Option<&Amount>,
    now: DateTime<Utc>,
) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    for own in candidates {
        if !own.may_decide || !own.settings.admit(action, amount) {
            continue;
        }
        let substitutes: Vec<&Candidate<'_>> = match &own.settings.substitute {
            Some(address) if own.settings.is_away(now) => {
                candidates.iter().filter(|other| other.is_of(address, now)).collect()
            }
            _ => Vec::new(),
        };
        if substitutes.is_empty() {
            told.insert(own.channel.id.clone());
        } else {
            told.extend(substitutes.into_iter().map(|other| other.channel.id.clone()));
        }
    }
    told
}

impl Candidate<'_> {
    /// Whether the channel belongs to the person with this address, who is present and may decide.
    fn is_of(&self, address: &str, now: DateTime<Utc>) -> bool {
        let is_theirs = self.channel.email.as_deref() == Some(address);
        is_theirs && self.may_decide && !self.settings.is_away(now)
    }
}
