//! Colours as `#RRGGBB`, and their contrast with each other (WCAG 2.2, 1.4.3).

use std::fmt;

/// The minimum contrast ratio between a text and its background.
pub const LEAST_CONTRAST: f64 = 4.5;

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour([u8; 3]);

impl Colour {
    pub const BLACK: Self = Self([0; 3]);
    pub const WHITE: Self = Self([255; 3]);

    /// Reads `#RRGGBB`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// Returns the contrast ratio, 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// Returns the text colour with the higher contrast on this background: black or white.
    #[must_use]
    pub fn text(self) -> Self {
        if self.contrast(Self::BLACK) >= self.contrast(Self::WHITE) {
            Self::BLACK
        } else {
            Self::WHITE
        }
    }

    /// Returns the relative luminance, 0 to 1.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

/// Formats the colour as `#rrggbb`.
impl fmt::Display for Colour {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(to, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(one: &str, two: &str) -> f64 {
        Colour::parse(one).unwrap().contrast(Colour::parse(two).unwrap())
    }

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        assert!((ratio("#000000", "#FFFFFF") - 21.0).abs() < 1e-9);
        assert!((ratio("#abcdef", "#abcdef") - 1.0).abs() < 1e-9);
        // On white, the first grey is just within the guidelines' limit, and the second is not.
        assert!(ratio("#767676", "#ffffff") >= LEAST_CONTRAST);
        assert!(ratio("#777777", "#ffffff") < LEAST_CONTRAST);
    }

    #[test]
    fn text_without_a_colour_is_black_or_white_and_readable() {
        for ground in ["#000000", "#ffffff", "#777777", "#ff0000", "#00ff00", "#0000ff", "#112233"]
        {
            let ground = Colour::parse(ground).unwrap();
            assert!(ground.contrast(ground.text()) >= LEAST_CONTRAST, "{ground}");
        }
    }

    #[test]
    fn other_texts_are_no_colours() {
        for text in ["", "#", "#12345", "#1234567", "#+12345", "red", "123456", "#12345g"] {
            assert_eq!(Colour::parse(text), None, "{text}");
        }
        assert_eq!(Colour::parse("#A0b1C2").unwrap().to_string(), "#a0b1c2");
    }
}
