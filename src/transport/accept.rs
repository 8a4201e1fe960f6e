//! The media type that a client prefers for a response.

use http::{HeaderMap, header};

/// Whether a client prefers a page to JSON. Browsers list `text/html`; API clients do not.
#[must_use]
pub fn prefers_html(headers: &HeaderMap) -> bool {
    let accept: Vec<_> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    quality(&accept, "text/html") > quality(&accept, "application/json")
}

/// The weight of a media type, from 0 to 1; 0 if the client does not list it.
fn quality(accept: &[&str], wanted: &str) -> f32 {
    let of = |range: &&str| {
        let mut parts = range.split(';').map(str::trim);
        let is_wanted = parts.next().is_some_and(|media| media.eq_ignore_ascii_case(wanted));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        is_wanted.then(|| weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
    };
    accept.iter().find_map(of).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn browsers_get_pages_and_programs_json() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json;q=0.5, text/HTML", true),
            ("*/*", false),
            ("application/json", false),
            ("application/json, text/html;q=0.9", false),
            ("application/json, text/html", false),
            ("text/html;q=0", false),
            ("text/html;q=x", false),
        ] {
            let value = HeaderValue::from_static(accept);
            let headers = HeaderMap::from_iter([(header::ACCEPT, value)]);
            assert_eq!(prefers_html(&headers), expected, "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
