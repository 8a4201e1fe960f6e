//! Text in parts: plain, code and links.

use serde_json::Value;

/// A part of a sentence.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) code: bool,
    /// The page that explains the part, below `/docs/`.
    pub(super) link: Option<String>,
}

pub(super) type Paragraph = Vec<Piece>;

impl Piece {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: false, link: None }
    }

    pub(super) fn code(text: impl Into<String>) -> Self {
        Self { code: true, ..Self::plain(text) }
    }

    /// A schema's name, with a link to its page.
    pub(super) fn schema(name: &str) -> Self {
        Self { link: Some(format!("schemas/{name}")), ..Self::plain(name) }
    }
}

/// The parts of a paragraph: names in backticks are code.
pub(super) fn pieces(text: &str) -> Paragraph {
    let parts = text.split('`').enumerate();
    let pieces = parts.map(|(at, text)| Piece { code: at % 2 == 1, ..Piece::plain(text) });
    pieces.filter(|piece| !piece.text.is_empty()).collect()
}

/// The paragraphs of a description.
pub(super) fn paragraphs(value: &Value) -> Vec<Paragraph> {
    text(value).split("\n\n").filter(|text| !text.is_empty()).map(pieces).collect()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
