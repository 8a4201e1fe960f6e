//! The `q` of lists: a text within others, whatever the case.

/// A pattern of LIKE for texts that contain this one: `%`, `_` and `\` stand for themselves.
pub(super) fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.to_lowercase().chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// Filters a boxed query to rows with the pattern in one of the columns. The collation of ICU folds the case of every
/// script, whatever the database's locale.
macro_rules! containing {
    ($query:ident, $columns:literal, $text:expr) => {
        $query.filter(
            diesel::dsl::sql::<Bool>(concat!(
                "lower(concat_ws(E'\\n', ",
                $columns,
                ") COLLATE \"und-x-icu\") LIKE lower("
            ))
            .bind::<diesel::sql_types::Text, _>($crate::search::pattern($text))
            .sql(" COLLATE \"und-x-icu\")"),
        )
    };
}
pub(super) use containing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_no_wildcards_but_its_ends() {
        assert_eq!(pattern("Ab"), "%ab%");
        assert_eq!(pattern(r"50%_\"), r"%50\%\_\\%");
    }
}
