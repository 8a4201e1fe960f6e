//! Places: a country (`DE`) or one of its subdivisions (`DE-BY`), by the codes of ISO 3166.
//!
//! A country covers its subdivisions, and never the reverse.

/// Whether the text is a country's code (ISO 3166-1 alpha-2) or a subdivision's (ISO 3166-2).
pub fn is_code(text: &str) -> bool {
    let (country, subdivision) = parts(text);
    let upper = |c: u8| c.is_ascii_uppercase();
    country.len() == 2
        && country.bytes().all(upper)
        && subdivision.is_none_or(|own| {
            (1..=3).contains(&own.len()) && own.bytes().all(|c| upper(c) || c.is_ascii_digit())
        })
}

/// Whether `place` is `bound` or part of it. A text of another form covers only itself.
pub fn covers(bound: &str, place: &str) -> bool {
    bound == place || (is_code(place) && parts(place).0 == bound)
}

/// The country of a code.
pub fn country(code: &str) -> &str {
    parts(code).0
}

/// The code, if it is a subdivision's.
pub fn subdivision(code: &str) -> Option<&str> {
    parts(code).1.map(|_| code)
}

fn parts(text: &str) -> (&str, Option<&str>) {
    text.split_once('-').map_or((text, None), |(country, own)| (country, Some(own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_forms_and_no_other() {
        for code in ["DE", "DE-BY", "FR-75", "GB-SCT", "US-C"] {
            assert!(is_code(code), "{code}");
        }
        for text in
            ["", "D", "DEU", "de", "DE-", "-BY", "DE-BYER", "DE-by", "DE_BY", "DE-B-Y", "--"]
        {
            assert!(!is_code(text), "{text}");
        }
    }

    #[test]
    fn a_country_covers_its_subdivisions_and_not_the_reverse() {
        assert!(covers("DE", "DE") && covers("DE", "DE-BY") && covers("DE-BY", "DE-BY"));
        assert!(!covers("DE-BY", "DE") && !covers("DE-BY", "DE-BE") && !covers("D", "DE"));
        assert!(!covers("DE", "DE-") && !covers("", "DE") && !covers("FR", "DE-BY"));
        assert_eq!((country("DE-BY"), subdivision("DE-BY")), ("DE", Some("DE-BY")));
        assert_eq!((country("DE"), subdivision("DE")), ("DE", None));
    }
}
