//! The options of the server, and its roles.

use std::{path::PathBuf, time::Duration};

/// The bootstrap superuser. It owns the database and runs its migrations.
pub const OWNER: &str = "postgres";
/// The service's login role. Its database has the same name.
pub const LOGIN: &str = "authority";

/// The interval of checking the server while it starts or stops.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// Options for running the server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The service's data folder. The database is in its subfolder `postgres`.
    pub data_dir: PathBuf,
    /// The folder of `initdb` and `postgres`. `None` searches the folders of packages, newest
    /// version first.
    pub programs: Option<PathBuf>,
    /// `postgresql.conf` settings that override the defaults in `launch.rs`.
    pub settings: Vec<(String, String)>,
}
