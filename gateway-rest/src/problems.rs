//! Collects all problems of a request, each with its path.

use std::fmt::{self, Display};

use crate::{
    fault::{Fault, Problem},
    shorten::{json_len, shortened},
};

/// The maximum number of listed problems; a longer list would not help.
const MOST: usize = 50;
/// The size limit of the list, in bytes, within an error's 16 KiB.
const BYTES: usize = 12 << 10;
/// Member names and punctuation of one problem, in bytes.
const FRAME: usize = 32;
/// The maximum length of a path and of a problem, in characters. A problem may quote text of the
/// client.
const FIELD: usize = 100;
const PROBLEM: usize = 300;

/// The current path in the body: a linked list from the leaf up, on the stack.
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

/// The list of problems, bounded in number and size. Further problems are only counted.
#[derive(Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    /// The size of the list as JSON.
    bytes: usize,
    more: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, field: impl Display, problem: impl Into<String>) {
        if self.more > 0 || self.list.len() == MOST {
            self.more += 1;
            return;
        }
        // A name in a path may not contain U+0000, as over gRPC.
        let field = field.to_string().replace('\0', "\u{fffd}");
        let field = shortened(&field, FIELD).into_owned();
        let problem = shortened(&problem.into(), PROBLEM).into_owned();
        self.bytes += json_len(&field) + json_len(&problem) + FRAME;
        if self.bytes > BYTES {
            self.more += 1;
        } else {
            self.list.push(Problem { field, problem });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.more == 0
    }

    pub(crate) fn into_fault(self) -> Fault {
        Fault::invalid(self.list, self.more)
    }
}
