//! Validates a request against its proto's rules (`buf.validate`). Reports all problems at once.
//!
//! build/rules.rs generates a [`Validate`] for each message; this file implements the rules. It
//! also rejects texts with U+0000, which Postgres cannot store, and times outside the calendar.

use std::{
    collections::{HashMap, HashSet},
    sync::{LazyLock, PoisonError, RwLock},
};

pub use gateway_rest::{json_len, shortened, suggestion};
use regex::Regex;

use crate::{
    free_form, pattern,
    wire::{Json, Time},
};

/// Implemented by the build script for every message.
pub trait Validate {
    /// Adds the problems of this message. Fields are named as in JSON (`hours.days[1]`).
    fn validate(&self, found: &mut Violations);
}

/// A field and its problem, as in `google.rpc.BadRequest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub field: String,
    pub problem: String,
    /// For the last entry of a full list, the number of violations that are not listed; otherwise
    /// 0.
    unlisted: usize,
}

/// The maximum number of listed violations. Further violations are only counted.
pub const MOST: usize = 50;
/// The maximum length of a field's path and of a quoted value, in characters.
const SHOWN: usize = 100;
/// The maximum length of a problem, in characters.
const PROBLEM: usize = 300;

impl Violation {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into(), unlisted: 0 }
    }

    /// The last entry of a full list, with the number of violations that are not listed.
    pub fn more(count: usize) -> Self {
        let problem = format!("and {count} more");
        Self { field: String::new(), problem, unlisted: count }
    }

    /// Returns the count of an entry that [`Self::more`] created; `None` for an ordinary violation.
    pub fn as_more(&self) -> Option<usize> {
        (self.unlisted > 0).then_some(self.unlisted)
    }
}

/// The violations found: at most [`MOST`], then a count of the rest.
#[derive(Debug, Default)]
pub struct Violations {
    prefix: String,
    pub list: Vec<Violation>,
}

/// The rules of a text. An absent text is only checked for `required`.
#[derive(Debug)]
pub struct Text {
    pub required: bool,
    /// The minimum length in characters. A text of exactly `min` or `max` characters is valid.
    pub min: usize,
    pub max: usize,
    /// A regular expression; empty for none.
    pub pattern: &'static str,
    pub email: bool,
    /// The allowed values; empty for any.
    pub of: &'static [&'static str],
}

impl Text {
    pub const ANY: Self =
        Self { required: false, min: 0, max: usize::MAX, pattern: "", email: false, of: &[] };

    /// Whether the rule refuses the empty text.
    fn refuses_empty(&self) -> bool {
        self.min > 0
            || self.email
            || (!self.of.is_empty() && !self.of.contains(&""))
            || (!self.pattern.is_empty() && !matches(self.pattern, ""))
    }

    /// Reports the problems of `value`, which must not be empty.
    fn problems(&self, value: &str, mut tell: impl FnMut(String)) {
        let length = value.chars().count();
        if length < self.min {
            tell(format!("is shorter than {} characters", self.min));
        }
        if length > self.max {
            return tell(format!("is longer than {} characters", self.max));
        }
        if value.contains('\0') {
            return tell("may not contain U+0000".to_owned());
        }
        if !self.of.is_empty() && !self.of.contains(&value) {
            tell(format!(
                "must be one of {}, not `{}`{}",
                self.of.join(", "),
                shortened(value, SHOWN),
                suggestion(value, self.of.iter().copied())
            ));
        }
        if self.email && !is_email(value) {
            tell(format!("`{}` is not an e-mail address", shortened(value, SHOWN)));
        }
        if !self.pattern.is_empty() && !matches(self.pattern, value) {
            let value = shortened(value, SHOWN);
            match pattern::words(self.pattern) {
                Some(words) => tell(format!("`{value}` must be {words}")),
                None => tell(format!("`{value}` does not match {}", self.pattern)),
            }
        }
    }
}

impl Violations {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn add(&mut self, field: &str, problem: impl Into<String>) {
        let field = format!("{}{field}", self.prefix);
        self.put(&Violation::new(field, problem));
    }

