//! The console in a real browser: each task with and without scripts, by keyboard alone, and WCAG
//! 2.2 AA on every screen. The tests are `tests/features/console/*.test.mjs`, and need the files
//! that `script/features` fetches.

use std::{fs, path::Path, time::Duration};

use tokio::process::Command;

use super::Console;
use crate::support::WHOLE_MACHINE;

/// More than the whole run takes on a busy machine.
const LONGEST: Duration = Duration::from_mins(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_decide_in_a_browser() {
    let _machine = WHOLE_MACHINE.lock().await;
    let console = Console::start().await;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("features/console");
    // All files use one browser, and run one after another, because they share the list of pending
    // requests.
    let files = tests(&folder).into_iter().map(|name| format!("await import('./{name}');"));
    let run = Command::new("node")
        .args(["--test-reporter=spec", "--input-type=module", "--eval"])
        .arg(files.collect::<String>())
        .current_dir(&folder)
        .env("CONSOLE_URL", console.app.base_url())
        .env("CONSOLE_AGENT_KEY", &console.agent.token)
        .env("CONSOLE_OWNER_TOKEN", console.app.owner_token())
        .kill_on_drop(true)
        .output();
    let run = tokio::time::timeout(LONGEST, run).await.expect("the browser's tests end");
    let run = run.unwrap_or_else(|why| panic!("node: {why}: run script/features"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The times to first byte are printed for people to read.
    println!("{}", text(&run.stdout));
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}

/// The names of the test files, in order.
#[track_caller]
fn tests(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder);
    let files =
        files.unwrap_or_else(|why| panic!("{}: {why}: run script/features", folder.display()));
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".test.mjs")).collect();
    names.sort_unstable();
    assert!(!names.is_empty(), "{}: run script/features", folder.display());
    names
}
