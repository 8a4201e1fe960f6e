//! The filter `q` of lists: a case-insensitive text search.

/// Returns a LIKE pattern for texts that contain `text`. `%`, `_` and `\` are escaped.
pub(crate) fn pattern(text: &str) -> String {
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

/// Filters a boxed query to rows with the pattern in any of the columns. The ICU collation folds
/// the case of every script, independently of the database's locale.
macro_rules! containing {
    ($query:ident, $columns:literal, $text:expr) => {
        $query.filter(
            diesel::dsl::sql::<Bool>(concat!(
                "lower(concat_ws(E'\\n', ",
                $columns,
                ") COLLATE \"und-x-icu\") LIKE lower("
            ))
            .bind::<diesel::sql_types::Text, _>($crate::flow::search::pattern($text))
            .sql(" COLLATE \"und-x-icu\")"),
        )
    };
}
pub(crate) use containing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_no_wildcards_but_its_ends() {
        assert_eq!(pattern("Ab"), "%ab%");
        assert_eq!(pattern(r"50%_\"), r"%50\%\_\\%");
    }
}
