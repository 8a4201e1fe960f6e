//! Short names derived from long ones.

/// The maximum length of a slug, in characters. Each character is one byte.
const LONGEST: usize = 63;

/// Converts a name such as `Acme Europe, Ltd.` to `acme-europe-ltd`. The result is empty if the
/// name has no ASCII letter or digit.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(LONGEST);
    slug.trim_end_matches('-').to_owned()
}

/// Sets a text to its default if it was omitted.
pub(crate) fn or(text: &mut Option<String>, default: &str) {
    text.get_or_insert_with(|| default.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_a_slug() {
        assert_eq!(slug("Acme Europe, Ltd."), "acme-europe-ltd");
        assert_eq!(slug("--A__b--"), "a-b");
        assert_eq!(slug("日本"), "");
        assert_eq!(slug(&"x".repeat(100)).len(), LONGEST);
    }
}
