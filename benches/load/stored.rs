//! Values from the database of a measured server, and evidence that is read from the server.

use std::time::Instant;

use authority_store::Db;
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::RunQueryDsl;
use hdrhistogram::Histogram;

use crate::{
    Fault,
    call::{Call, Protocol},
    http1::Connection,
    meter::to_float,
    owner::Owner,
};

/// Bytes of write-ahead log since the database was created.
pub(crate) const WRITTEN: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS n";

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    decision_id: String,
}

/// Returns the number in column `n` of a query.
pub(crate) async fn number(db: &mut Db, sql: &str) -> Result<f64, Fault> {
    let Number { n } = diesel::sql_query(sql).get_result(db).await?;
    Ok(to_float(u64::try_from(n)?))
}

/// Returns the ids of sealed decisions: every `each`-th decision of the log.
pub(crate) async fn sample(db: &mut Db, each: u64) -> Result<Vec<String>, Fault> {
    let sample =
        format!("SELECT decision_id FROM evidence_packs WHERE log_index % {each} = 0 ORDER BY 1");
    let ids: Vec<Id> = diesel::sql_query(sample).load(db).await?;
    Ok(ids.into_iter().map(|row| row.decision_id).collect())
}

/// Returns how long `GET /v1/evidence/{id}` takes, in microseconds.
pub(crate) async fn read(ids: &[String], owner: &Owner) -> Result<Histogram<u64>, Fault> {
    let mut took = Histogram::new(3)?;
    for decision_id in ids {
        let path = format!("/v1/evidence/{decision_id}");
        let call = Call {
            address: owner.address,
            protocol: Protocol::Rest,
            path: path.clone().into(),
            credential: Some(owner.credential().to_owned()),
            body: Vec::new(),
            allowed: |_| true,
            decisions: 0,
        };
        let mut connection = Connection::open(&call).await?;
        let begun = Instant::now();
        let (status, answer) = connection.ask().await?;
        took.record(u64::try_from(begun.elapsed().as_micros())?)?;
        if status != 200 {
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(answer)).into());
        }
    }
    Ok(took)
}
