//! Descriptions from the protos: options, comments, and names in words.

use prost_reflect::{DynamicMessage, FileDescriptor, ReflectMessage, Value};

use crate::text::capitalized;

/// The value of an option, if it is set.
pub(super) fn extension(options: &DynamicMessage, name: &str) -> Option<Value> {
    let extension = options.descriptor().parent_pool().get_extension_by_name(name)?;
    options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned())
}

/// The text at this member of an option's value; empty if there is none.
pub(super) fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The texts at this member of an option's value.
pub(super) fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let value = message.get_field_by_name(name);
    let list = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// The value below these members, if each of them is set.
pub(super) fn below(message: &DynamicMessage, path: &[&str]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    if !message.has_field_by_name(first) {
        return None;
    }
    let value = message.get_field_by_name(first)?;
    if rest.is_empty() { Some(value.into_owned()) } else { below(value.as_message()?, rest) }
}

/// The comment of a proto element in one line, without examples and notes for programs.
pub(super) fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let written = raw(file, path);
    let written = written.split(EXAMPLE).next().unwrap_or_default();
    for_people(&written.replace('`', "").split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The example in a comment; empty if it has none.
pub(super) fn example(file: &FileDescriptor, path: &[i32]) -> String {
    let written = raw(file, path);
    written.split_once(EXAMPLE).map_or("", |(_, example)| example).trim().to_owned()
}

const EXAMPLE: &str = "Example:";

/// A comment as it is written.
pub(super) fn raw<'a>(file: &'a FileDescriptor, path: &[i32]) -> &'a str {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let place = info.and_then(|info| info.location.iter().find(|place| place.path == path));
    place.map_or("", |place| place.leading_comments())
}

/// How a sentence for programs begins, and the words of the protocol in others: a form is for people, and has the words
/// of a field as choices.
const BEGINNINGS: [&str; 3] = ["An API key ", "To an API key", "Values: "];
const PROTOCOL: [&str; 4] = ["over /v1", "over REST", " 409", "/v1 "];

/// A text without its clauses on what programs send and are answered.
fn for_people(text: &str) -> String {
    let is_for_people = |clause: &&str| !PROTOCOL.iter().any(|words| clause.contains(words));
    let mut kept = Vec::new();
    for sentence in text.split_inclusive(". ") {
        if BEGINNINGS.iter().any(|words| sentence.starts_with(words)) {
            continue;
        }
        let clauses: Vec<&str> = sentence.trim_end().split("; ").filter(is_for_people).collect();
        let sentence = clauses.join("; ").replace("; null: ", "; empty: ");
        if !sentence.is_empty() {
            let ends = sentence.ends_with(['.', ':', '!', '?']) || !text.ends_with('.');
            kept.push(if ends { sentence } else { format!("{sentence}.") });
        }
    }
    kept.join(" ")
}

/// The first sentence of a comment.
pub(super) fn sentence(comment: &str) -> String {
    let end = comment.find(". ").map_or(comment.len(), |end| end + 1);
    comment.get(..end).unwrap_or(comment).to_owned()
}

/// A name in words: `api_keys` is `API keys`.
pub(super) fn words(name: &str, at_start: bool) -> String {
    let mut words = Vec::new();
    for (index, word) in name.split(['_', '-']).enumerate() {
        words.push(match word {
            "api" | "id" | "url" | "ip" | "jwks" => word.to_ascii_uppercase(),
            // The parameter of lists that are searched.
            "q" if name == "q" => "Search".to_owned(),
            "ids" => "IDs".to_owned(),
            _ if index == 0 && at_start => capitalized(word),
            _ => word.to_owned(),
        });
    }
    words.join(" ")
}

/// The past form of a method's name: `create` is `Created`, `rotate-secret` is `Secret rotated`.
pub(super) fn past(word: &str) -> String {
    let (verb, rest) = word.split_once('-').unwrap_or((word, ""));
    let verb = match verb {
        "withdraw" => "withdrawn".to_owned(),
        _ if verb.ends_with('e') => format!("{verb}d"),
        _ if verb.ends_with('y') => format!("{}ied", verb.trim_end_matches('y')),
        _ => format!("{verb}ed"),
    };
    let done = if rest.is_empty() { verb } else { format!("{rest}-{verb}") };
    words(&done, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said_in_words() {
        for (word, expected) in [
            ("create", "Created"),
            ("rotate-secret", "Secret rotated"),
            ("create-state-transition", "State transition created"),
            ("withdraw", "Withdrawn"),
            ("verify", "Verified"),
            ("accept", "Accepted"),
        ] {
            assert_eq!(past(word), expected);
        }
    }

    #[test]
    fn a_name_is_read_as_words() {
        for (name, at_start, expected) in [
            ("api_keys", false, "API keys"),
            ("tenant_id", true, "Tenant ID"),
            ("stop_signal", true, "Stop signal"),
            ("rotate-secret", true, "Rotate secret"),
            ("q", true, "Search"),
        ] {
            assert_eq!(words(name, at_start), expected);
        }
    }

    #[test]
    fn a_form_says_nothing_of_programs() {
        for (text, expected) in [
            (
                "Ends it and all below it. An API key ends those of its principals; others are unknown.",
                "Ends it and all below it.",
            ),
            (
                "The tenant it belongs to; over /v1 the caller's own when left out.",
                "The tenant it belongs to.",
            ),
            ("Below one: at most 256, 409 beyond. Any else.", "Any else."),
            ("An API key, without its secret.", "An API key, without its secret."),
            ("The end of the period; null: no end.", "The end of the period; empty: no end."),
            ("Why", "Why"),
            ("A decimal: 1.5", "A decimal: 1.5"),
        ] {
            assert_eq!(for_people(text), expected);
        }
    }

    #[test]
    fn a_sentence_ends_at_its_full_stop() {
        assert_eq!(sentence("One. Two."), "One.");
        assert_eq!(sentence("A decimal: 1.5"), "A decimal: 1.5");
    }
}
