//! Places: countries (`DE`) and their subdivisions (`DE-BY`), by their ISO 3166 codes.
//!
//! A country covers its subdivisions, but not the reverse. A code with an unknown country, such as
//! `UK` instead of `GB`, covers no place, not even itself: it is a mistake of its author.

use super::countries;

/// The European Union, which is not a country.
const UNION: &str = "EU";

/// Whether the text has the form of a country code (ISO 3166-1 alpha-2) or a subdivision code (ISO
/// 3166-2).
pub fn is_code(text: &str) -> bool {
    let (country, subdivision) = parts(text);
    let upper = |c: u8| c.is_ascii_uppercase();
    country.len() == 2
        && country.bytes().all(upper)
        && subdivision.is_none_or(|own| {
            (1..=3).contains(&own.len()) && own.bytes().all(|c| upper(c) || c.is_ascii_digit())
        })
}

/// Whether the text is a place: it has the form of a code, and its country is in the standard.
pub fn is_known(text: &str) -> bool {
    is_code(text) && countries::is_country(country(text))
}

/// Whether `place` is `bound` or a part of it. An invalid place never covers a place and is never
/// covered.
pub fn covers(bound: &str, place: &str) -> bool {
    is_known(place) && (bound == place || country(place) == bound)
}

/// Describes the fault in a text that isn't a valid place, and suggests a replacement.
pub fn fault(text: &str) -> Option<String> {
    let problem = problem(text)?;
    let (code, own) = parts(text);
    let advice = match likely(text) {
        Some(likely) => format!("write `{likely}`"),
        None if code == UNION => "list each country instead".to_owned(),
        None if own.is_some() && is_code(text) => format!("`{code}` is not a country"),
        None => "write a country such as `DE` or a subdivision such as `DE-BY`".to_owned(),
    };
    Some(format!("{problem}: {advice}"))
}

/// Describes the fault in a text that isn't a valid place, without a suggestion.
pub fn problem(text: &str) -> Option<String> {
    let (code, _) = parts(text);
    let faulty = if code == UNION && likely(text).is_none() { code } else { text };
    (!is_known(text)).then(|| format!("`{faulty}` is not an ISO 3166 code"))
}

/// Returns the place most likely meant by an invalid text.
pub fn likely(text: &str) -> Option<String> {
    let upper = text.trim().to_ascii_uppercase().replace('_', "-");
    if is_known(&upper) {
        return Some(upper).filter(|upper| upper != text);
    }
    let (code, own) = parts(&upper);
    let country = countries::likely(code)?;
    let meant = own.map_or_else(|| country.to_owned(), |own| format!("{country}-{own}"));
    is_known(&meant).then_some(meant)
}

/// Returns the country of a code.
pub fn country(code: &str) -> &str {
    parts(code).0
}

/// Returns the code if it is a subdivision code.
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
    fn a_place_is_of_the_standard_and_another_is_told_the_likely_one() {
        for code in ["DE", "DE-BY", "GB", "GB-SCT", "GR", "XK", "BQ-SA"] {
            assert_eq!((is_known(code), fault(code)), (true, None), "{code}");
        }
        for (text, meant) in [
            ("UK", "GB"),
            ("EL", "GR"),
            ("UK-SCT", "GB-SCT"),
            ("de", "DE"),
            ("de-by", "DE-BY"),
            ("DE_BY", "DE-BY"),
            ("DEU", "DE"),
            ("Germany", "DE"),
            (" FR", "FR"),
        ] {
            let found = fault(text).unwrap();
            assert!(found.ends_with(&format!("write `{meant}`")), "{text}: {found}");
        }
        for text in ["EU", "SU", "XX", "ZZ", "AA", "", "XX-A", "EU-DE", "DE-", "--"] {
            assert!(fault(text).is_some() && likely(text).is_none(), "{text}");
        }
        assert!(fault("EU").unwrap().contains("each country"));
    }

    #[test]
    fn a_country_covers_its_subdivisions_and_not_the_reverse() {
        assert!(covers("DE", "DE") && covers("DE", "DE-BY") && covers("DE-BY", "DE-BY"));
        assert!(!covers("DE-BY", "DE") && !covers("DE-BY", "DE-BE") && !covers("D", "DE"));
        assert!(!covers("DE", "DE-") && !covers("", "DE") && !covers("FR", "DE-BY"));
        assert!(!covers("UK", "UK") && !covers("UK", "GB") && !covers("GB", "UK"));
        assert!(!covers("XX", "XX-A") && covers("GB", "GB-SCT") && covers("XK", "XK-01"));
        assert_eq!((country("DE-BY"), subdivision("DE-BY")), ("DE", Some("DE-BY")));
        assert_eq!((country("DE"), subdivision("DE")), ("DE", None));
    }
}
