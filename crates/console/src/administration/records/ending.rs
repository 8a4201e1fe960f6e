//! The confirmation before a record ends permanently: a description of the record and of the
//! consequences, and a name to type.

use super::{depends::Depends, shown::JOINT};
use crate::kit::{
    kinds::{Kind, plain},
    prelude::*,
    typed,
};

/// A record that would end, and what depends on it.
pub(super) struct Ending {
    /// The parties and actions of a delegation; `None` for other records.
    pub(super) grant: Option<Grant>,
    pub(super) depends: Depends,
    /// The requirements for requests that would end. Empty until the API has been queried.
    pub(super) milder: Vec<String>,
    /// The text to type as confirmation.
    pub(super) typed: String,
}

/// The permission that a delegation gives.
pub(super) struct Grant {
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) actions: String,
}

/// The name of the form's field for the typed name.
pub(super) const NAME: &str = "name";
/// The longest name that a person is asked to type, in characters.
const LONGEST: usize = 64;

impl Ending {
    /// Describes the end of a record with this title and these members. `word` is the operation.
    pub(super) async fn of(
        view: &View,
        kind: &Kind,
        word: &str,
        title: &str,
        members: &Map<String, Value>,
    ) -> Self {
        let grant = match kind.singular.as_str() {
            "delegation" => Some(Grant::of(view, members).await),
            _ => None,
        };
        let typed = match &grant {
            Some(grant) => grant.to.name.clone(),
            None if kind.singular == "principal" => called(&text(members, "id"), title).to_owned(),
            None => title.to_owned(),
        };
        let depends = Depends::of(view, kind, members).await;
        Self { typed: to_type(typed, word), grant, depends, milder: Vec::new() }
    }

    /// The error for the typed text.
    pub(super) fn problem(&self, typed: &str) -> Option<String> {
        (!typed::is_named(&self.typed, typed)).then(|| t::type_exactly(&self.typed))
    }
}

impl Grant {
    async fn of(view: &View, members: &Map<String, Value>) -> Self {
        let (from, to) = (text(members, "delegator_id"), text(members, "delegate_id"));
        let names = Names::to_call(view, vec![from.clone(), to.clone()]).await;
        let actions = members.get("actions").and_then(Value::as_array);
        let actions: Vec<_> = actions.into_iter().flatten().map(plain).collect();
        Self { from: names.called(from), to: names.called(to), actions: actions.join(", ") }
    }
}

/// The record's name, or the operation's word if the name can't be typed.
fn to_type(name: String, word: &str) -> String {
    let is_name = !name.trim().is_empty() && !name.contains(JOINT);
    if is_name && name.chars().count() <= LONGEST { name } else { word.to_owned() }
}

fn text(members: &Map<String, Value>, name: &str) -> String {
    members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_cannot_be_typed_is_replaced_by_the_operations_word() {
        for (name, typed) in [
            ("calendar".to_owned(), "calendar"),
            ("invoice-bot · payments".to_owned(), "delete"),
            ("x".repeat(65), "delete"),
            (" ".to_owned(), "delete"),
        ] {
            assert_eq!(to_type(name.clone(), "delete"), typed, "{name}");
        }
    }
}
