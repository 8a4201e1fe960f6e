//! Labels that are made from the names of fields.

/// The maximum number of characters of a label.
const LONGEST: usize = 60;

/// A path as a readable label: `line_items` becomes `Line items`.
pub(crate) fn label(path: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for letter in path.chars().take(LONGEST) {
        match letter {
            '.' | '_' | '-' => words.push(' '),
            '"' => {}
            letter if letter.is_uppercase() && was_lower => {
                words.push(' ');
                words.extend(letter.to_lowercase());
            }
            letter => words.push(letter),
        }
        was_lower = letter.is_lowercase();
    }
    let words = words.trim();
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
