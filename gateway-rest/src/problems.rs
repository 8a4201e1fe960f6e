//! Collects everything wrong with a request, each with the path to it.

use std::fmt::{self, Display};

use crate::fault::Problem;

/// More than this many help nobody.
const MOST: usize = 50;

/// Where in the body we are: a list from the leaf up, on the stack.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Display for Path<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => to.write_str(name),
            Self::Member(parent, name) => write!(to, "{parent}.{name}"),
            Self::Item(parent, place) => write!(to, "{parent}[{place}]"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    pub(crate) fn add(&mut self, field: impl Display, problem: impl Into<String>) {
        match self.list.len() {
            MOST => self.list.push(Problem {
                field: String::new(),
                problem: "there is more wrong, not listed here".to_owned(),
            }),
            count if count > MOST => {}
            _ => self.list.push(Problem { field: field.to_string(), problem: problem.into() }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<Problem> {
        self.list
    }
}
