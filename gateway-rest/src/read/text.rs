//! A JSON lexer (RFC 8259) that borrows strings and numbers from the text.

use std::borrow::Cow;

/// The reason why reading ended before the text did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Not JSON: the position of the byte, and the expected token.
    Malformed(usize, &'static str),
    /// Nested deeper than [`DEPTH`]; the problem has been recorded with its path.
    Deep,
}

/// The maximum nesting of arrays and objects. It is counted from the whole body in typed messages,
/// and from the member in free-form values.
pub(crate) const DEPTH: u8 = 32;

pub(crate) struct Text<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, Stop> {
        Err(Stop::Malformed(self.at, expected))
    }

    fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the next byte after white space; 0 at the end.
    pub(crate) fn peek(&mut self) -> u8 {
        loop {
            match self.here() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return byte,
                None => return 0,
            }
        }
    }

    pub(crate) fn end(&mut self) -> Result<(), Stop> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { self.fail("the end of the text") }
    }

    /// Consumes `byte` if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        if found {
            self.at += 1;
        }
        found
    }

    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Stop> {
        if self.take(byte) { Ok(()) } else { self.fail(expected) }
    }

    /// Reads the separator after an item. Returns true if another item follows, false if `end`
    /// closed the list.
    pub(crate) fn another(&mut self, end: u8) -> Result<bool, Stop> {
        if self.take(b',') {
            return if self.peek() == end {
                self.fail("a value after the comma")
            } else {
                Ok(true)
            };
        }
        if self.take(end) {
            return Ok(false);
        }
        self.fail(if end == b']' { "`,` or `]`" } else { "`,` or `}`" })
    }

    /// Reads a member's name and the colon after it.
    pub(crate) fn name(&mut self) -> Result<Cow<'a, str>, Stop> {
        if self.peek() != b'"' {
            return self.fail("a member's name in quotes");
        }
        let name = self.string()?;
        self.expect(b':', "`:`")?;
        Ok(name)
    }

    pub(crate) fn word(&mut self, word: &'static str) -> Result<(), Stop> {
        self.peek();
        if self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()))
        {
            self.at += word.len();
            return Ok(());
        }
        self.fail("a JSON value")
    }

    /// Reads a string. It is borrowed from the text unless it has escapes.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, Stop> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        self.plain();
        if self.here() == Some(b'"') {
            let plain = self.text.get(start..self.at).unwrap_or_default();
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut owned = String::new();
        let mut from = start;
        loop {
            owned.push_str(self.text.get(from..self.at).unwrap_or_default());
            match self.here() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(owned));
                }
                Some(b'\\') => {
                    self.at += 1;
                    owned.push(self.escape()?);
                }
                Some(_) => return self.fail("no control character; escape it"),
                None => return self.fail("the string's closing quote"),
            }
            from = self.at;
            self.plain();
        }
    }

    /// Skips the plain characters of a string.
    fn plain(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let stop = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
        self.at += stop.unwrap_or(rest.len());
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let escaped = match self.here() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return self.fail("a valid escape"),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn unicode(&mut self) -> Result<char, Stop> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u")) {
                return self.fail("the other half of a surrogate pair");
            }
            self.at += 2;
            let second = self.hex()?;
            if !(0xdc00..0xe000).contains(&second) {
                return self.fail("the other half of a surrogate pair");
            }
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        // The only remaining value that is not a char is a low surrogate without a high one.
        char::from_u32(code).map_or_else(|| self.fail("the first half of a surrogate pair"), Ok)
    }

    fn hex(&mut self) -> Result<u32, Stop> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let mut code = 0;
        for digit in digits {
            let Some(digit) = char::from(*digit).to_digit(16) else {
                return self.fail("four hexadecimal digits");
            };
            code = code << 4 | digit;
        }
        if digits.len() < 4 {
            return self.fail("four hexadecimal digits");
        }
        self.at += 4;
        Ok(code)
    }

    /// Reads a number as written, checked against the grammar.
    pub(crate) fn number(&mut self) -> Result<&'a str, Stop> {
        self.peek();
        let start = self.at;
        if self.here() == Some(b'-') {
            self.at += 1;
        }
        match self.here() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fail("a JSON value"),
        }
        if self.here() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.here(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.here(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        if matches!(self.here(), Some(b'0'..=b'9' | b'.' | b'a'..=b'z' | b'A'..=b'Z' | b'+')) {
            return self.fail("the end of the number");
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn digits(&mut self) {
        while matches!(self.here(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Stop> {
        if !matches!(self.here(), Some(b'0'..=b'9')) {
            return self.fail("a digit");
        }
        self.digits();
        Ok(())
    }

    /// Returns the kind of the next value, in words; an error if it is not a value.
    pub(crate) fn found(&mut self) -> Result<&'static str, Stop> {
        Ok(match self.peek() {
            b'"' => "a string",
            b'{' => "an object",
            b'[' => "an array",
            b't' | b'f' => "a boolean",
            b'n' => "null",
            b'-' | b'0'..=b'9' => "a number",
            _ => return self.fail("a JSON value"),
        })
    }

    /// Returns the line and column (in characters), from 1, of a byte of the text.
    pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}
