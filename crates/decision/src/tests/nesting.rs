//! Tests that Cedar parses and evaluates every text that the depth measure accepts, on the given
//! stack.

use std::sync::Arc;

use proptest::prelude::*;

use super::World;
use crate::{
    CompiledPolicy, PolicyReference, Reason,
    moment::Window,
    policy::{stack, text::split},
};

/// Half of the stack of [`stack`]. A text that fits here fits twice.
const HALF_FOR_PARSING: usize = 8 * 1024 * 1024;
/// The stack size of a thread of the tests' runtime.
const SMALL: usize = 2 * 1024 * 1024;

fn reference() -> PolicyReference {
    PolicyReference {
        id: "pol-deep".into(),
        version: 1,
        sha256: "deep".to_owned(),
        applies_to: Vec::new(),
        effective: Window::default(),
    }
}

fn on_stack<T: Send + 'static>(size: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(size).spawn(work).unwrap().join().unwrap()
}

/// Decides under the policy, with `explain` to see the errors.
fn decided(policy: CompiledPolicy) -> (Reason, String) {
    let mut world = World::sound();
    world.draft.explain = true;
    world.gathered.policies = vec![Arc::new(policy)];
    let verdict = world.decide();
    let steps = verdict.trace.iter().flatten().flat_map(|stage| &stage.steps);
    let details: Vec<_> = steps.map(|step| step.detail.as_str()).collect();
    (verdict.reason_code, details.join("; "))
}

fn when(condition: &str) -> String {
    format!("forbid(principal, action, resource) when {{ {condition} }};")
}

/// Returns the deepest accepted text of this shape.
fn deepest(shape: impl Fn(usize) -> String) -> String {
    let passes = |depth: &usize| split(&shape(*depth)).is_ok();
    let depth = (1..200).take_while(passes).last().unwrap();
    assert!(depth < 190, "the depth of `{}` is not bounded", shape(3));
    shape(depth)
}

fn deepest_texts() -> Vec<String> {
    let nest = |open: &'static str, inner: &'static str, close: &'static str| {
        move |depth: usize| when(&format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)))
    };
    let behind = |levels: usize| {
        move |operators: usize| {
            let level = |inner: String, _| format!("({inner}{})", " && true".repeat(operators));
            when(&(0..levels).fold("true".to_owned(), level))
        }
    };
    vec![
        deepest(nest("(", "true", ")")),
        deepest(nest("[", "true", "].contains(true)")),
        deepest(nest("{a: ", "true", "}.a")),
        deepest(nest("!(", "true", ")")),
        deepest(nest("if true then ", "true", " else false")),
        deepest(nest("if ", "true", " then true else false")),
        deepest(nest("if false then true else ", "true", "")),
        deepest(nest("true || ", "true", "")),
        deepest(nest("false || ", "true", "")),
        deepest(nest("true && ", "true", "")),
        deepest(nest("true == (", "true", ")")),
        deepest(nest("", "1", " + 1 < 1000 && 1")).replace("&& 1 }", "&& true }"),
        deepest(|depth| when(&format!("1{} > 0", " + 1".repeat(depth)))),
        deepest(|depth| when(&format!("0 < 1{}", " * 1".repeat(depth)))),
        deepest(|depth| when(&format!("context.input{} == 1", ".a".repeat(depth)))),
        deepest(|depth| when(&format!("context.input has a{}", ".a".repeat(depth)))),
        deepest(|depth| when(&format!("context.input{} == 1", "[\"a\"]".repeat(depth)))),
        deepest(|depth| {
            format!("forbid(principal, action, resource){};", " when { true }".repeat(depth))
        }),
        deepest(behind(2)),
        deepest(behind(4)),
        deepest(behind(9)),
    ]
}

#[test]
fn the_deepest_texts_fit_twice_over() {
    for text in deepest_texts() {
        let shown = text.clone();
        let (reason, why) = on_stack(HALF_FOR_PARSING, move || {
            let spans = split(&text).unwrap();
            let policy = CompiledPolicy::parse(reference(), &text, &spans).unwrap();
            on_stack(SMALL, move || decided(policy))
        });
        // Errors must come from the text's meaning, never from an exhausted stack.
        assert!(!why.contains("recursion"), "{shown}: {reason} {why}");
    }
}

#[test]
fn a_thread_with_little_stack_is_given_more() {
    let text = when(&format!("{}true{}", "(".repeat(15), ")".repeat(15)));
    let (reason, why) =
        on_stack(256 * 1024, move || decided(CompiledPolicy::compile(reference(), &text).unwrap()));
    assert_eq!(reason, Reason::PolicyDenied, "{why}");
    let left = on_stack(256 * 1024, || stack::for_evaluating(stacker::remaining_stack));
    assert!(left.unwrap() >= stack::EVALUATING);
}

/// Generates text between tokens that could make a reader see other tokens than Cedar does.
fn gap() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(" ".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("\u{85}".to_owned()),
        1 => Just("// ((((( \" \r".to_owned()),
        1 => Just("// ]]}}; \r\n".to_owned()),
        1 => Just("//\\\"\n".to_owned()),
    ]
}

/// Generates a Cedar expression, sometimes with a bracket too many.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("context.input.a".to_owned()),
        Just("\"((((//\\\"\"".to_owned()),
        Just("principal.name like \"*[\\\\*\"".to_owned()),
        Just("context has input.a.b".to_owned()),
        Just("1 + -2 * 3".to_owned()),
        Just("action in Svc::Action::\"payment\"".to_owned()),
        Just(")".to_owned()),
        Just("]".to_owned()),
    ];
    leaf.prop_recursive(24, 160, 3, |inner| {
        let (one, two) = (inner.clone(), inner);
        (one, two, gap(), 0..12_usize, 1..12_usize).prop_map(|(a, b, gap, form, times)| {
            let chain =
                |operator: &str| format!("{a}{}", format!("{gap}{operator}{b}").repeat(times));
            match form {
                0 => format!("({gap}{a})"),
                1 => format!("{}{a}{}", "(".repeat(times), ")".repeat(times)),
                2 => format!("!({a}{gap})"),
                3 => chain("&&"),
                4 => chain("||"),
                5 => chain("=="),
                6 => format!("if {a}{gap}then {b} else {a}"),
                7 => format!("[{a},{gap}{b}].contains({a})"),
                8 => format!("{{a:{gap}{a}, \"b\": {b}}}.a"),
                9 => format!("({a}{gap}).a{}", "[\"b\"]".repeat(times)),
                10 => format!("{}{a}", "!".repeat(times)),
                _ => format!("({a}) is Svc::Team in {b}"),
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_passes_is_parsed_and_evaluated(condition in expression(), gap in gap()) {
        let text = format!("{gap}forbid(principal, action, resource) when {{ {condition}{gap}}};");
        if let Ok(spans) = split(&text) {
            prop_assert_eq!(spans.len(), 1);
            let (parsed, own) = (text.clone(), text.clone());
            // An overflow would abort the whole test run, which is the purpose of this test.
            let policy = on_stack(HALF_FOR_PARSING, move || {
                CompiledPolicy::parse(reference(), &parsed, &spans).ok()
            });
            if let Some(policy) = policy {
                let (_, why) = on_stack(SMALL, move || decided(policy));
                prop_assert!(!why.contains("recursion"), "{} {}", own, why);
            }
        }
    }
}
