//! The decision core and the naive evaluator agree on every random world.
//!
//! The suite tests fifteen thousand worlds, or a million if `AUTHORITY_LONG` is set.

use std::{cell::RefCell, collections::BTreeMap};

use authority_decision::{FactsDocument, Reason, Verdict, decide};
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, any},
    test_runner::{TestCaseError, TestRunner},
};

use super::{naive, worlds};

pub(super) fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
}

#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
pub(super) fn cases(usual: u32, long: u32) -> u32 {
    if std::env::var_os("AUTHORITY_LONG").is_some() { long } else { usual }
}

/// Returns the parts of a verdict on which both evaluators must agree.
fn answer(verdict: &Verdict) -> naive::Answer {
    naive::Answer {
        decision: verdict.decision.word(),
        reason_code: verdict.reason_code.word().to_owned(),
        obligations: verdict.obligations.clone(),
        stop_conditions: verdict.stop_conditions.clone(),
        approvals: verdict
            .approvals_needed
            .as_ref()
            .map(|needed| (needed.count, needed.roles == ["legal"])),
    }
}

#[test]
fn the_core_and_the_naive_evaluator_agree() {
    let seen = RefCell::new(BTreeMap::<Reason, usize>::new());
    let outcome = runner(cases(15_000, 1_000_000)).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let verdict = decide(&world.request(), &world.facts, world.at);
        *seen.borrow_mut().entry(verdict.reason_code).or_default() += 1;
        let naive = naive::answer(&world.draft, &world.facts, world.at, &world.tools);
        if answer(&verdict) == naive {
            return Ok(());
        }
        let (draft, facts) = (&world.draft, serde_json::to_string_pretty(&world.facts).unwrap());
        Err(TestCaseError::fail(format!("{verdict:#?}\nnaive: {naive:#?}\n{draft:#?}\n{facts}")))
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
    let seen = seen.into_inner();
    eprintln!("{seen:#?}");
    // A rule that applies in no world would not be tested. `SubjectNotPermitted` comes from the
    // operation, not from the core.
    for reason in Reason::ALL {
        let met = seen.get(reason).copied().unwrap_or_default();
        assert!(met > 0 || *reason == Reason::SubjectNotPermitted, "no world met `{reason}`");
    }
}

#[test]
fn explaining_changes_nothing_but_the_trace() {
    let outcome = runner(2_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let mut world = worlds::draw(&bytes);
        world.draft.explain = false;
        let plain = decide(&world.request(), &world.facts, world.at);
        world.draft.explain = true;
        let explained = decide(&world.request(), &world.facts, world.at);
        let trace = explained.trace.as_deref().unwrap();
        assert_eq!(trace.len(), 4);
        assert_eq!(trace[3].reason_code, Some(explained.reason_code));
        assert_eq!(Verdict { trace: None, ..explained }, plain);
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

/// Facts and request that are sealed as JSON and read back give the same verdict, byte for byte.
#[test]
fn sealed_arguments_replay() {
    let outcome = runner(500).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let request = world.request();
        let verdict = decide(&request, &world.facts, world.at);
        let sealed = serde_json::to_string(&world.facts).unwrap();
        let document: FactsDocument = serde_json::from_str(&sealed).unwrap();
        let facts = document.rebuild(|sha256| Some(text_of(sha256))).unwrap();
        assert_eq!(serde_json::to_string(&facts).unwrap(), sealed);
        let asked = serde_json::to_string(&request).unwrap();
        let again = decide(&asked.parse().unwrap(), &facts, world.at);
        let text = |verdict: &Verdict| serde_json::to_string(verdict).unwrap();
        assert_eq!(text(&again), text(&verdict));
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

/// Returns the text with this digest. In random worlds, a policy's digest lists the numbers of its
/// statements.
fn text_of(sha256: &str) -> String {
    if let Some((_, text)) = worlds::SCHEMAS.iter().find(|(name, _)| *name == sha256) {
        return (*text).to_owned();
    }
    let numbers = sha256.split('-').map(|number| number.parse::<usize>().unwrap());
    numbers.map(|number| super::templates::TEXTS[number]).collect::<Vec<_>>().join("\n")
}
