//! The catalogue of the console's texts. Templates and code have only the names of texts. All
//! texts can be read, reviewed and translated in one place.
//!
//! A text without parts is a constant. A text with parts is a function with one parameter for each
//! part, and contains the part's name in braces. If a text has a second form after `|`, its first
//! part is a count: the first form is for one, the second form for all other counts. A text with
//! `html` contains markup: its parts are escaped, and a page shows it unescaped. The texts in
//! `shared.rs` belong to several journeys.

use std::fmt::{Display, Formatter, Result};

use askama::filters::{Escaper, HtmlSafeOutput, Safe};
use authority_presentation::Amount;

use crate::kit::escape::Visible;

/// Defines texts: `NAME = "…";`, `name(part) = "… {part} …";`, `name(count) = "…" | "…";`. Each may
/// have `html` before its first form.
macro_rules! texts {
    ($($name:ident $(($($part:ident),+))? = $($html:ident)? $one:literal $(| $other:literal)?;)*) => {
        $(text! { $name [$($($part),+)?] $($html)? $one $(| $other)? })*
    };
}

macro_rules! text {
    ($name:ident [] $text:literal) => {
        pub(crate) const $name: &str = $text;
    };
    ($name:ident [] html $text:literal) => {
        pub(crate) const $name: askama::filters::Safe<&str> = askama::filters::Safe($text);
    };
    ($name:ident [$($part:ident),+] $text:literal) => {
        pub(crate) fn $name($($part: impl std::fmt::Display),+) -> String {
            format!($text)
        }
    };
    ($name:ident [$count:ident $(, $part:ident)*] $one:literal | $other:literal) => {
        pub(crate) fn $name($count: impl std::fmt::Display $(, $part: impl std::fmt::Display)*) -> String {
            if $count.to_string() == "1" { format!($one) } else { format!($other) }
        }
    };
    ($name:ident [$($part:ident),+] html $text:literal) => {
        pub(crate) fn $name($($part: impl $crate::texts::Part),+) -> askama::filters::Safe<String> {
            $(let $part = $crate::texts::Escaped($part);)+
            askama::filters::Safe(format!($text))
        }
    };
    ($name:ident [$count:ident $(, $part:ident)*] html $one:literal | $other:literal) => {
        pub(crate) fn $name(
            $count: impl $crate::texts::Part $(, $part: impl $crate::texts::Part)*
        ) -> askama::filters::Safe<String> {
            let $count = $crate::texts::Escaped($count);
            $(let $part = $crate::texts::Escaped($part);)*
            askama::filters::Safe(if $count.to_string() == "1" { format!($one) } else { format!($other) })
        }
    };
}

pub(crate) mod administration;
pub(crate) mod agents;
pub(crate) mod decisions;
pub(crate) mod forms;
pub(crate) mod inbox;
pub(crate) mod kit;
pub(crate) mod meanings;
pub(crate) mod overview;
pub(crate) mod policies;
pub(crate) mod records;
pub(crate) mod script;
pub(crate) mod session;
mod shared;
pub(crate) mod stop;
pub(crate) mod words;

pub(crate) use shared::*;

/// The parts as a list: `a, b, c`.
pub(crate) fn list<T: Part>(parts: &[T]) -> Safe<String> {
    let parts: Vec<_> = parts.iter().map(|part| Escaped(part).to_string()).collect();
    Safe(parts.join(", "))
}

/// The names as a list of code: `<code>a</code>, <code>b</code>`.
pub(crate) fn codes<T: Part>(names: &[T]) -> Safe<String> {
    let names: Vec<_> = names.iter().map(code).collect();
    list(&names)
}

/// A part of a text with markup. It writes its own HTML.
pub(crate) trait Part {
    fn write(&self, to: &mut Formatter<'_>) -> Result;
}

/// Displays a part as HTML.
struct Escaped<T>(T);

impl<T: Part> Display for Escaped<T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> Result {
        self.0.write(to)
    }
}

impl Part for str {
    fn write(&self, to: &mut Formatter<'_>) -> Result {
        Visible.write_escaped_str(to, self)
    }
}

impl Part for String {
    fn write(&self, to: &mut Formatter<'_>) -> Result {
        self.as_str().write(to)
    }
}

impl<T: Part + ?Sized> Part for &T {
    fn write(&self, to: &mut Formatter<'_>) -> Result {
        (**self).write(to)
    }
}

/// An absent part is empty.
impl<T: Part> Part for Option<T> {
    fn write(&self, to: &mut Formatter<'_>) -> Result {
        self.iter().try_for_each(|part| part.write(to))
    }
}

impl<T: Display> Part for Safe<T> {
    fn write(&self, to: &mut Formatter<'_>) -> Result {
        self.0.fmt(to)
    }
}

/// The output of a filter, such as `urlencode`.
impl<T: Display> Part for HtmlSafeOutput<T> {
    fn write(&self, to: &mut Formatter<'_>) -> Result {
        self.0.fmt(to)
    }
}

macro_rules! safe_parts {
    ($($kind:ty),+) => {
        $(impl Part for $kind {
            fn write(&self, to: &mut Formatter<'_>) -> Result {
                self.fmt(to)
            }
        })+
    };
}

// The separator of an amount's digits is not escaped.
safe_parts!(i32, u32, i64, u64, usize, Amount);

#[cfg(test)]
mod tests;
