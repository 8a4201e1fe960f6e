//! Invalid filters: each message has an offset and a correction.

use super::types;
use crate::filter::Filter;

fn refusal(text: &str) -> (usize, String) {
    let types = types();
    let why = Filter::parse(text, &types.each_ref()).expect_err(text);
    assert_eq!(why.to_string(), format!("{} (at offset {})", why.problem, why.offset));
    (why.offset, why.problem)
}

#[track_caller]
fn refused(text: &str, offset: usize, problem: &str) {
    let (at, why) = refusal(text);
    assert!(why.contains(problem), "{text}: {why}");
    assert_eq!(at, offset, "{text}: {why}");
}

#[test]
fn what_is_no_expression() {
    refused("", 0, "expected a member of the event, such as `data.risk`, found the end");
    refused("   ", 3, "found the end");
    refused("data.action", 11, "expected a comparison");
    refused("data.action =", 12, "write `==` to compare");
    refused("data.action = \"a\"", 12, "write `==` to compare");
    refused("data.action & 1", 12, "write `&&` for and");
    refused("data.action | 1", 12, "write `||` for or");
    refused("data.action ==", 14, "expected text in quotes, a whole number, true or false");
    refused("data.action == data.mixed", 15, "expected text in quotes");
    refused("\"a\" == data.action", 0, "expected a member of the event");
    refused("true", 0, "expected a member of the event");
    refused("data.action == null", 15, "expected text in quotes");
    refused("data. == 1", 6, "expected the name of a member, found `==`");
    refused("data.in == 1", 5, "expected the name of a member, found `in`");
    refused("(sequence == 1", 14, "expected `)`, found the end");
    refused("sequence == 1)", 13, "expected `&&`, `||` or the end, found `)`");
    refused("sequence == 1 sequence == 2", 14, "expected `&&`, `||` or the end");
    refused("sequence == 1 == true", 14, "expected `&&`, `||` or the end");
    refused("sequence == 1 &&", 16, "expected a member of the event");
    refused("sequence in []", 13, "expected text in quotes");
    refused("sequence in [1,]", 15, "expected text in quotes");
    refused("sequence in [1 2]", 15, "expected `,` or `]`");
    refused("sequence in 1", 12, "expected `[` and literals");
    refused("sequence + 1 == 2", 9, "unexpected character `+`");
    refused("event_type == r\"a\"", 14, "expected text in quotes");
    refused("sequence == 1 // why", 14, "unexpected character `/`");
    refused("event_type == “a”", 14, "unexpected character");
}

#[test]
fn negation_of_a_comparison_needs_parentheses() {
    refused("!sequence == 1", 0, "write `!(a == b)`");
    refused("sequence == 1 && !sequence in [1]", 17, "write `!(a == b)`");
    refused("(!sequence == 1)", 1, "write `!(a == b)`");
    for text in ["!(sequence == 1)", "!!(sequence == 1)", "!event_type.startsWith(\"a\")"] {
        assert!(Filter::parse(text, &types().each_ref()).is_ok(), "{text}");
    }
}

#[test]
fn calls() {
    refused("data.action.matches(\"a\")", 0, "unknown function `matches`; there are has()");
    refused("startsWith(\"a\")", 0, "unknown function `startsWith`");
    refused("size(data.action) == 1", 0, "unknown function `size`");
    refused("data.action.startsWith(1)", 23, "expected text in quotes, found `1`");
    refused("data.action.startsWith(\"a\"", 26, "expected `)`");
    refused("has(sequence)", 4, "has() takes a member of `data`");
    refused("has(reason_code)", 4, "where `reason_code` is absent, no test of it matches");
    refused("has(data.action", 15, "expected `)`");
    refused("has()", 4, "expected a member");
    refused("data.approvals.startsWith(\"a\")", 0, "`data.approvals` is a whole number");
    refused("data.mixed.endsWith(\"a\")", 0, "`data.mixed` is a whole number");
}

