//! `script/released` compares the formats of a checkout with its first release.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// A repository with one file of each kind that a release fixes.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("script/released");
        repository.write("script/released", &fs::read_to_string(script).unwrap());
        for path in [
            "tests/golden/a.json",
            "sdk/vectors/a.json",
            "migrations/1/up.sql",
            "crates/model/src/records-1.dict",
        ] {
            repository.write(path, "as released");
        }
        repository
            .write("openapi/operations.txt", "get_tool GET /tools/{id}\nlist_tools GET /tools\n");
        repository.git(&["init", "--quiet"]);
        repository.commit();
        repository
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=test", "-c", "user.email=test@example.org"]).args(args);
        let output = command.current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
    }

    #[track_caller]
    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&[
            "-c",
            "commit.gpgsign=false",
            "commit",
            "--quiet",
            "--allow-empty",
            "--message",
            "test",
        ]);
    }

    fn run(&self, args: &[&str]) -> Output {
        let script = self.0.path().join("script/released");
        Command::new("bash").arg(script).args(args).output().unwrap()
    }

    /// Returns the lines about changes; the script fails if there are any.
    #[track_caller]
    fn changed(&self) -> Vec<String> {
        let output = self.run(&[]);
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<_> = text.lines().skip(1).map(str::to_owned).collect();
        assert_eq!(output.status.success(), lines.is_empty(), "{text}");
        lines
    }
}

#[test]
fn without_a_release_every_format_may_change() {
    let repository = Repository::new();
    repository.write("tests/golden/a.json", "changed");
    assert_eq!(repository.changed(), [""; 0]);
    let output = repository.run(&["--tag"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn after_the_first_release_formats_are_only_added() {
    let repository = Repository::new();
    for tag in ["v0.1.0", "v0.2.0-rc.1", "w0.0.1"] {
        repository.git(&["-c", "tag.gpgsign=false", "tag", tag]);
    }
    assert_eq!(repository.run(&["--tag"]).stdout, b"v0.1.0\n");
    repository.write("tests/golden/b.json", "new");
    repository.write("migrations/2/up.sql", "new");
    repository.write(
        "openapi/operations.txt",
        "get_tool GET /tools/{id}\nget_agent GET /agents/{id}\nlist_tools GET /tools\n",
    );
    repository.commit();
    assert_eq!(repository.changed(), [""; 0]);

    // A later release does not become the measure.
    repository.git(&["-c", "tag.gpgsign=false", "tag", "v0.2.0"]);
    repository.write("openapi/operations.txt", "get_tool GET /tool/{id}\nlist_tools GET /tools\n");
    repository.write("migrations/1/up.sql", "changed");
    repository.write("sdk/vectors/a.json", "changed");
    repository.write("crates/model/src/records-1.dict", "changed");
    fs::rename(
        repository.0.path().join("tests/golden/a.json"),
        repository.0.path().join("tests/golden/c.json"),
    )
    .unwrap();
    let expected = [
        "crates/model/src/records-1.dict",
        "migrations/1/up.sql",
        "sdk/vectors/a.json",
        "tests/golden/a.json",
        "get_tool GET /tools/{id}",
    ];
    assert_eq!(repository.changed(), expected);
    repository.commit();
    assert_eq!(repository.changed(), expected);
}
