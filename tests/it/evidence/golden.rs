//! The golden corpus: sealed decisions of the past, which `crates/evidence/tests/golden.rs` decides
//! again.
//!
//! `AUTHORITY_UPDATE=1 cargo test --test it -- worlds asking time_zones definitions
//! sealed_decisions_replay` adds the kinds of decision that the corpus lacks. They come from the
//! worlds and from the tests of declines, limits, time zones, definitions of tools and observing
//! versions. Existing files never change.

use std::{fs, path::PathBuf};

use authority_evidence::verify::{Trust, Valid, verify};
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;

use super::{bundle, sealed};
use crate::support::TestApp;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[derive(QueryableByName)]
struct Kind {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    name: String,
}

/// Seals some decisions of each kind that the app has made, and decides them again from their
/// bundles.
pub(crate) async fn every_kind_replays(app: &TestApp) {
    let kinds: Vec<Kind> = diesel::sql_query(
        "SELECT id, reason_code || '-' || n AS name FROM ( \
             SELECT id, reason_code, row_number() OVER (PARTITION BY reason_code ORDER BY id) AS n \
             FROM decisions) AS d \
         WHERE n <= CASE reason_code WHEN 'permission_granted' THEN 12 ELSE 2 END ORDER BY 2",
    )
    .load(&mut app.database.owner().await)
    .await
    .unwrap();
    for Kind { id, name } in kinds {
        replays(app, &id, &name).await;
    }
}

/// Seals a decision, and decides it again from its bundle. Returns the bundle.
pub(crate) async fn replays(app: &TestApp, id: &str, name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "no setting of the service")]
    let update = std::env::var_os("AUTHORITY_UPDATE").is_some();
    let owner = app.owner();
    sealed(&owner, id).await;
    let file = bundle(&owner, id).await;
    let found = verify(file.as_bytes(), &Trust::default());
    assert!(matches!(found, Ok(Valid::IssuerNotPinned(_))), "{name}: {found:?}");
    let place = folder().join(format!("{name}.json"));
    if update && !place.exists() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(place, &file).unwrap();
    }
    file
}
