//! Deletes objects that no archive names.

use authority_evidence::archive::Manifest;

use crate::{Bucket, Error};

/// Deletes everything in a folder that has no archive.
///
/// # Errors
/// The bucket is away.
pub(crate) async fn delete_all(bucket: &Bucket, folder: &str) -> Result<(), Error> {
    for object in bucket.list(folder).await? {
        bucket.delete(&object.name).await?;
    }
    Ok(bucket.delete_halves(folder).await?)
}

/// Deletes what was written to an archive's folder before its manifest and is not in it: of runs that were ended, and
/// of the archive that this one replaced. What is newer may be of one that is still being written.
///
/// # Errors
/// The bucket is away.
pub(crate) async fn delete_unnamed(
    bucket: &Bucket,
    folder: &str,
    name: &str,
    manifest: &Manifest,
) -> Result<(), Error> {
    let listed = bucket.list(folder).await?;
    let path = |name: &str| format!("{folder}/{name}");
    let Some(own) = listed.iter().find(|object| object.name == path(name)) else { return Ok(()) };
    let is_named = |found: &str| {
        found == own.name || manifest.objects.iter().any(|object| found == path(&object.name))
    };
    for object in listed.iter().filter(|object| !is_named(&object.name)) {
        if object.modified <= own.modified {
            bucket.delete(&object.name).await?;
            tracing::info!(object = object.name, "deleted an object that no archive names");
        }
    }
    Ok(bucket.delete_halves(folder).await?)
}
