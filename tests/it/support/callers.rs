//! For a failed assertion in a helper, prints the lines of the test that led to it.
//!
//! `#[track_caller]` does this for a plain function, but in an `async fn` it would give the line
//! that polls the future. Instead, this module reads the panic's backtrace.

use std::{
    backtrace::Backtrace,
    panic::{set_hook, take_hook},
    sync::Once,
    thread,
};

/// Makes each panic on a test's thread also print the lines in `tests/it` that led to it.
pub(super) fn show_callers() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            report(panic);
            // libtest names the thread of a test after the test. Other threads belong to the
            // service.
            if thread::current().name().is_some_and(|name| name.contains("::")) {
                for line in lines_of_tests(&Backtrace::force_capture()) {
                    eprintln!("called from {line}");
                }
            }
        }));
    });
}

/// Returns a backtrace's lines in `tests/it`, innermost first, except the lines of this file.
pub(super) fn lines_of_tests(backtrace: &Backtrace) -> Vec<String> {
    let text = backtrace.to_string();
    let places = text.lines().filter_map(|line| line.trim_start().strip_prefix("at "));
    let ours = places.filter(|place| place.contains("tests/it/") && !place.contains(file!()));
    let mut lines: Vec<_> = ours.map(str::to_owned).collect();
    lines.dedup();
    lines
}
