//! The console's description of a request, for the command line, which uses the same words. The
//! texts come from an agent and are not escaped.

use authority_model::proto::approval::Approval;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::{
    approvals::{Others, Summary},
    show::{self, Tell},
};

/// The recipients and reasons in a question's context: names of members and values, cut as in a
/// list, with a note on letters of several scripts, and the number of hidden members.
#[must_use]
pub fn headline(context: &Map<String, Value>) -> (Vec<(String, String)>, usize) {
    let found = show::headline(context);
    let rows = found.rows.iter().filter(|row| row.listed);
    (rows.map(short).collect(), found.more_than_listed)
}

/// Another request that may be the same payment.
pub struct Double {
    pub id: String,
    /// The members that are the same in both: `amount, invoice`.
    pub same: String,
    /// The members with different values in the other request: names and values.
    pub differs: Vec<(String, String)>,
    /// How many more there are of those.
    pub more: usize,
    /// Why it was declined, if it was.
    pub declined: Option<String>,
}

/// The first possible doubles of a request in a list, permitted requests before pending ones, and
/// the number of further ones. Of the closed requests, only recently approved, used or declined
/// ones count.
#[must_use]
pub fn doubles(own: &Approval, listed: Vec<Approval>, now: DateTime<Utc>) -> (Vec<Double>, usize) {
    let others = Others::among(listed, std::slice::from_ref(own));
    let doubles = others.doubles(now, &Summary::of(own, now));
    let told = doubles.first.into_iter().map(|double| Double {
        differs: double.likeness.differs.iter().map(compared).collect(),
        more: double.likeness.more,
        same: double.likeness.same,
        declined: double.declined,
        id: double.summary.id,
    });
    (told.collect(), doubles.more)
}

fn short(row: &Tell) -> (String, String) {
    let mixed = if row.has_mixed_letters() { " (letters of several scripts)" } else { "" };
    (row.short_path(), row.short() + mixed)
}

fn compared(row: &Tell) -> (String, String) {
    (row.short_path(), row.compared())
}
