//! Reads JSON into a type, from objects only.

use serde::de::Deserialize;

/// Reads the members of an object. Two members with the same name are an error.
///
/// # Errors
/// The text is not an object with these members. An array is not read as one.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if !text.trim_start().starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Members {
        a: Option<u8>,
    }

    #[test]
    fn only_objects_are_read() {
        assert_eq!(object::<Members>(" {\"a\": 1, \"b\": []}").unwrap().a, Some(1));
        for text in ["[1]", "[]", "null", "", "{\"a\": 1, \"a\": 1}", "{\"a\": 1} {}"] {
            assert!(object::<Members>(text).is_err(), "{text}");
        }
    }
}