    /// Adds a violation. If the list is full, only counts the violation.
    pub fn put(&mut self, found: &Violation) {
        let counted = self.list.last().and_then(Violation::as_more);
        match (counted, found.as_more()) {
            (None, None) if self.list.len() < MOST => {
                let field = shortened(&found.field, SHOWN);
                self.list.push(Violation::new(field, shortened(&found.problem, PROBLEM)));
            }
            (None, many) => self.list.push(Violation::more(many.unwrap_or(1))),
            (Some(before), many) => {
                self.list.pop();
                self.list.push(Violation::more(before + many.unwrap_or(1)));
            }
        }
    }

    /// Adds the violations of a part. The current prefix is put before their fields.
    pub fn append(&mut self, part: Self) {
        for found in part.list {
            if found.as_more().is_some() {
                self.put(&found);
            } else {
                self.add(&found.field, found.problem);
            }
        }
    }

    /// Whether a list or any of its items has a violation.
    pub fn has_list(&self, field: &str) -> bool {
        let of = |found: &Violation| {
            let rest = found.field.strip_prefix(&self.prefix).and_then(|f| f.strip_prefix(field));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        self.list.iter().any(of)
    }

    /// Checks a text. `None` means absent. The empty text is a value, but does not satisfy
    /// `required`.
    pub fn text(&mut self, field: &str, value: Option<&str>, rule: &Text) {
        match value {
            None => self.present(field, !rule.required),
            Some("") if rule.required => self.present(field, false),
            Some("") if rule.refuses_empty() => {
                self.add(field, "may not be empty; leave it out or send null");
            }
            Some("") => {}
            Some(value) => rule.problems(value, |problem| self.add(field, problem)),
        }
    }

    /// Checks each text of a list. An empty text is a violation.
    pub fn texts(&mut self, field: &str, values: &[String], rule: &Text) {
        for (index, value) in values.iter().enumerate() {
            let field = format!("{field}[{index}]");
            if value.is_empty() {
                self.add(&field, "is empty");
            } else {
                rule.problems(value, |problem| self.add(&field, problem));
            }
        }
    }

    pub fn unique(&mut self, field: &str, values: &[String]) {
        let mut seen = HashSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.as_str())) {
            self.add(field, format!("names `{}` twice", shortened(twice, SHOWN)));
        }
    }

    /// Checks a range; both ends are included.
    pub fn integer(&mut self, field: &str, value: Option<i64>, least: i64, most: i64) {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            self.add(field, format!("`{value}` is outside {least} to {most}"));
        }
    }

    /// Checks a range; both ends are included. NaN and infinity are never allowed.
    pub fn number(&mut self, field: &str, value: Option<f64>, least: f64, most: f64) {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            self.add(field, format!("`{value}` is outside {least} to {most}"));
        }
    }

    /// Checks the length of a list, a map or bytes; both ends are included.
    ///
    /// Returns whether the length is at most `most`. Otherwise the caller does not check the items.
    pub fn length(&mut self, field: &str, length: usize, least: usize, most: usize) -> bool {
        if length < least {
            self.add(field, format!("has {length} entries and needs at least {least}"));
        }
        if length > most {
            self.add(field, format!("has {length} entries and may have {most}"));
        }
        length <= most
    }

    pub fn time(&mut self, field: &str, value: Option<Time>) {
        if value.is_some_and(|value| value.moment().is_none()) {
            self.add(field, "must be a time of the years 1 to 9999");
        }
    }

    pub fn json(&mut self, field: &str, value: Option<&Json>) {
        if let Some(value) = value {
            free_form::check(field, value, |field, problem| self.add(field, problem));
        }
    }

    pub fn present(&mut self, field: &str, is: bool) {
        if !is {
            self.add(field, "is required");
        }
    }

    /// Reports a value for a field that only the server may set.
    pub fn output_only(&mut self, field: &str, is: bool) {
        if !is {
            self.add(field, "is set by the server; leave it out");
        }
    }

    /// Runs `check` with its violations prefixed with `field`.
    pub fn within(&mut self, field: &str, check: impl FnOnce(&mut Self)) {
        let outer = self.prefix.len();
        self.prefix.push_str(field);
        self.prefix.push('.');
        check(self);
        self.prefix.truncate(outer);
    }
}

