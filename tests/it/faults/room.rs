//! A full data folder: sealing fails without leaving partial files, readiness reports the fault,
//! and sealing resumes once there is room.

use std::{
    fs::{self, File, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{
    figures::figure,
    process::allowed,
    readiness::{fault, until},
};
use crate::support::{
    Answered, CHECKPOINT, Plain, SEAL_DECISION, TENANT, TestApp, only,
    shown::{forbidden, hindrance, not_root},
};

/// A folder that can be made full: when the test runs as root, a small mounted file system;
/// otherwise, a folder without write permission.
struct Folder {
    path: PathBuf,
    is_mounted: bool,
}

impl Folder {
    /// # Errors
    /// The reason why root can't mount a file system here.
    fn new(path: PathBuf) -> Result<Self, String> {
        fs::create_dir_all(&path).unwrap();
        if not_root().is_some() {
            return Ok(Self { path, is_mounted: false });
        }
        if let Some(reason) = hindrance() {
            return Err(reason);
        }
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&path);
        assert!(mount.status().unwrap().success());
        Ok(Self { path, is_mounted: true })
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    fn fill(&self) {
        if self.is_mounted {
            let mut filler = File::create(self.filler()).unwrap();
            while filler.write_all(&[b'x'; 512]).is_ok() {}
        } else {
            fs::set_permissions(&self.path, Permissions::from_mode(0o500)).unwrap();
        }
    }

    fn empty(&self) {
        if self.is_mounted {
            fs::remove_file(self.filler()).unwrap();
        } else {
            fs::set_permissions(&self.path, Permissions::from_mode(0o700)).unwrap();
        }
    }

    /// Returns the files in the folder, except the filler.
    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.path).unwrap().map(|file| file.unwrap().file_name());
        let mut files: Vec<String> = files.map(|file| file.into_string().unwrap()).collect();
        // The service creates `.room.` files to check for free space.
        files.retain(|file| file != "filler" && !file.starts_with(".room."));
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg("-l").arg(&self.path).status();
        } else {
            let _ = fs::set_permissions(&self.path, Permissions::from_mode(0o700));
        }
    }
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    packs: i64,
}

async fn packs(app: &TestApp) -> i64 {
    use diesel_async::RunQueryDsl;
    let count = "SELECT count(*) AS packs FROM evidence_packs";
    let mut owner = app.database.owner().await;
    let counted: Vec<Count> = diesel::sql_query(count).load(&mut owner).await.unwrap();
    counted[0].packs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_data_folder_stops_sealing_and_is_told() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let folder = match Folder::new(app.database.folder().join("logs")) {
        Ok(folder) => folder,
        Err(reason) => return forbidden(&reason),
    };
    let scopes = ["runtime:read", "runtime:write", "evidence:read", "evidence:write"];
    let client = app.client(&app.api_key(TENANT, &scopes).await);
    let decided = async || {
        let (_, answer) = client.evaluate(allowed()).await;
        only("decision_id", &answer["decision_id"])
    };
    let (first, second, third) = (decided().await, decided().await, decided().await);
    let seal = async |decision: &Value| client.post(SEAL_DECISION, decision.clone()).await;
    assert_eq!(seal(&first).await.0, 200);
    assert_eq!(folder.files(), ["acme"]);

    folder.fill();
    let seal_once = async |decision: &Value| {
        let key = [("idempotency-key", "full")];
        client.call("POST", SEAL_DECISION, Some(decision.clone()), &key).await
    };
    for (status, refused) in [seal(&second).await, seal_once(&third).await] {
        assert_eq!((status, refused["error"].text()), (503, "unavailable"), "{refused:#}");
        let told = refused["message"].as_str().unwrap();
        assert!(
            told.starts_with("the decision was not sealed") && told.contains("/health/ready"),
            "{told}"
        );
    }
    assert_eq!(packs(&app).await, 1, "a refused seal was stored");
    assert_eq!(folder.files(), ["acme"], "a partial file was left behind");
    let answer = until(&client, 503).await;
    let problem = fault(&answer, "data_folder").unwrap();
    assert!(problem.contains("make room on its disk"), "{problem}");
    // Operations that don't need the folder still work.
    assert!(decided().await["decision_id"].is_string());

    folder.empty();
    let answer = until(&client, 200).await;
    assert_eq!(fault(&answer, "data_folder"), None);
    assert_eq!(seal(&second).await.0, 200);
    seal_once(&third).await.assert_status(200);
    assert_eq!((packs(&app).await, folder.files()), (3, vec!["acme".to_owned()]));
    figure("the data folder full, 2 seals refused", "0 packs sealed, 0 files half written");
    let known = fs::read_to_string(Path::new(&folder.path).join("acme")).unwrap();
    let (_, head) = client.text("GET", CHECKPOINT, None).await;
    assert_eq!(known, head, "the last checkpoint is not stored");
}
