//! Where archives are kept: a folder, or a bucket that is compatible with S3.

use std::{ffi::OsString, fs, io, ops::Range, sync::Arc};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use object_store::{
    ClientConfigKey, ObjectStore, ObjectStoreExt, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};
use tokio::time::Duration;

use crate::format::names;

/// A request that is not answered for so long is given up.
const ANSWER: &str = "30 seconds";
const CONNECT: &str = "5 seconds";
/// How long one operation is repeated when the store is away or overloaded.
const REPEAT: Duration = Duration::from_secs(20);
/// A file that is half written for so long is so for ever.
const HALF: Duration = Duration::from_secs(60);

/// Why the archive's store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{0}` {1}; it must be such as file:///var/lib/authority/archive or s3://bucket/prefix"
    )]
    Url(String, String),
    #[error("the archive has no `{0}`")]
    NotFound(String),
    #[error("the archive cannot be used: {0}")]
    Store(object_store::Error),
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => Self::NotFound(path),
            error => Self::Store(error),
        }
    }
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// By the store's clock.
    pub modified: DateTime<Utc>,
}

/// A place for objects. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// The same, if it is a folder.
    files: Option<LocalFileSystem>,
    prefix: Path,
}

impl Bucket {
    /// The folder of a `file` URL, or the bucket and prefix of an `s3` URL, whose credentials, region and endpoint
    /// are in this process's environment (`AWS_*`). Nothing is read or written yet.
    ///
    /// # Errors
    /// The URL names neither, or the environment does not suffice.
    pub fn open(url: &str) -> Result<Self, Error> {
        let text = |text: OsString| text.into_string().ok();
        let variables = std::env::vars_os();
        Self::with(url, variables.filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// The same with other variables.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn with(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Error> {
        let unfit = |why: &str| Error::Url(url.to_owned(), why.to_owned());
        match url.split_once("://") {
            Some(("file", path)) if path.starts_with('/') => {
                let prefix = Path::from_absolute_path(path);
                let prefix = prefix.map_err(|why| unfit(&why.to_string()))?;
                // Rows are deleted when an object is written: it must be on the disk.
                let files = LocalFileSystem::new().with_fsync(true);
                Ok(Self { store: Arc::new(files.clone()), files: Some(files), prefix })
            }
            Some(("file", _)) => Err(unfit("names no absolute path")),
            Some(("s3", rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() || rest.contains(['?', '#', '@']) {
                    return Err(unfit("names no bucket"));
                }
                let prefix = Path::parse(prefix).map_err(|why| unfit(&why.to_string()))?;
                Ok(Self { store: Arc::new(s3(bucket, variables)?), files: None, prefix })
            }
            _ => Err(unfit("is neither a `file` nor an `s3` URL")),
        }
    }

    /// Writes an object: all of it or nothing, and after the call it is on the disk.
    pub async fn put(&self, name: &str, object: Vec<u8>) -> Result<(), Error> {
        self.store.put(&self.path(name), object.into()).await?;
        Ok(())
    }

    pub async fn get(&self, name: &str) -> Result<Bytes, Error> {
        Ok(self.store.get(&self.path(name)).await?.bytes().await?)
    }

    /// Some bytes of an object.
    pub async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, Error> {
        Ok(self.store.get_range(&self.path(name), range).await?)
    }

    /// Deletes an object; no error if it is gone.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(name)).await.map_err(Error::from) {
            Ok(()) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// All objects below a folder, `""` for all of them, in the order of their names.
    pub async fn list(&self, folder: &str) -> Result<Vec<Listed>, Error> {
        let found: Vec<_> = self.store.list(Some(&self.path(folder))).try_collect().await?;
        let listed = found.iter().filter_map(|object| {
            let name = self.name(&object.location)?;
            Some(Listed { name, modified: object.last_modified })
        });
        let mut listed: Vec<Listed> = listed.collect();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }

    /// Deletes the files in a folder that a killed process left half written, which no list has. A bucket has none.
    /// Returns whether none is left: a new one may still be being written.
    pub async fn delete_halves(&self, folder: &str) -> Result<bool, Error> {
        let Some(files) = &self.files else { return Ok(true) };
        let place = files.path_to_filesystem(&self.path(folder))?;
        let deleted = tokio::task::spawn_blocking(move || delete_halves(&place)).await;
        let deleted = deleted.map_err(io::Error::other).flatten();
        deleted.map_err(|why| {
            Error::Store(object_store::Error::Generic { store: "folder", source: why.into() })
        })
    }

    fn path(&self, name: &str) -> Path {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), Path::join)
    }

