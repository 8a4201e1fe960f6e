//! Converts JSON text to protobuf bytes in one pass, by [`Shape`]. Finds every problem of the text.

mod free;
mod from_text;
mod number;
mod scalar;
mod text;
mod value;

use std::borrow::Cow;

use http::StatusCode;
use tonic::Code;

use crate::{
    fault::{Fault, reason},
    nearest,
    problems::{Path, Problems},
    shape::{Cardinality, Field, Kind, Shape},
    wire::{self, Wire},
};
pub use from_text::NUL;
pub(crate) use from_text::from_text;
pub use number::BEYOND;
pub(crate) use text::Stop;
use text::{DEPTH, Text};
pub use value::strict;

/// Which fields of a message were present, by position.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen([u64; MOST_FIELDS / 64]);

/// The fields of a message that were present in a text.
#[derive(Clone, Copy, Default)]
pub(crate) struct Members {
    pub(crate) seen: Seen,
    /// The present fields that are null.
    pub(crate) null: Seen,
}

/// The error for an empty bounding list.
pub(crate) const NO_ITEM: &str =
    "is an empty list; leave it out for no bound; in an update, null removes one";

/// The maximum number of fields of a message; `gateway-rest-build` refuses more.
const MOST_FIELDS: usize = 256;

impl Seen {
    /// Marks the field as present, and returns whether it was already present.
    fn again(&mut self, position: usize) -> bool {
        let bit = 1 << (position % 64);
        self.0.get_mut(position / 64).is_some_and(|word| {
            let again = *word & bit != 0;
            *word |= bit;
            again
        })
    }

    pub(crate) fn contains(self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word & (1 << (position % 64)) != 0)
    }
}

