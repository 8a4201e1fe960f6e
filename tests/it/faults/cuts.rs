//! All connections to the database are cut repeatedly under load: no answered decision is lost.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;

use super::{
    deadlines::number,
    figures::{figure, times},
    killed::load,
    process::allowed,
};
use crate::support::{TestApp, Wishes, database::Database};

const CUTS: usize = 10;
/// The time between two cuts, enough for some decisions.
const EVERY: Duration = Duration::from_millis(200);

/// Ends every other connection and returns their number.
const CUT: &str = "SELECT count(pg_terminate_backend(pid)) AS n FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid() \
                   AND backend_type = 'client backend'";

#[derive(QueryableByName)]
struct Stored {
    #[diesel(sql_type = Text)]
    id: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_answered_is_lost_when_connections_are_cut() {
    let app = TestApp::on(Arc::new(Database::fresh().await), Wishes::default()).await;
    let client = app.client(&app.demo().await.api_key);
    let mut owner = app.database.owner().await;
    let (cuts, mut connections) = (CUTS * times(), 0);
    let decided = load(&client, EVERY).await;
    for _ in 0..cuts {
        connections += number(&mut owner, CUT).await;
        tokio::time::sleep(EVERY).await;
    }
    let cut = Instant::now();
    while client.evaluate(allowed()).await.0 != 200 {
        assert!(cut.elapsed() < Duration::from_secs(10), "no decision after a cut");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let answered = decided.finish().await;
    assert!(answered.len() > cuts, "{} answers", answered.len());
    let stored = diesel::sql_query("SELECT id FROM decisions").load::<Stored>(&mut owner).await;
    let stored: HashSet<String> = stored.unwrap().into_iter().map(|row| row.id).collect();
    let lost = answered.iter().filter(|id| !stored.contains(*id)).count();
    figure(
        &format!(
            "{} answered decisions, {connections} connections cut in {cuts} cuts",
            answered.len()
        ),
        &format!("{lost} answers without a record"),
    );
    assert_eq!(lost, 0);
    assert!(connections > i64::try_from(cuts).unwrap(), "{connections}");
}