    fn name(&self, path: &Path) -> Option<String> {
        let parts: Vec<_> = path.prefix_match(&self.prefix)?.collect();
        Some(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/"))
    }
}

/// A file is called `name#1` until it is whole, for a moment: one that is older than [`HALF`] was left.
fn delete_halves(folder: &std::path::Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    let mut none_left = true;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let half = name.to_str().and_then(|name| name.rsplit_once('#'));
        let is_half = half.is_some_and(|(whole, number)| {
            names::is_object(whole) && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !is_half {
            continue;
        }
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age >= HALF {
            fs::remove_file(entry.path())?;
        } else {
            none_left = false;
        }
    }
    Ok(none_left)
}

/// Variables that are none of S3's are left out, as the usual tools do.
fn s3(
    bucket: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<impl ObjectStore, Error> {
    let retry = RetryConfig { max_retries: 5, retry_timeout: REPEAT, ..RetryConfig::default() };
    let known = variables.into_iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("AWS_").map(|_| name.to_ascii_lowercase())?;
        Some((name.parse::<AmazonS3ConfigKey>().ok()?, value))
    });
    let builder =
        known.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value));
    let builder = builder
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), ANSWER)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT);
    Ok(builder.with_retry(retry).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn objects_are_written_read_listed_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(&format!("file://{}/a b", folder.path().display())).unwrap();
        let names = async |folder: &str| -> Vec<String> {
            let listed = bucket.list(folder).await.unwrap();
            listed.into_iter().map(|object| object.name).collect()
        };
        assert_eq!(names("").await, [""; 0]);
        bucket.put("acme/2026-07/one", b"first".to_vec()).await.unwrap();
        bucket.put("acme/2026-07/two", b"second".to_vec()).await.unwrap();
        bucket.put("acme-2/2026-07/one", b"other".to_vec()).await.unwrap();
        assert_eq!(names("acme").await, ["acme/2026-07/one", "acme/2026-07/two"]);
        assert_eq!(names("").await.len(), 3);
        assert_eq!(&*bucket.get("acme/2026-07/two").await.unwrap(), b"second");
        assert_eq!(&*bucket.get_range("acme/2026-07/two", 1..4).await.unwrap(), b"eco");
        assert_eq!(
            std::fs::read(folder.path().join("a b/acme/2026-07/one")).unwrap(),
            b"first",
            "at the very place"
        );
        bucket.delete("acme/2026-07/one").await.unwrap();
        bucket.delete("acme/2026-07/one").await.unwrap();
        assert!(matches!(bucket.get("acme/2026-07/one").await, Err(Error::NotFound(_))));
        // What a killed process left half written.
        let half = folder.path().join("a b/acme/2026-07/index-00001-abababababab.parquet#1");
        for (minutes, stays) in [(0, true), (2, false)] {
            let file = fs::File::create(&half).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - Duration::from_secs(60 * minutes)).unwrap();
            assert_eq!(names("acme").await, ["acme/2026-07/two"]);
            bucket.delete_halves("acme/2026-07").await.unwrap();
            assert_eq!(half.exists(), stays);
        }
        bucket.delete_halves("acme/2020-01").await.unwrap();
        // No name leads out of the folder.
        bucket.put("../../up", b"kept in".to_vec()).await.unwrap();
        assert!(!folder.path().join("up").exists());
        assert_eq!(&*bucket.get("../../up").await.unwrap(), b"kept in");
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for bad in ["", "archive", "/archive", "file://archive", "s3://", "s3:///x", "gs://a/b"] {
            let error = Bucket::open(bad).unwrap_err().to_string();
            assert!(error.contains("s3://bucket/prefix"), "{bad}: {error}");
        }
        assert!(Bucket::open("s3://bucket").is_ok() && Bucket::open("s3://bucket/a/b/").is_ok());
    }
}
