//! The location and rule of a violation. They are built only on request and never contain the
//! value.

use std::fmt;

/// The maximum length of a pointer to show, in characters.
const LONGEST: usize = 512;

/// A value that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer (RFC 6901) from the context.
    pub pointer: String,
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}` breaks the rule {}", self.pointer, self.rule)
    }
}

/// Marks a violation. It has details only if the caller requested them.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) Option<Box<Violation>>);

pub(crate) type Validity = Result<(), Broken>;

/// A place in the context, as a linked list on the stack. Valid values need no allocation.
#[derive(Clone, Copy)]
pub(crate) struct At<'p> {
    up: Option<(&'p At<'p>, PathStep<'p>)>,
    tell: bool,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p> At<'p> {
    /// Returns the root of the context. `tell` is whether the caller wants details of violations.
    pub(crate) fn context(tell: bool) -> Self {
        Self { up: None, tell }
    }

    pub(crate) fn member(&'p self, name: &'p str) -> Self {
        Self { up: Some((self, PathStep::Member(name))), tell: self.tell }
    }

    pub(crate) fn item(&'p self, place: usize) -> Self {
        Self { up: Some((self, PathStep::Item(place))), tell: self.tell }
    }

    /// Returns the same place without details of violations.
    pub(crate) fn untold(&self) -> Self {
        Self { tell: false, ..*self }
    }

    pub(crate) fn is_context(&self) -> bool {
        self.up.is_none()
    }

    pub(crate) fn broken<T>(&self, rule: impl FnOnce() -> String) -> Result<T, Broken> {
        let violation = || Box::new(Violation { pointer: self.pointer(), rule: rule() });
        Err(Broken(self.tell.then(violation)))
    }

    fn pointer(&self) -> String {
        let steps = std::iter::successors(Some(self), |at| at.up.map(|(above, _)| above));
        let mut steps: Vec<_> = steps.filter_map(|at| at.up.map(|(_, step)| step)).collect();
        steps.reverse();
        let mut pointer = String::new();
        for step in steps {
            match step {
                PathStep::Member(name) => pointer.extend(["/", &escaped(name)]),
                PathStep::Item(place) => pointer.extend(["/", &place.to_string()]),
            }
        }
        match pointer.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", pointer.get(..end).unwrap_or_default()),
            None => pointer,
        }
    }
}

/// Escapes a name as a token of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
