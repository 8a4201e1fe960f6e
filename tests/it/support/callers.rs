//! Names the lines of a test that lead to a failed assertion in a helper.
//!
//! `#[track_caller]` does so for a plain function. In an `async fn` it would name the line that polls the future,
//! so there the panic's backtrace is read instead.

use std::{
    backtrace::Backtrace,
    panic::{set_hook, take_hook},
    sync::Once,
    thread,
};

/// From now on, a panic on a test's thread also shows the lines in `tests/it` that lead to it.
pub(super) fn show_callers() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            report(panic);
            // libtest names a thread by its test; other threads belong to the service.
            if thread::current().name().is_some_and(|name| name.contains("::")) {
                for line in lines_of_tests(&Backtrace::force_capture()) {
                    eprintln!("called from {line}");
                }
            }
        }));
    });
}

/// The lines in `tests/it` of a backtrace, the innermost first, without those of this file.
pub(super) fn lines_of_tests(backtrace: &Backtrace) -> Vec<String> {
    let text = backtrace.to_string();
    let places = text.lines().filter_map(|line| line.trim_start().strip_prefix("at "));
    let ours = places.filter(|place| place.contains("tests/it/") && !place.contains(file!()));
    let mut lines: Vec<_> = ours.map(str::to_owned).collect();
    lines.dedup();
    lines
}