/// Reads one text into `out`. If it adds to `problems`, `out` is invalid.
pub(crate) struct Reader<'a> {
    text: Text<'a>,
    depth: u8,
    out: &'a mut Vec<u8>,
    problems: &'a mut Problems,
    /// Member names of the open free-form objects, for finding duplicates.
    names: Vec<Cow<'a, str>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, out: &'a mut Vec<u8>, problems: &'a mut Problems) -> Self {
        Self { text: Text::new(text), depth: 0, out, problems, names: Vec::new() }
    }

    /// Reads a whole text as one message. Returns the members that were present.
    pub(crate) fn whole(&mut self, shape: &'static Shape) -> Result<Members, Stop> {
        let seen = self.message(shape, &Path::Root)?;
        self.text.end()?;
        Ok(seen)
    }

    /// Reads a whole text as the value of one field, and writes it with its tag. Returns the
    /// members that were present, if it is a message.
    pub(crate) fn whole_field(&mut self, field: &'static Field) -> Result<Members, Stop> {
        let alone = matches!(field.cardinality, Cardinality::Single | Cardinality::Optional);
        let mut seen = Members::default();
        if let (Kind::Message(shape), true) = (&field.kind, alone) {
            wire::put_tag(self.out, field.number, Wire::Length);
            let start = wire::open(self.out);
            seen = self.message(shape, &Path::Root)?;
            wire::close(self.out, start);
        } else {
            self.field(field, &Path::Root)?;
        }
        self.text.end()?;
        Ok(seen)
    }

    /// Opens an array or object. Reports any other value and returns false.
    fn enter(&mut self, bracket: u8, path: &Path<'_>) -> Result<bool, Stop> {
        self.enter_within(bracket, path, path)
    }

    /// Like `enter`, but reports a nesting that is too deep at the path `whole`.
    fn enter_within(
        &mut self,
        bracket: u8,
        path: &Path<'_>,
        whole: &Path<'_>,
    ) -> Result<bool, Stop> {
        if !self.text.take(bracket) {
            let expected = if bracket == b'[' { "an array" } else { "an object" };
            self.mistyped(expected, path)?;
            return Ok(false);
        }
        self.deeper(whole)?;
        Ok(true)
    }

    fn deeper(&mut self, path: &Path<'_>) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > DEPTH {
            self.problems.add(path, format!("is nested deeper than {DEPTH} levels"));
            return Err(Stop::Deep);
        }
        Ok(())
    }

    fn mistyped(&mut self, expected: &str, path: &Path<'_>) -> Result<(), Stop> {
        let found = self.text.found()?;
        self.problems.add(path, format!("must be {expected}, not {found}"));
        self.skip(path)
    }

    fn message(&mut self, shape: &'static Shape, path: &Path<'_>) -> Result<Members, Stop> {
        let Members { mut seen, mut null } = Members::default();
        if !self.enter(b'{', path)? {
            return Ok(Members { seen, null });
        }
        // The members of oneofs that have a value. A null does not choose a member.
        let mut chosen = Seen::default();
        let mut more = !self.text.take(b'}');
        while more {
            let name = self.text.name()?;
            let here = Path::Member(path, &name);
            match shape.position(&name).and_then(|at| Some((at, shape.fields.get(at)?))) {
                None => {
                    let known = shape.fields.iter().map(|field| field.name);
                    let suggestion = nearest::suggestion(&name, known);
                    self.problems.add(here, format!("is an unknown field{suggestion}"));
                    self.skip(&here)?;
                }
                Some((position, _)) if seen.again(position) => {
                    self.problems.add(here, "is given more than once");
                    self.skip(&here)?;
                }
                Some((position, field)) => {
                    let given = self.field(field, &here)?;
                    if !given {
                        null.again(position);
                    } else if field.oneof != 0 {
                        self.exclusive(shape, chosen, field, &here);
                        chosen.again(position);
                    }
                }
            }
            more = self.text.another(b'}')?;
        }
        self.depth -= 1;
        Ok(Members { seen, null })
    }

    /// Reports a second member of the same oneof.
    fn exclusive(&mut self, shape: &Shape, chosen: Seen, field: &Field, path: &Path<'_>) {
        let mut others = shape.fields.iter().enumerate();
        let other = others.find(|(at, other)| other.oneof == field.oneof && chosen.contains(*at));
        if let Some((_, other)) = other {
            self.problems
                .add(path, format!("cannot be combined with `{}`; give one of them", other.name));
        }
    }

    /// Reads a field, with its tag. Returns false if it is null, which means absence.
    fn field(&mut self, field: &'static Field, path: &Path<'_>) -> Result<bool, Stop> {
        if self.text.peek() == b'n' {
            self.text.word("null")?;
            return Ok(false);
        }
        match field.cardinality {
            Cardinality::Single | Cardinality::Optional => self.tagged(field, path)?,
            Cardinality::Repeated | Cardinality::Bound => self.list(field, path)?,
            Cardinality::Map => self.map(field, path)?,
        }
        Ok(true)
    }

    fn tagged(&mut self, field: &'static Field, path: &Path<'_>) -> Result<(), Stop> {
        wire::put_tag(self.out, field.number, Wire::of(&field.kind));
        self.value(&field.kind, path)
    }

    fn list(&mut self, field: &'static Field, path: &Path<'_>) -> Result<(), Stop> {
        if !self.enter(b'[', path)? {
            return Ok(());
        }
        let packed = Wire::of(&field.kind) != Wire::Length;
        let mut more = !self.text.take(b']');
        if !more && field.cardinality == Cardinality::Bound {
            self.problems.add(path, NO_ITEM);
        }
        let mut start = 0;
        if packed && more {
            wire::put_tag(self.out, field.number, Wire::Length);
            start = wire::open(self.out);
        }
        let (closing, mut place) = (more, 0);
        while more {
            let here = Path::Item(path, place);
            if packed {
                self.value(&field.kind, &here)?;
            } else {
                self.tagged(field, &here)?;
            }
            place += 1;
            more = self.text.another(b']')?;
        }
        if packed && closing {
            wire::close(self.out, start);
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads an object as a map: entries of key and value.
    fn map(&mut self, field: &'static Field, path: &Path<'_>) -> Result<(), Stop> {
        let Kind::Message(Shape { fields: [key, value], .. }) = &field.kind else {
            return self.skip(path);
        };
        if !self.enter(b'{', path)? {
            return Ok(());
        }
        let base = self.names.len();
        let mut more = !self.text.take(b'}');
        while more {
            let name = self.text.name()?;
            let here = Path::Member(path, &name);
            wire::put_tag(self.out, field.number, Wire::Length);
            let start = wire::open(self.out);
            wire::put_tag(self.out, key.number, Wire::of(&key.kind));
            if let Err(problem) = from_text(&key.kind, &name, self.out) {
                self.problems.add(here, format!("is not a valid key: it {problem}"));
            }
            self.tagged(value, &here)?;
            wire::close(self.out, start);
            self.names.push(name);
            more = self.text.another(b'}')?;
        }
        self.unique(base, path);
        self.depth -= 1;
        Ok(())
    }

    /// Skips any value. Duplicate names in it are not reported, because it is refused anyway.
    fn skip(&mut self, path: &Path<'_>) -> Result<(), Stop> {
        match self.text.peek() {
            b'"' => self.text.string().map(drop),
            b't' => self.text.word("true"),
            b'f' => self.text.word("false"),
            b'n' => self.text.word("null"),
            b'[' => {
                self.enter(b'[', path)?;
                let mut more = !self.text.take(b']');
                while more {
                    self.skip(path)?;
                    more = self.text.another(b']')?;
                }
                self.depth -= 1;
                Ok(())
            }
            b'{' => {
                self.enter(b'{', path)?;
                let mut more = !self.text.take(b'}');
                while more {
                    self.text.name()?;
                    self.skip(path)?;
                    more = self.text.another(b'}')?;
                }
                self.depth -= 1;
                Ok(())
            }
            _ => self.text.number().map(drop),
        }
    }
}

/// Returns the text of a body, or a fault if its bytes are not UTF-8.
pub(crate) fn utf8(json: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(json).map_err(|error| {
        malformed(format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// Converts the result of reading: `None` if the text is nested too deep, an error if it is
/// malformed.
pub(crate) fn verdict<T>(
    read: Result<T, Stop>,
    text: &str,
    problems: &mut Problems,
) -> Result<Option<T>, Fault> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Stop::Deep) => Ok(None),
        Err(Stop::Malformed(at, expected)) => {
            let (line, column) = Text::line_and_column(text, at);
            *problems = Problems::default();
            if text.starts_with('\u{feff}') {
                let mark = "the body begins with a byte order mark (U+FEFF): send it without one";
                return Err(malformed(mark.to_owned()));
            }
            Err(malformed(format!(
                "the body is malformed JSON at line {line}, column {column}: expected {expected}"
            )))
        }
    }
}

fn malformed(message: String) -> Fault {
    let fault = Fault::new(Code::InvalidArgument, reason::MALFORMED_JSON, message);
    Fault { status: Some(StatusCode::BAD_REQUEST), ..fault }
}
