//! The libraries for TypeScript and Python, by their own tests, on the table. They need what
//! `script/features` fetches.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::sdk;

/// Made by `script/features`.
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

/// Built and tested in a copy, so that nothing is written beside the sources.
#[test]
fn the_typescript_library_judges_each_as_the_table_says() {
    let copy = tools().join("typescript");
    for folder in ["src", "test"] {
        let to = copy.join(folder);
        fs::create_dir_all(&to).unwrap_or_else(|why| panic!("{}: {why}", to.display()));
        for file in fs::read_dir(sdk("typescript").join(folder)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    for file in ["package.json", "tsconfig.json"] {
        fs::copy(sdk("typescript").join(file), copy.join(file)).unwrap();
    }
    succeeds(Command::new(copy.join("node_modules/.bin/tsc")).current_dir(&copy));
    succeeds(Command::new("node").args(["--test", "test/"]).current_dir(&copy));
}
