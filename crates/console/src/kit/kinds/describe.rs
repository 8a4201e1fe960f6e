//! Descriptions from the protos: options, comments, and names in words.

use prost_reflect::{DynamicMessage, FileDescriptor, ReflectMessage, Value};

use super::message::text;
use crate::{kit::text::capitalized, texts as t};

/// The value of an option, if it is set.
pub(super) fn extension(options: &DynamicMessage, name: &str) -> Option<Value> {
    let extension = options.descriptor().parent_pool().get_extension_by_name(name)?;
    options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned())
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

/// The description of an element: the option `help`, or otherwise its comment.
pub(super) fn described(option: Option<&Value>, file: &FileDescriptor, path: &[i32]) -> String {
    let option = option.and_then(Value::as_message);
    let help = option.map(|option| text(option, "help")).filter(|help| !help.is_empty());
    help.unwrap_or_else(|| comment(file, path))
}

/// The comment of a proto element in one line, without its example and its list of values.
pub(super) fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let written = raw(file, path);
    let written = written.split(EXAMPLE).next().unwrap_or_default();
    let lines = written.lines().take_while(|line| !line.trim_start().starts_with(VALUES));
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").replace('`', "")
}

/// The example in a comment; empty if it has none.
pub(super) fn example(file: &FileDescriptor, path: &[i32]) -> String {
    let written = raw(file, path);
    written.split_once(EXAMPLE).map_or("", |(_, example)| example).trim().to_owned()
}

/// The marks of comment lines for programs. These lines follow the description.
const EXAMPLE: &str = "Example:";
const VALUES: &str = "Values:";

/// A comment as it is written.
fn raw<'a>(file: &'a FileDescriptor, path: &[i32]) -> &'a str {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let place = info.and_then(|info| info.location.iter().find(|place| place.path == path));
    place.map_or("", |place| place.leading_comments())
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
            // The search parameter of lists.
            "q" if name == "q" => t::SEARCH.to_owned(),
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
    use super::{
        super::{kind::Kind, member::Member},
        *,
    };

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
        let delegations = Kind::at("delegations").unwrap();
        let revoke = delegations.verb("revoke").unwrap();
        let sentence = "Ends a delegation and all delegations below it, at once and permanently.";
        assert_eq!(revoke.about, sentence);
        let about = |kind: &str, name: &str| {
            let record = &Kind::at(kind).unwrap().record;
            Member::of(&record.get_field_by_name(name).unwrap()).about
        };
        for (kind, name, expected) in [
            ("delegations", "tenant_id", "The tenant it belongs to."),
            ("delegations", "state", "Its state."),
            ("acts-in", "until", "The end of the period; no end when left out."),
            (
                "webhook-endpoints",
                "signing_suites",
                "How deliveries are signed; standard-webhooks/v1 and rfc9421 when left out.",
            ),
        ] {
            assert_eq!(about(kind, name), expected);
        }
    }

    #[test]
    fn a_sentence_ends_at_its_full_stop() {
        assert_eq!(sentence("One. Two."), "One.");
        assert_eq!(sentence("A decimal: 1.5"), "A decimal: 1.5");
    }
}
