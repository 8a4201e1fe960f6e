//! What the console's lists say of a request besides its amount, for the command line, which has the same words.

use serde_json::{Map, Value};

use crate::show;

/// To whom and for what a question's context says that something is done: names of its members and their values, cut
/// where a list cuts them, and how many members are left out. The texts are an agent's: nothing in them is escaped.
#[must_use]
pub fn headline(context: &Map<String, Value>) -> (Vec<(String, String)>, usize) {
    let found = show::headline(context);
    let rows = found.rows.iter().filter(|row| row.listed);
    (rows.map(|row| (row.short_path(), row.short())).collect(), found.more_than_listed)
}
