//! The first hour of a user: pasting the banner's commands, readable responses, the API's pages,
//! and a reset.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::Command,
    time::Duration,
};

use serde_json::Value;

use crate::{
    command_line::{run, run_with_input},
    faults::process::{Folder, Service},
    support::{
        EVALUATE, TestApp, asking,
        shown::{forbidden, not_root},
    },
};

/// Returns the status, content and headers of a page.
async fn page(app: &TestApp, path: &str) -> (u16, String, reqwest::header::HeaderMap) {
    let answer = app.owner().http.get(format!("{}{path}", app.base_url())).send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, answer.text().await.unwrap(), headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn any_answer_has_lines_if_asked_to() {
    let app = TestApp::seeded().await;
    let api_key = app.demo().await.api_key;
    let agent = app.client(&api_key);
    let path = "/api/v1/runtime/evaluate?pretty";
    let (status, text) = agent.text("POST", path, Some(asking(12.0, "DE"))).await;
    assert_eq!(status, 200);
    assert!(text.starts_with("{\n  \"decision\": \"allow\",\n  \"reason_code\": "), "{text}");
    assert!(text.ends_with("\n}\n"), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["decision"], "allow");
    // Errors are formatted as well, and `pretty` can be combined with other parameters.
    let (status, text) = agent.text("POST", path, Some(Value::Null)).await;
    assert!(status == 400 && text.starts_with("{\n  \"ok\": false,\n"), "{text}");
    let (_, text) = app.owner().text("GET", "/api/v1/tenants?pretty=true&limit=1", None).await;
    assert!(text.contains("\n      \"slug\": \"acme\","), "{text}");
    let (status, text) = app.owner().text("GET", "/api/v1/tenants?pretty=no", None).await;
    assert!(status == 400 && text.contains("`pretty`") || text.contains("\"pretty\""), "{text}");
    let (_, text) = app.owner().text("GET", "/api/v1/tenants", None).await;
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_has_pages_that_need_no_script_and_nothing_from_elsewhere() {
    let app = TestApp::start().await;
    let (status, index, headers) = page(&app, "/docs").await;
    assert_eq!(status, 200);
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"),
        "{policy}"
    );
    assert!(index.contains(EVALUATE), "{index}");
    // One script applies the choice of light or dark. The other filters the list, which is complete
    // without the script too.
    let scripts: Vec<&str> = index.split("<script").skip(1).collect();
    assert_eq!(scripts.len(), 2);
    assert!(scripts[0].starts_with(" src=\"/theme/choice.js\"></script>"));
    assert!(scripts[1].starts_with(" src=\"/docs/filter.js\" defer></script>"));
    assert!(index.len() < 200_000, "{} bytes", index.len());
    assert!(!index.contains("http://") && !index.contains("https://"), "external links");
    let mut links = index.split("<a href=\"/docs/").skip(1);
    let is_evaluate = |part: &&str| part.split("</a>").next().unwrap().contains("evaluate</code>");
    let link = links.find(is_evaluate).unwrap();
    let id = link.split('"').next().unwrap();
    let (status, operation, _) = page(&app, &format!("/docs/{id}")).await;
    assert_eq!(status, 200);
    for part in ["<b class=\"POST\">POST</b>", "Response 200", "reason_code", "Example"] {
        assert!(operation.contains(part), "{part} in {operation}");
    }
    let (status, style, headers) = page(&app, "/docs/style.css").await;
    assert!(
        status == 200
            && style.len() < 10_000
            && headers["content-type"] == "text/css; charset=utf-8"
    );
    for absent in ["/docs/nothing", "/docs/schemas/nothing", "/docs/%3Cscript%3E"] {
        let (status, text, _) = page(&app, absent).await;
        assert!(status == 404 && !text.contains("script"), "{text}");
    }
}

/// Pastes the banner's commands with a separate server. Then a reset removes the server's data and
/// no other file.
#[tokio::test(flavor = "multi_thread")]
async fn the_banner_works_as_pasted_and_reset_starts_afresh() {
    let folder = Folder::new("first-hour");
    let service = Service::start(&folder);
    // The banner prints the key before its other lines: the test waits for the last one.
    while !service.banner().contains("/receipts/DECISION_ID") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let banner = service.banner();
    let pasted = banner
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("export KEY="))
        .take_while(|line| !line.starts_with("Who approves?"))
        .map(|line| line.trim_start_matches("Allowed:").trim_start_matches("Held:"))
        .map(|line| line.trim_start_matches("Denied:"));
    let pasted = pasted.collect::<Vec<_>>().join("\n");
    let shell = tokio::task::spawn_blocking(move || {
        Command::new("bash").args(["-c", &pasted]).env("no_proxy", "127.0.0.1").output().unwrap()
    });
    let text = String::from_utf8(shell.await.unwrap().stdout).unwrap();
    for decision in ["allow", "require_approval", "deny"] {
        assert!(text.contains(&format!("  \"decision\": \"{decision}\",\n")), "{text}\n{banner}");
    }
    let data_dir = folder.path().display().to_string();
    let reset = |answer: &str| run_with_input(&["reset", "--data-dir", &data_dir], &[], answer);
    let (code, _, told) = reset(&format!("{data_dir}\n"));
    assert!(code == 1 && told.contains("stop it first"), "{told}");
    drop(service);
    let kept = folder.path().join("notes.txt");
    std::fs::write(&kept, "mine").unwrap();
    let (code, _, told) = reset("yes\n");
    assert!(
        code == 1 && told.contains("for good") && told.contains("no change was made"),
        "{told}"
    );
    assert!(folder.path().join("keys.ring").exists());
    let (code, printed, told) = reset(&format!("{data_dir}\n"));
    assert!(code == 0 && printed.contains("keys.ring"), "{printed}{told}");
    let left: Vec<_> = folder.path().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(left, [kept]);
    let (code, _, told) = reset(&format!("{data_dir}\n"));
    assert!(code == 0 && told.contains("no development server data"), "{told}");
}

/// The database's user can't enter root's folder: root's database is below /var/lib.
#[test]
fn reset_removes_a_database_that_is_outside_of_its_folder() {
    if let Some(reason) = not_root() {
        return forbidden(reason);
    }
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
    let folder = closed.path().join("private");
    let data_dir = folder.display().to_string();
    let (code, _, told) = run(&["seed", "demo", "--data-dir", &data_dir], &[]);
    assert_eq!(code, 0, "{told}");
    let home = fs::read_link(folder.join("postgres")).unwrap();
    assert!(home.starts_with("/var/lib") && home.join("data/PG_VERSION").exists(), "{home:?}");
    let (code, printed, told) = run(&["reset", "--yes", "--data-dir", &data_dir], &[]);
    assert_eq!(code, 0, "{printed}{told}");
    assert!(!home.exists(), "{home:?} is left behind");
    let left = fs::read_dir(&folder).into_iter().flatten().count();
    assert_eq!(left, 0, "{printed}");
}

#[test]
fn reset_is_for_what_the_service_made() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().display().to_string();
    let reset = ["reset", "--yes", "--data-dir", &data_dir];
    let (code, _, told) = run(&reset, &[("DATABASE_URL", "postgres://a@b/c")]);
    assert!(code == 1 && told.contains("is yours to remove"), "{told}");
}
