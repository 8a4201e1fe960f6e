//! Values of one JSON token.

use super::{
    Reader,
    from_text::{TOO_LARGE, integer_problem, put_double, put_string},
    number,
    text::Stop,
};
use crate::{
    problems::Path,
    shape::Kind,
    wire::{self, Wire},
};

impl Reader<'_> {
    /// Reads a value without its tag.
    pub(super) fn value(&mut self, kind: &'static Kind, path: &Path<'_>) -> Result<(), Stop> {
        match kind {
            Kind::Message(shape) => {
                let start = wire::open(self.out);
                self.message(shape, path)?;
                wire::close(self.out, start);
                Ok(())
            }
            Kind::Wrapper(inner) => {
                let start = wire::open(self.out);
                wire::put_tag(self.out, 1, Wire::of(inner));
                self.value(inner, path)?;
                wire::close(self.out, start);
                Ok(())
            }
            Kind::Struct | Kind::Value | Kind::List => self.free(kind, path),
            Kind::Bool => self.boolean(path),
            Kind::Float | Kind::Double => self.double(kind, path),
            _ => match wire::range(kind) {
                Some(range) => self.integer(kind, range, path),
                None => self.string(kind, path),
            },
        }
    }

    fn boolean(&mut self, path: &Path<'_>) -> Result<(), Stop> {
        match self.text.peek() {
            b't' => self.text.word("true")?,
            b'f' => {
                self.out.push(0);
                return self.text.word("false");
            }
            _ => return self.mistyped("true or false", path),
        }
        self.out.push(1);
        Ok(())
    }

    fn double(&mut self, kind: &Kind, path: &Path<'_>) -> Result<(), Stop> {
        if !matches!(self.text.peek(), b'-' | b'0'..=b'9') {
            return self.mistyped("a number", path);
        }
        let literal = self.text.number()?;
        if put_double(kind, literal, self.out).is_none() {
            self.problems.add(path, TOO_LARGE);
        }
        Ok(())
    }

    fn integer(&mut self, kind: &Kind, range: (i128, i128), path: &Path<'_>) -> Result<(), Stop> {
        let in_text = self.text.peek() == b'"' && range.1 > i128::from(u32::MAX);
        let value = if in_text {
            self.text.string()?.parse().ok()
        } else if matches!(self.text.peek(), b'-' | b'0'..=b'9') {
            number::integer(self.text.number()?)
        } else {
            return self.mistyped("an integer", path);
        };
        match value {
            Some(value) if value >= range.0 && value <= range.1 => {
                wire::put_integer(self.out, kind, value);
            }
            _ => self.problems.add(path, integer_problem(range)),
        }
        Ok(())
    }

    fn string(&mut self, kind: &Kind, path: &Path<'_>) -> Result<(), Stop> {
        if self.text.peek() != b'"' {
            return self.mistyped("a string", path);
        }
        let text = self.text.string()?;
        if let Err(problem) = put_string(kind, &text, self.out) {
            self.problems.add(path, problem);
        }
        Ok(())
    }
}
