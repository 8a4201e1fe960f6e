//! Objects in a folder or a bucket.

use std::{ffi::OsString, io, ops::Range, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};

use super::{error::Error, folder, listed::Listed, s3};

/// The folder or bucket that stores an installation's archives. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// The same store, if it is a folder.
    files: Option<LocalFileSystem>,
    prefix: Path,
}

impl Bucket {
    /// Opens the folder of a `file` URL, or the bucket and prefix of an `s3` URL.
    ///
    /// The credentials, region and endpoint of a bucket come from this process's environment
    /// (`AWS_*`). Opening reads and writes no objects.
    ///
    /// # Errors
    /// The URL is neither a `file` nor an `s3` URL, or a required variable is missing.
    pub fn open(url: &str) -> Result<Self, Error> {
        let text = |text: OsString| text.into_string().ok();
        let variables = std::env::vars_os();
        Self::with(url, variables.filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// Opens the store like [`Self::open`], with these variables in place of the environment.
    ///
    /// # Errors
    /// The same as for [`Self::open`].
    pub fn with(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Error> {
        let unfit = |why: &str| Error::Url(url.to_owned(), why.to_owned());
        match url.split_once("://") {
            Some(("file", path)) if path.starts_with('/') => {
                let prefix = Path::from_absolute_path(path);
                let prefix = prefix.map_err(|why| unfit(&why.to_string()))?;
                // Rows of the database are deleted after their archive is written. Files must
                // therefore be flushed to disk (`fsync`).
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
                Ok(Self { store: Arc::new(s3::open(bucket, variables)?), files: None, prefix })
            }
            _ => Err(unfit("is neither a `file` nor an `s3` URL")),
        }
    }

    /// Writes an object completely or not at all. After the call it is stored durably.
    pub async fn put(&self, name: &str, object: Vec<u8>) -> Result<(), Error> {
        self.store.put(&self.path(name), object.into()).await?;
        Ok(())
    }

    /// Reads an object of at most this many bytes.
    ///
    /// # Errors
    /// [`Error::Unfit`] if the object is larger or not a regular file; another error if the bucket
    /// is unavailable.
    pub async fn get(&self, name: &str, most: u64) -> Result<Bytes, Error> {
        self.fit(name).await?;
        let found = self.store.get(&self.path(name)).await?;
        let size = found.meta.size;
        let larger = || Error::Unfit(name.to_owned(), format!("has {size} bytes, not {most}"));
        if size > most {
            return Err(larger());
        }
        let (mut read, mut pieces) = (BytesMut::new(), found.into_stream());
        while let Some(piece) = pieces.try_next().await? {
            read.extend_from_slice(&piece);
            // The object may be larger than the size that the store reported.
            if u64::try_from(read.len()).is_ok_and(|length| length > most) {
                return Err(larger());
            }
        }
        Ok(read.freeze())
    }

    /// Reads some bytes of an object, which must exist.
    pub async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, Error> {
        self.fit(name).await?;
        Ok(self.store.get_range(&self.path(name), range).await?)
    }

    /// Deletes an object. It is not an error if the object does not exist.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(name)).await.map_err(Error::from) {
            Ok(()) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists all objects below a folder, in the order of their names. `""` lists all objects.
    pub async fn list(&self, folder: &str) -> Result<Vec<Listed>, Error> {
        let found: Vec<_> = self.store.list(Some(&self.path(folder))).try_collect().await?;
        let listed = found.iter().filter_map(|object| {
            let name = self.name(&object.location)?;
            Some(Listed { name, modified: object.last_modified, bytes: object.size })
        });
        let mut listed: Vec<Listed> = listed.collect();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }

    /// Deletes partly written files that a killed process left in a folder.
    ///
    /// [`Self::list`] does not show these files, and a bucket has none. Returns `false` if a recent
    /// file remains, because another process may still be writing it.
    pub async fn delete_halves(&self, folder: &str) -> Result<bool, Error> {
        let none_left = self.in_folder(folder, folder::delete_halves).await?;
        Ok(none_left.unwrap_or(true))
    }

    /// Checks that an object in a folder is a regular file.
    async fn fit(&self, name: &str) -> Result<(), Error> {
        match self.in_folder(name, folder::unfit).await?.flatten() {
            Some(why) => Err(Error::Unfit(name.to_owned(), why.to_owned())),
            None => Ok(()),
        }
    }

    /// Runs `act` on the path of a file or a folder. Returns `None` in a bucket.
    async fn in_folder<T: Send + 'static>(
        &self,
        name: &str,
        act: fn(&std::path::Path) -> io::Result<T>,
    ) -> Result<Option<T>, Error> {
        let Some(files) = &self.files else { return Ok(None) };
        let place = files.path_to_filesystem(&self.path(name))?;
        let done = tokio::task::spawn_blocking(move || act(&place)).await;
        let done = done.map_err(io::Error::other).flatten();
        done.map(Some).map_err(|why| {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::time::Duration;

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
        assert_eq!(&*bucket.get("acme/2026-07/two", 6).await.unwrap(), b"second");
        assert_eq!(&*bucket.get_range("acme/2026-07/two", 1..4).await.unwrap(), b"eco");
        assert_eq!(
            std::fs::read(folder.path().join("a b/acme/2026-07/one")).unwrap(),
            b"first",
            "at the exact path"
        );
        bucket.delete("acme/2026-07/one").await.unwrap();
        bucket.delete("acme/2026-07/one").await.unwrap();
        assert!(matches!(bucket.get("acme/2026-07/one", 9).await, Err(Error::NotFound(_))));
        // A partly written file of a killed process.
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
        // A name with `..` cannot lead out of the archive's folder.
        bucket.put("../../up", b"kept in".to_vec()).await.unwrap();
        assert!(!folder.path().join("up").exists());
        assert_eq!(&*bucket.get("../../up", 9).await.unwrap(), b"kept in");
    }

    /// Checks links, folders, pipes and sizes. Reading a pipe would never return.
    #[tokio::test]
    async fn only_files_of_the_right_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(&format!("file://{}", folder.path().display())).unwrap();
        bucket.put("file", b"some bytes".to_vec()).await.unwrap();
        assert_eq!(&*bucket.get("file", 10).await.unwrap(), b"some bytes");
        std::os::unix::fs::symlink(folder.path().join("file"), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero")).unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
        assert!(made.unwrap().success());
        for (name, why) in [
            ("file", "has 10 bytes, not 9"),
            ("link", "is a link"),
            ("zero", "is a link"),
            ("folder", "is a folder"),
            ("pipe", "is a pipe"),
        ] {
            let told = bucket.get(name, 9).await.unwrap_err().to_string();
            assert!(told.contains(&format!("`{name}`")) && told.contains(why), "{told}");
            let range = bucket.get_range(name, 2..4).await;
            assert_eq!(range.is_ok(), name == "file", "{name}");
        }
        assert!(matches!(bucket.get("none", 9).await, Err(Error::NotFound(_))));
    }

    #[test]
    fn an_endpoint_without_tls_is_named_at_once() {
        let with = |allow: Option<&str>| {
            let endpoint = ("AWS_ENDPOINT".to_owned(), "http://127.0.0.1:9".to_owned());
            let allow = allow.map(|allow| ("AWS_ALLOW_HTTP".to_owned(), allow.to_owned()));
            Bucket::with("s3://bucket", std::iter::once(endpoint).chain(allow))
        };
        for refused in [None, Some("false")] {
            let told = with(refused).unwrap_err().to_string();
            assert!(told.contains("`AWS_ALLOW_HTTP=true`"), "{told}");
        }
        assert!(with(Some("true")).is_ok());
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
