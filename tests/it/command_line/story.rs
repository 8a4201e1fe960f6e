//! Checks that the README of `examples/reference-rates` shows the actual output of its script.

use std::{fs, path::Path, process::Command};

use crate::support::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn the_story_of_the_rates_is_the_one_in_its_readme() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut story = Command::new("bash");
    story
        .arg(root.join("examples/reference-rates/story"))
        .env("AUTHORITY", env!("CARGO_BIN_EXE_agent-authority"))
        .env("URL", app.base_url())
        .env("OWNER", app.owner_token())
        .env("no_proxy", "127.0.0.1");
    let output = tokio::task::spawn_blocking(move || story.output().unwrap()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (told, problems) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{told}{problems}");
    assert_eq!(problems, "");
    let shown = fs::read_to_string(root.join("examples/reference-rates/README.md")).unwrap();
    assert!(shown.contains(&told), "the README does not show\n{told}");
    // The script deletes all records that it creates.
    for (collection, member) in [
        ("reality-anchors", "reality_anchors"),
        ("reality-coupling-checks", "coupling_checks"),
        ("stable-drift-events", "drift_events"),
    ] {
        let (_, listed) = app.owner().get(&format!("/api/v1/{collection}")).await;
        assert_eq!(listed[member].as_array().map(Vec::len), Some(0), "{listed:#}");
    }
}
