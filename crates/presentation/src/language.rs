//! The titles of a request in a reader's language.

use authority_model::proto::approval::ApprovalPresentation;

/// The maximum number of a reader's languages that are looked up.
const MOST: usize = 32;

/// Replaces the titles of a presentation by those in the first of a reader's languages that it has.
///
/// `languages` is the value of an `Accept-Language` (RFC 9110). The titles stay if they are in the
/// best language already, or if no language fits. A language without a title for declines gets an
/// empty one: its title is shown then.
pub fn translate(presentation: &mut ApprovalPresentation, languages: &str) {
    let translations = presentation.translations.iter();
    let tags = presentation.language.iter().chain(translations.map(|title| &title.language));
    let Some(chosen) = lookup(languages, &tags.map(String::as_str).collect::<Vec<_>>()) else {
        return;
    };
    let Some(at) = presentation.translations.iter().position(|title| title.language == chosen)
    else {
        return;
    };
    let title = presentation.translations.swap_remove(at);
    presentation.title = title.title;
    presentation.decline_title = title.decline_title;
    presentation.mixed_letters = title.mixed_letters;
    presentation.language = Some(title.language);
    presentation.declared_title = true;
}

/// Returns the tag that fits a reader best, by the lookup of RFC 4647, section 3.4.
fn lookup(languages: &str, tags: &[&str]) -> Option<String> {
    let found = ranges(languages).into_iter().find_map(|range| {
        let mut shorter = std::iter::successors(Some(range), |&range| shortened(range));
        shorter.find_map(|range| tags.iter().find(|tag| tag.eq_ignore_ascii_case(range)))
    });
    found.map(|tag| (*tag).to_owned())
}

/// The ranges of an `Accept-Language` with a weight above 0, the preferred ones first.
fn ranges(languages: &str) -> Vec<&str> {
    let mut ranges: Vec<_> = languages.split(',').filter_map(weighted).take(MOST).collect();
    ranges.sort_by(|one, other| other.1.total_cmp(&one.1));
    ranges.into_iter().map(|(range, _)| range).collect()
}

/// A range with its weight. `None` if it has no weight above 0.
fn weighted(item: &str) -> Option<(&str, f32)> {
    let (range, weight) = match item.split_once(';') {
        Some((range, weight)) => (range, weight.trim().strip_prefix("q=")?.trim().parse().ok()?),
        None => (item, 1.0),
    };
    (weight > 0.0).then_some((range.trim(), weight))
}

/// The range without its last part, and without a single letter or digit before that part.
fn shortened(range: &str) -> Option<&str> {
    let (shorter, _) = range.rsplit_once('-')?;
    match shorter.rsplit_once('-') {
        Some((rest, single)) if single.len() == 1 => Some(rest),
        _ => Some(shorter),
    }
}

#[cfg(test)]
mod tests {
    use authority_model::proto::approval::ApprovalTitle;

    use super::*;

    /// The examples come from RFC 4647, section 3.4, and from browsers.
    #[test]
    fn the_best_language_is_found_as_the_standard_says() {
        for (languages, tags, chosen) in [
            ("zh-Hant-CN-x-private1-private2", &["zh-Hant-CN", "zh"][..], Some("zh-Hant-CN")),
            ("zh-Hant-CN-x-private1", &["zh-Hant", "zh-Hant-CN-x"], Some("zh-Hant")),
            ("de-CH,de;q=0.9,en;q=0.8", &["en", "DE"], Some("DE")),
            ("en;q=0.5, fr ;q=0.9", &["en", "fr"], Some("fr")),
            ("en, de;q=0.5", &["de", "en"], Some("en")),
            // A range is shortened before the next range is looked up.
            ("de-AT, en", &["en", "de"], Some("de")),
            // A longer tag does not match a shorter range.
            ("de", &["de-CH"], None),
            ("de;q=0, *", &["de"], None),
            ("de;q=x, en;q=nan", &["de", "en"], None),
            ("", &["de"], None),
        ] {
            assert_eq!(lookup(languages, tags).as_deref(), chosen, "{languages}");
        }
    }

    #[test]
    fn titles_are_replaced_together() {
        let title = |language: &str, title: &str, decline_title: &str| ApprovalTitle {
            language: language.to_owned(),
            title: title.to_owned(),
            decline_title: decline_title.to_owned(),
            mixed_letters: String::new(),
        };
        let presentation = ApprovalPresentation {
            title: "Pay 5".to_owned(),
            decline_title: "Payment of 5".to_owned(),
            language: Some("en".to_owned()),
            declared_title: true,
            translations: vec![
                title("de", "5 zahlen", "Zahlung von 5"),
                title("fr", "Payer 5", ""),
            ],
            ..ApprovalPresentation::default()
        };
        for (languages, titles) in [
            ("de-CH, en", ("5 zahlen", "Zahlung von 5")),
            ("fr", ("Payer 5", "")),
            ("en, de", ("Pay 5", "Payment of 5")),
            ("it", ("Pay 5", "Payment of 5")),
        ] {
            let mut shown = presentation.clone();
            translate(&mut shown, languages);
            assert_eq!((shown.title.as_str(), shown.decline_title.as_str()), titles, "{languages}");
        }
    }
}
