//! The names of a database's three roles. Roles belong to the whole cluster, so the names contain the
//! database's.

use authority_crypto::sha256;

/// As which a transaction works: for one tenant, for all of them, to record decisions.
const KINDS: [&str; 3] = ["tenant", "system", "recorder"];
/// Postgres allows 63 bytes in all.
const LONGEST: usize = 44;

/// The end of the names. A longer name of a database is hashed, to a length that no other has.
pub(super) fn suffix(database: &str) -> String {
    if database.len() < LONGEST {
        return database.to_owned();
    }
    let mut hash = hex::encode(sha256(database.as_bytes()));
    hash.truncate(LONGEST);
    hash
}

/// `authority_<kind>_<suffix>` of each kind.
pub(super) fn names(database: &str) -> Vec<String> {
    KINDS.iter().map(|kind| name(kind, database)).collect()
}

/// The role that reads every tenant.
pub(super) fn system(database: &str) -> String {
    name("system", database)
}

fn name(kind: &str, database: &str) -> String {
    format!("authority_{kind}_{}", suffix(database))
}
