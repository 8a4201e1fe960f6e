//! Runs the tests of the TypeScript and Python libraries on the table.
//!
//! They need the tools that `script/features` fetches.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::sdk;

/// The folder of the tools, which `script/features` creates.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("features")
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let run = command.env("WEBHOOK_VECTORS", sdk("vectors/webhooks.json")).output();
    let run = run.unwrap_or_else(|why| panic!("{command:?}: {why}: run script/features"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}

#[test]
fn the_python_library_judges_each_as_the_table_says() {
    succeeds(
        Command::new(tools().join("venv/bin/python"))
            .args(["-B", "-m", "unittest", "discover", "tests"])
            .current_dir(sdk("python"))
            .env("PYTHONPATH", "src"),
    );
}

/// Builds and tests a copy of the library, to keep its sources free of generated files.
#[test]
fn the_typescript_library_judges_each_as_the_table_says() {
    let copy = tools().join("typescript/library");
    succeeds(Command::new(sdk("../script/typescript")).arg(&copy));
    let library = copy.join("sdk/typescript");
    succeeds(Command::new("node").args(["--test", "test/"]).current_dir(library));
}
