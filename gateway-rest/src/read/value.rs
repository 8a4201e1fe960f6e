//! Any JSON as a value, read as strictly as a body: no duplicate member, no lone surrogate, no number
//! that a double would round.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{
    number,
    text::{Stop, Text},
};

/// Reads JSON that every parser understands in the same way, nested at most `levels` deep.
///
/// # Errors
/// The reason why the text is refused.
pub fn strict(json: &[u8], levels: u8) -> Result<Value, String> {
    let text = std::str::from_utf8(json)
        .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
    let mut reader = ValueReader { text: Text::new(text), levels, problem: None };
    let read = reader.value().and_then(|value| reader.text.end().map(|()| value));
    match (read, reader.problem) {
        (_, Some(problem)) => Err(problem),
        (Ok(value), None) => Ok(value),
        (Err(Stop::Deep), None) => Err(format!("nested deeper than {levels} levels")),
        (Err(Stop::Malformed(at, expected)), None) => {
            Err(format!("not JSON at byte {at}: expected {expected}"))
        }
    }
}

struct ValueReader<'a> {
    text: Text<'a>,
    /// The levels of nesting that are left.
    levels: u8,
    /// The first problem of a text that is JSON.
    problem: Option<String>,
}

impl ValueReader<'_> {
    fn value(&mut self) -> Result<Value, Stop> {
        Ok(match self.text.peek() {
            b'"' => Value::String(self.text.string()?.into_owned()),
            b'{' => self.nested(Self::object)?,
            b'[' => self.nested(Self::array)?,
            b't' => self.text.word("true").map(|()| Value::Bool(true))?,
            b'f' => self.text.word("false").map(|()| Value::Bool(false))?,
            b'n' => self.text.word("null").map(|()| Value::Null)?,
            _ => self.number()?,
        })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Stop>) -> Result<Value, Stop> {
        self.levels = self.levels.checked_sub(1).ok_or(Stop::Deep)?;
        let value = read(self);
        self.levels += 1;
        value
    }

    fn object(&mut self) -> Result<Value, Stop> {
        self.text.expect(b'{', "`{`")?;
        let (mut members, mut names) = (Map::new(), HashSet::new());
        let mut more = !self.text.take(b'}');
        while more {
            let name = self.text.name()?.into_owned();
            if !names.insert(name.clone()) {
                self.add(format!("the member `{name}` is given more than once"));
            }
            let value = self.value()?;
            members.insert(name, value);
            more = self.text.another(b'}')?;
        }
        Ok(Value::Object(members))
    }

    fn array(&mut self) -> Result<Value, Stop> {
        self.text.expect(b'[', "`[`")?;
        let mut items = Vec::new();
        let mut more = !self.text.take(b']');
        while more {
            items.push(self.value()?);
            more = self.text.another(b']')?;
        }
        Ok(Value::Array(items))
    }

    fn number(&mut self) -> Result<Value, Stop> {
        let literal = self.text.number()?;
        let double = number::unrounded(literal).unwrap_or_else(|problem| {
            self.add(format!("the number {literal} {problem}"));
            0.0
        });
        let whole = literal.parse::<i64>().map(Number::from).ok();
        Ok(whole.or_else(|| Number::from_f64(double)).map_or(Value::Null, Value::Number))
    }

    fn add(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_json_that_has_one_meaning() {
        let text = br#" {"a": [1, -2.5, 1e3, "\ud83d\ude00\n", null, true], "b": {"a": {}}} "#;
        let expected = json!({"a": [1, -2.5, 1000.0, "\u{1f600}\n", null, true], "b": {"a": {}}});
        assert_eq!(strict(text, 3), Ok(expected));
    }

    #[test]
    fn refuses_json_that_parsers_understand_differently() {
        for (text, reason) in [
            (r#"{"a": 1, "a": 1}"#, "the member `a` is given more than once"),
            (r#"[{"x": {"a": 1, "\u0061": 2}}]"#, "the member `a` is given more than once"),
            (r#"["\ud800"]"#, "the other half of a surrogate pair"),
            ("[1e400]", "2^53-1"),
            ("[9007199254740993]", "2^53-1"),
            ("[0.1000000000000000055511151231257827]", "would be rounded"),
            ("[[[[0]]]]", "nested deeper than 3 levels"),
            ("[1,]", "not JSON"),
            ("[1] 2", "not JSON"),
            ("[01]", "not JSON"),
            ("", "not JSON"),
            ("\u{feff}[]", "not JSON"),
        ] {
            let problem = strict(text.as_bytes(), 3).unwrap_err();
            assert!(problem.contains(reason), "{text}: {problem}");
        }
        assert!(strict(b"\"\xff\"", 3).unwrap_err().contains("not UTF-8"));
    }
}