/// `local@domain.tld` as used on the internet; deliberately narrower than RFC 5321.
fn is_email(value: &str) -> bool {
    const PATTERN: &str = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$";
    value.len() <= 254 && matches(PATTERN, value)
}

/// Patterns are compiled once. An invalid pattern does not match any value.
fn matches(pattern: &'static str, value: &str) -> bool {
    static COMPILED: LazyLock<RwLock<HashMap<&'static str, Option<Regex>>>> =
        LazyLock::new(RwLock::default);
    let is_match = |regex: &Option<Regex>| regex.as_ref().is_some_and(|r| r.is_match(value));
    if let Some(regex) = COMPILED.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return is_match(regex);
    }
    let regex = Regex::new(pattern).ok();
    let answer = is_match(&regex);
    COMPILED.write().unwrap_or_else(PoisonError::into_inner).insert(pattern, regex);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_fault_at_once() {
        let mut found = Violations::default();
        let rule = Text { required: true, max: 3, of: &["a", "b"], ..Text::ANY };
        found.text("none", None, &rule);
        found.text("long", Some("abcd"), &rule);
        found.within("outer", |found| found.text("word", Some("c"), &rule));
        found.texts("tags", &["a".into(), String::new()], &rule);
        found.text("nul", Some("a\0"), &Text::ANY);
        let fields: Vec<_> = found.list.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, ["none", "long", "outer.word", "tags[1]", "nul"]);
    }

    #[test]
    fn the_empty_text_is_a_value() {
        let asked = |rule: Text| {
            let mut found = Violations::default();
            found.text("member", Some(""), &rule);
            found.text("member", None, &rule);
            found.list.len()
        };
        for rule in [
            Text { of: &["a"], ..Text::ANY },
            Text { email: true, ..Text::ANY },
            Text { min: 1, ..Text::ANY },
            Text { pattern: "^[a-z]+$", ..Text::ANY },
        ] {
            assert_eq!(asked(rule), 1, "only the empty text is a violation");
        }
        assert_eq!(asked(Text { required: true, ..Text::ANY }), 2);
        assert_eq!(asked(Text { max: 3, ..Text::ANY }), 0, "free text may be empty");
    }

    #[test]
    fn a_flood_of_faults_is_counted_and_long_values_are_shortened() {
        let mut found = Violations::default();
        let long = "x".repeat(100_000);
        for place in 0..236 {
            found.add(&format!("{long}[{place}]"), format!("`{long}` is wrong"));
        }
        assert_eq!(found.list.len(), MOST + 1);
        assert_eq!(found.list.last().unwrap().problem, "and 186 more");
        let sizes = found.list.iter().map(|v| v.field.chars().count() + v.problem.chars().count());
        assert!(sizes.max().unwrap() <= SHOWN + PROBLEM);
        // The count of further violations is added, and belongs to no field.
        let mut all = Violations::default();
        all.within("outer", |all| all.append(found));
        all.add("one", "is wrong");
        let last = all.list.last().unwrap();
        assert_eq!((last.field.as_str(), last.as_more()), ("", Some(187)));
        assert!(all.list[0].field.starts_with("outer.xxx"), "{}", all.list[0].field);
        // A violation with the text of a count is still a violation.
        assert_eq!(Violation::new("", "and 3 more").as_more(), None);
    }

    #[test]
    fn knows_email_addresses() {
        for good in ["a@example.com", "a.b+c@x-y.co.uk"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["a", "a@b", "@example.com", "a b@example.com", "a@-x.com", "a@x..com"] {
            assert!(!is_email(bad), "{bad}");
        }
    }
}
