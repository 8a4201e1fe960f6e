//! Splits sentences at names in backticks.

/// A part of a sentence, or a name in it.
pub(super) struct Piece {
    pub(super) code: bool,
    pub(super) text: String,
}

/// The parts of a paragraph.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let parts = text.split('`').enumerate();
    let pieces = parts.map(|(at, text)| Piece { code: at % 2 == 1, text: text.to_owned() });
    pieces.filter(|piece| !piece.text.is_empty()).collect()
}
