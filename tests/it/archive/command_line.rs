//! `archive verify`, `get` and `list`, and reading the archive's files with other programs.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{TENANT, World, s3::python};
use crate::command_line::run;
use crate::support::Plain;

/// A page of the documentation. The tests run its commands.
const PAGE: &str = include_str!("../../../docs/operations/archive.md");

async fn archived() -> (World, Vec<String>) {
    let world = World::start().await;
    let ids = world.decided(6).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    (world, ids)
}

fn folder(world: &World) -> String {
    world.app.database.folder().join("archive").display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_verified_without_service_and_database() {
    let (world, ids) = archived().await;
    let (month, folder) = (world.month(), folder(&world));
    let url = format!("file://{folder}");
    let (_, jwks) = world.owner().text("GET", "/.well-known/jwks.json", None).await;
    let keys = tempfile::tempdir().unwrap();
    let jwks_file = keys.path().join("jwks.json").display().to_string();
    fs::write(&jwks_file, jwks).unwrap();
    let trusted = ["archive", "verify", &url, "--jwks", &jwks_file, "--require-trust"];
    let (code, text, told) = run(&trusted, &[]);
    assert_eq!((code, told.as_str()), (0, ""));
    assert!(text.starts_with(&format!("acme/{month}: valid, 6 decisions, ")), "{text}");
    let (code, text, _) = run(&["archive", "verify", &url], &[]);
    assert!(code == 0 && text.contains("consistent; issuer not pinned: "), "{text}");
    let (code, text, _) = run(&["archive", "list", &url, "--json"], &[]);
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, listed["archives"][0]["decisions"].number()), (0, 6), "{listed:#}");
    assert_eq!(listed["archives"][0]["month"], *month);
    // A copy of the archive may contain only one month's folder.
    let month_url = format!("{url}/acme/{month}");
    let (code, bundle, told) = run(&["archive", "get", &month_url, &ids[3]], &[]);
    assert_eq!(code, 0, "{told}");
    let (_, served) = world.reader(TENANT).await.evidence_text(&ids[3], "bundle=true").await;
    assert_eq!(bundle, served, "byte for byte");
    let unknown = format!("{}{}", &ids[0][..25], "0".repeat(52));
    let (code, _, told) = run(&["archive", "get", &url, &unknown], &[]);
    assert!(code == 1 && told.contains("no archive below"), "{told}");
    for bad in ["s3://", "/srv/archive", "file:///nowhere/at/all"] {
        let (code, _, told) = run(&["archive", "verify", bad], &[]);
        assert!(code == 2 && told.starts_with("error: "), "{bad}: {told}");
    }
    // Flips a bit in the middle of every object.
    for object in world.objects("acme").await {
        let path = Path::new(&folder).join(&object);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        fs::write(&path, damaged).unwrap();
        let (code, _, told) = run(&trusted, &[]);
        assert!(matches!(code, 1 | 2), "{object}: {told}");
        let named = object.rsplit('/').next().unwrap();
        assert!(told.contains(named), "{object}: {told}");
        fs::write(&path, whole).unwrap();
    }
}

/// Errors name the URLs of files that were copied, added or removed. The valid months are still
/// listed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_out_of_place_is_named_and_hides_nothing() {
    let (world, _) = archived().await;
    let (month, folder) = (world.month(), folder(&world));
    let url = format!("file://{folder}");
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    };
    let own = Path::new(&folder).join(format!("acme/{month}"));
    for other in [format!("globex/{month}"), "acme/2001-02".to_owned()] {
        let to = Path::new(&folder).join(&other);
        copy(&own, &to);
        let (code, text, told) = run(&["archive", "verify", &url], &[]);
        assert_eq!(code, 1, "{told}");
        assert!(text.starts_with(&format!("acme/{month}: ")), "{text}");
        assert!(told.contains(&other) && told.contains("not for this folder"), "{told}");
        // On its own, the copied folder is valid.
        let (code, _, told) = run(&["archive", "verify", &format!("{url}/{other}")], &[]);
        assert_eq!(code, 0, "{told}");
        fs::remove_dir_all(to).unwrap();
    }
    let named = fs::read_dir(&own).unwrap().map(|file| file.unwrap().file_name());
    let manifest = named.map(|name| name.into_string().unwrap());
    let manifest = manifest.into_iter().find(|name| name.starts_with("manifest-")).unwrap();
    fs::write(own.join("manifest-zz.json"), "{}").unwrap();
    let month_url = format!("{url}/acme/{month}");
    let (code, text, told) = run(&["archive", "verify", &month_url], &[]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains(&manifest) && told.contains("manifest-zz.json"), "{told}");
    assert!(!told.contains("/manifest") && text.contains("6 decisions"), "{text}{told}");
    fs::remove_file(own.join("manifest-zz.json")).unwrap();
    // Uses the keys of another installation.
    let keys = tempfile::tempdir().unwrap();
    let jwks = keys.path().join("jwks.json").display().to_string();
    fs::write(&jwks, r#"{"keys": []}"#).unwrap();
    let (code, _, told) = run(&["archive", "verify", &url, "--jwks", &jwks], &[]);
    assert!(code == 1 && told.contains("jwks.json again"), "{told}");
    let empty = format!("file://{}", keys.path().join("none").display());
    for command in ["list", "verify"] {
        let (code, _, told) = run(&["archive", command, &empty], &[]);
        assert!(code == 2 && told.contains(&empty), "{command}: {told}");
    }
}

/// The query in docs/operations/archive.md works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_reads_the_indexes_as_the_page_says() {
    let (world, ids) = archived().await;
    let query = PAGE.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next());
    let query = query.unwrap().replace("/var/lib/authority/archive", &folder(&world));
    let script = format!(
        "import duckdb\nfor row in duckdb.sql('''{query}''').fetchall(): print(*row, sep='|')"
    );
    let output = Command::new(python()).args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        ["svc:agent:acme:invoice-bot|allow_with_constraints|6"],
        "{text}"
    );
    // Any zstd program can decompress the lines.
    let part = world.objects("acme").await.into_iter().find(|name| name.contains("/decisions-"));
    let path = Path::new(&folder(&world)).join(part.unwrap());
    let script = format!(
        "import duckdb\nprint(duckdb.sql(\"SELECT decision_id FROM read_json('{}', format = 'newline_delimited', compression = 'zstd') ORDER BY 1\").fetchall())",
        path.display()
    );
    let output = Command::new(python()).args(["-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&ids[0]), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
