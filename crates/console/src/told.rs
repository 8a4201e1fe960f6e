//! What the console says of a request, for the command line, which has the same words. The texts are an agent's: nothing
//! in them is escaped.

use authority_model::proto::approval::Approval;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::{
    approvals::{Others, Summary},
    show::{self, Tell},
};

/// To whom and for what a question's context says that something is done: names of its members and their values, cut
/// where a list cuts them, with a word on letters of several scripts, and how many members are left out.
#[must_use]
pub fn headline(context: &Map<String, Value>) -> (Vec<(String, String)>, usize) {
    let found = show::headline(context);
    let rows = found.rows.iter().filter(|row| row.listed);
    (rows.map(short).collect(), found.more_than_listed)
}

/// Another request that may be the same payment.
pub struct Double {
    pub id: String,
    /// What is the same in both: `amount, invoice`.
    pub same: String,
    /// What the other one says instead of what this one says: names of members, and their values.
    pub differs: Vec<(String, String)>,
    /// How many more there are of those.
    pub more: usize,
    /// Why it was declined, if it was.
    pub declined: Option<String>,
}

/// The first requests of a list that may be the same payment as this one, what was permitted before what waits, and how
/// many more there are. Of those that ended, only what was approved, used or declined of late counts.
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
