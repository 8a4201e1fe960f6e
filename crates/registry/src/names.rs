//! Short names made from long ones.

/// Longest slug, in characters; each is one byte.
const LONGEST: usize = 63;

/// `Acme Europe, Ltd.` becomes `acme-europe-ltd`; empty if there is no ASCII letter or digit.
pub(super) fn slug(name: &str) -> String {
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

/// Sets the default of a text that was left out.
pub(super) fn or(text: &mut Option<String>, default: &str) {
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
