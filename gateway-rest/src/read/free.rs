//! Free-form JSON: `google.protobuf.Struct`, `Value` and `ListValue`.
//!
//! Numbers in it are doubles. A number that a double cannot represent is refused, because the
//! service would receive another number than the client signed or meant.

use std::{borrow::Cow, collections::HashSet};

use super::{Reader, from_text::NUL, number, text::Stop};
use crate::{
    problems::Path,
    shape::Kind,
    wire::{self, Wire},
};

/// Field numbers of `google.protobuf.Value`.
const NULL: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const BOOL: u32 = 4;
const STRUCT: u32 = 5;
const LIST: u32 = 6;

/// Up to this many names, pairwise comparison is faster than a set.
const FEW: usize = 16;

impl<'a> Reader<'a> {
    /// Reads a whole message of one of the three types, with its length. Its nesting is counted
    /// from here, at any place in a body, as the service counts it over gRPC. If it is too deep, the
    /// problem has the path of the whole message, as over gRPC.
    pub(super) fn free(&mut self, kind: &Kind, path: &Path<'_>) -> Result<(), Stop> {
        let outside = std::mem::take(&mut self.depth);
        let start = wire::open(self.out);
        match kind {
            Kind::Struct => self.object(path, path)?,
            Kind::List => self.array(path, path)?,
            _ => self.anything(path, path)?,
        }
        wire::close(self.out, start);
        self.depth = outside;
        Ok(())
    }

    fn anything(&mut self, path: &Path<'_>, whole: &Path<'_>) -> Result<(), Stop> {
        match self.text.peek() {
            b'"' => {
                let text = self.text.string()?;
                self.no_nul(&text, path);
                wire::put_tag(self.out, STRING, Wire::Length);
                wire::put_bytes(self.out, text.as_bytes());
            }
            b'{' => {
                wire::put_tag(self.out, STRUCT, Wire::Length);
                let start = wire::open(self.out);
                self.object(path, whole)?;
                wire::close(self.out, start);
            }
            b'[' => {
                wire::put_tag(self.out, LIST, Wire::Length);
                let start = wire::open(self.out);
                self.array(path, whole)?;
                wire::close(self.out, start);
            }
            b't' => {
                self.text.word("true")?;
                wire::put_tag(self.out, BOOL, Wire::Varint);
                self.out.push(1);
            }
            b'f' => {
                self.text.word("false")?;
                wire::put_tag(self.out, BOOL, Wire::Varint);
                self.out.push(0);
            }
            b'n' => {
                self.text.word("null")?;
                wire::put_tag(self.out, NULL, Wire::Varint);
                self.out.push(0);
            }
            _ => {
                let literal = self.text.number()?;
                let value = number::unrounded(literal).unwrap_or_else(|problem| {
                    self.problems.add(path, problem);
                    0.0
                });
                wire::put_tag(self.out, NUMBER, Wire::Eight);
                self.out.extend_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }

    fn object(&mut self, path: &Path<'_>, whole: &Path<'_>) -> Result<(), Stop> {
        if !self.enter_within(b'{', path, whole)? {
            return Ok(());
        }
        let base = self.names.len();
        let mut more = !self.text.take(b'}');
        while more {
            let name = self.text.name()?;
            let here = Path::Member(path, &name);
            self.no_nul(&name, &here);
            wire::put_tag(self.out, 1, Wire::Length);
            let entry = wire::open(self.out);
            wire::put_tag(self.out, 1, Wire::Length);
            wire::put_bytes(self.out, name.as_bytes());
            wire::put_tag(self.out, 2, Wire::Length);
            let value = wire::open(self.out);
            self.anything(&here, whole)?;
            wire::close(self.out, value);
            wire::close(self.out, entry);
            self.names.push(name);
            more = self.text.another(b'}')?;
        }
        self.unique(base, path);
        self.depth -= 1;
        Ok(())
    }

    fn array(&mut self, path: &Path<'_>, whole: &Path<'_>) -> Result<(), Stop> {
        if !self.enter_within(b'[', path, whole)? {
            return Ok(());
        }
        let mut more = !self.text.take(b']');
        let mut place = 0;
        while more {
            wire::put_tag(self.out, 1, Wire::Length);
            let start = wire::open(self.out);
            self.anything(&Path::Item(path, place), whole)?;
            wire::close(self.out, start);
            place += 1;
            more = self.text.another(b']')?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn no_nul(&mut self, text: &str, path: &Path<'_>) {
        if text.as_bytes().contains(&0) {
            self.problems.add(path, NUL);
        }
    }

    /// Reports the duplicate names of an object, and removes its names from the list.
    pub(super) fn unique(&mut self, base: usize, path: &Path<'_>) {
        let names = self.names.get(base..).unwrap_or_default();
        if names.len() <= FEW {
            for (place, name) in names.iter().enumerate() {
                if names.iter().take(place).any(|earlier| earlier == name) {
                    self.problems.add(Path::Member(path, name), "is given more than once");
                }
            }
        } else {
            let mut known: HashSet<&Cow<'a, str>> = HashSet::with_capacity(names.len());
            for name in names {
                if !known.insert(name) {
                    self.problems.add(Path::Member(path, name), "is given more than once");
                }
            }
        }
        self.names.truncate(base);
    }
}
