//! Any text is refused or is a filter that can be evaluated, without a panic.

use proptest::prelude::*;
use serde_json::json;

use super::types;
use crate::filter::{Filter, LONGEST_FILTER};

/// Parts of filters in random order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "data",
        ".",
        "tool",
        "id",
        "sequence",
        "event_type",
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "[",
        "]",
        "(",
        ")",
        "!",
        "&&",
        "||",
        ",",
        "\"a\"",
        "'",
        "\"",
        "\\",
        "\\u00e9",
        "1",
        "-1",
        "true",
        "has",
        "startsWith",
        "has(data.tool)",
        "sequence == 1",
        "event_type.endsWith('a')",
        " ",
        "\n",
        "é",
        "\u{0}",
        "&",
        "=",
        "1.5",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.join(""))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_text_panics(text in prop_oneof![pieces(), any::<String>(), "[ -~\\n]{0,64}"]) {
        let types = types();
        match Filter::parse(&text, &types.each_ref()) {
            Ok(filter) => {
                filter.evaluate(&json!({"sequence": 1, "event_type": "a", "data": {"tool": {}}}));
                prop_assert!(text.len() <= LONGEST_FILTER);
                // Every accepted filter must also parse as CEL.
                prop_assert!(cel::Program::compile(&text).is_ok(), "{}", text);
            }
            Err(why) => prop_assert!(why.offset <= text.len() && !why.problem.is_empty()),
        }
    }
}
