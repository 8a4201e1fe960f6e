//! The names of a database's three roles. Roles belong to the whole cluster: the names contain the
//! database's name.

use authority_crypto::sha256;

/// The kinds of roles: for one tenant, for all tenants, and for recording decisions.
const KINDS: [&str; 3] = ["tenant", "system", "recorder"];
/// The maximum length of the suffix. Postgres allows 63 bytes for the whole name.
const LONGEST: usize = 44;

/// Returns the suffix of the role names.
///
/// A long database name is hashed. The hash has a length that an unhashed suffix cannot have.
pub(super) fn suffix(database: &str) -> String {
    if database.len() < LONGEST {
        return database.to_owned();
    }
    let mut hash = hex::encode(sha256(database.as_bytes()));
    hash.truncate(LONGEST);
    hash
}

/// Returns `authority_<kind>_<suffix>` for each kind.
pub(super) fn names(database: &str) -> Vec<String> {
    KINDS.iter().map(|kind| name(kind, database)).collect()
}

/// Returns the role that reads all tenants.
pub(super) fn system(database: &str) -> String {
    name("system", database)
}

fn name(kind: &str, database: &str) -> String {
    format!("authority_{kind}_{}", suffix(database))
}
