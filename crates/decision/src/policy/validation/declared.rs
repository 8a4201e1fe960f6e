//! The declared input for the actions of the statements.

use super::{
    members::{InputType, Members},
    schema::Actions,
};
use crate::policy::statement::{ActionScope, Statement};

/// The actions that a text is checked for, with their input, and the text's statements.
pub(super) struct Declared {
    pub(super) actions: Actions,
    /// `None` for a statement that cannot be read.
    pub(super) statements: Vec<Option<Statement>>,
}

impl Declared {
    /// Returns the declared input of each action that a statement admits.
    pub(super) fn inputs(&self, statement: usize) -> Option<impl Iterator<Item = &Members>> {
        let statement = self.statements.get(statement)?.as_ref()?;
        let admitted = self.actions.iter().filter(|(name, _)| statement.action.admits(name));
        Some(admitted.map(|(_, input)| input))
    }

    /// Whether a request always has the field at this path, for each action that all scopes admit.
    pub(super) fn requires(&self, scopes: &[ActionScope], path: &[String]) -> bool {
        let admitted = |name: &str| scopes.iter().all(|scope| scope.admits(name));
        let mut inputs = self.actions.iter().filter(|(name, _)| admitted(name)).peekable();
        inputs.peek().is_some() && inputs.all(|(_, input)| is_required(input, path))
    }

    /// Whether the declared input of any action has this field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.actions.values().any(|input| input.contains_key(name))
    }
}

/// Whether a type is declared for the field at this path.
pub(super) fn is_declared(input: &Members, path: &[String]) -> bool {
    let Some((name, rest)) = path.split_first() else { return true };
    match input.get(name).map(|member| &member.kind) {
        None => false,
        Some(InputType::Record(inner)) => is_declared(inner, rest),
        Some(_) => true,
    }
}

fn is_required(input: &Members, path: &[String]) -> bool {
    let Some((name, rest)) = path.split_first() else { return true };
    input.get(name).is_some_and(|member| {
        member.required
            && match &member.kind {
                InputType::Record(inner) => is_required(inner, rest),
                _ => rest.is_empty(),
            }
    })
}