#[test]
fn literals() {
    let whole = "numbers are whole and decimal, such as 3 or -3";
    for text in ["1.5", "1u", "0x1", "1e3", "-", "1_000"] {
        refused(&format!("sequence == {text}"), 12, whole);
    }
    refused("sequence == 9007199254740992", 12, "numbers are from -9007199254740991");
    refused("sequence == 99999999999999999999", 12, "numbers are from -9007199254740991");
    refused("event_type == \"a", 14, "its closing quote is missing");
    refused("event_type == 'a\"", 14, "its closing quote is missing");
    refused("event_type == \"a\nb\"", 16, "write a line break as `\\n`");
    for escape in ["\\x41", "\\a", "\\u12", "\\ud800", "\\u+123", "\\101"] {
        refused(&format!("event_type == \"{escape}\""), 15, "the escapes are");
    }
}

#[test]
fn members_that_no_event_has() {
    refused(
        "data.decisoin == \"deny\"",
        0,
        "no event of the chosen types has a member `data.decisoin`; did you mean `data.decision`?",
    );
    refused("sequence == 1 && has(data.tol.id)", 21, "did you mean `data.tool.id`?");
    refused("something_else == 1", 0, "has a member `something_else`");
    refused("data.action.id == \"a\"", 0, "has a member `data.action.id`");
    assert!(!refusal("something_else == 1").1.contains("did you mean"));
}

#[test]
fn comparisons_that_never_hold() {
    refused("sequence == \"1\"", 12, "`sequence` is a whole number: compare it with one");
    refused("event_type == 1", 14, "`event_type` is text: compare it with text in quotes");
    refused("event_type in [\"a\", 1]", 20, "`event_type` is text");
    refused("data.repeated < true", 16, "`data.repeated` is true or false");
    refused("data.repeated == \"true\"", 17, "`data.repeated` is true or false");
    refused("data.tool == \"a\"", 13, "`data.tool` is an object: compare a member of it");
    refused("evidence_refs == \"a\"", 17, "`evidence_refs` is a list");
    refused("data.mixed == \"a\"", 14, "`data.mixed` is a whole number");
    refused(
        "data.decision == \"denied\"",
        17,
        "`data.decision` is never \"denied\"; did you mean \"deny\"?",
    );
    refused("data.decision in [\"deny\", \"x\"]", 26, "is never \"x\"");
    for text in
        ["data.decision == \"held\"", "data.decision < \"b\"", "data.decision.startsWith(\"x\")"]
    {
        assert!(Filter::parse(text, &types().each_ref()).is_ok(), "{text}");
    }
}

#[test]
fn what_is_too_large() {
    let long = |bytes: usize| format!("event_type == \"{}\"", "a".repeat(bytes - 16));
    assert!(Filter::parse(&long(1024), &types().each_ref()).is_ok());
    refused(&long(1025), 1024, "at most 1024 bytes");
    let nested = |levels: usize| "(".repeat(levels) + "sequence == 1" + &")".repeat(levels);
    assert!(Filter::parse(&nested(15), &types().each_ref()).is_ok());
    refused(&nested(16), 16, "nests at most 16 levels");
    refused(&("!".repeat(500) + "has(data.tool)"), 16, "nests at most 16 levels");
    refused(&"(".repeat(1024), 16, "nests at most 16 levels");
    // A comparison counts as a path, a test and a literal; `||` counts as one more.
    let many = |count: usize| vec!["sequence == 1"; count].join("||");
    assert!(Filter::parse(&many(32), &types().each_ref()).is_ok());
    refused(&many(33), 489, "at most 128 paths, literals, tests and operators");
    let list = |count: usize| format!("sequence in [{}]", vec!["1"; count].join(","));
    assert!(Filter::parse(&list(126), &types().each_ref()).is_ok());
    refused(&list(127), 266, "at most 128 paths");
}
