//! Deletes only objects that no archive needs.
//!
//! Another database may write to the same bucket, or this database may have been restored from an
//! older backup. A manifest that this database does not know is therefore kept, with all objects it
//! names. Files that are not part of an archive are kept as well.

use std::collections::HashSet;

use authority_evidence::archive::Manifest;
use diesel::{
    QueryableByName,
    sql_types::{Array, Text},
};

use crate::{
    Bucket, Error,
    bucket::{self, Listed},
    format::names,
    manifest::MOST_BYTES,
};

/// Notes that the folder of an archive contains only objects that the archive names.
pub(crate) const NOTE: &str = "
    UPDATE archives SET is_tidy = true, replaced = '{}' WHERE tenant_id = $1 AND month = $2 AND manifest = $3";

/// The names of the manifests of a month that this database has written.
#[derive(Clone, Debug, Default, QueryableByName)]
pub(crate) struct Known {
    /// Manifests to delete, with the objects that no other manifest names.
    #[diesel(sql_type = Array<Text>)]
    pub(crate) replaced: Vec<String>,
    /// Manifests that an erasure is writing.
    #[diesel(sql_type = Array<Text>)]
    pub(crate) intended: Vec<String>,
}

/// Deletes the objects of a run that wrote no archive. Returns `false` if objects remain.
///
/// # Errors
/// The bucket is unavailable.
pub(crate) async fn delete_run(
    bucket: &Bucket,
    folder: &str,
    known: &Known,
) -> Result<bool, Error> {
    Folder::read(bucket, folder, known, None).await?.delete(|_| true).await
}

/// Deletes the objects that the archive with the manifest `own` does not need.
///
/// These are the objects of replaced archives, and older objects that no manifest names. Returns
/// `false` if objects remain: an object newer than the manifest is kept, because it may belong to
/// an erasure that is still writing.
///
/// # Errors
/// The bucket is unavailable.
pub(crate) async fn delete_unnamed(
    bucket: &Bucket,
    folder: &str,
    own: (&str, &Manifest),
    known: &Known,
) -> Result<bool, Error> {
    let folder = Folder::read(bucket, folder, known, Some(own)).await?;
    let path = folder.path_of(own.0);
    let Some(written) = folder.listed.iter().find(|object| object.name == path) else {
        return Ok(false);
    };
    let written = written.modified;
    let replaced = folder.replaced.clone();
    folder.delete(|object| object.modified <= written || replaced.contains(&object.name)).await
}

/// The objects in an archive's folder, and which of them to keep.
struct Folder<'a> {
    bucket: &'a Bucket,
    path: &'a str,
    listed: Vec<Listed>,
    /// Paths that an archive, another database or an erasure needs.
    needed: HashSet<String>,
    /// The paths of the objects in replaced manifests. Each manifest's own path follows its objects.
    replaced: Vec<String>,
    /// Whether every manifest could be read. Otherwise no object is deleted.
    is_known: bool,
}

impl<'a> Folder<'a> {
    async fn read(
        bucket: &'a Bucket,
        path: &'a str,
        known: &Known,
        own: Option<(&str, &Manifest)>,
    ) -> Result<Self, Error> {
        let mut listed = bucket.list(path).await?;
        let name_of = |object: &Listed| {
            let name = object.name.strip_prefix(path)?.strip_prefix('/')?;
            names::is_object(name).then(|| name.to_owned())
        };
        listed.retain(|object| name_of(object).is_some());
        let mut folder = Self {
            bucket,
            path,
            listed,
            needed: HashSet::new(),
            replaced: Vec::new(),
            is_known: true,
        };
        if let Some((name, manifest)) = own {
            folder.needed.extend(folder.paths(name, manifest));
        }
        let manifests: Vec<String> = folder
            .listed
            .iter()
            .filter_map(name_of)
            .filter(|name| names::is_manifest(name))
            .collect();
        for name in manifests {
            if own.is_some_and(|(own, _)| own == name) {
                continue;
            }
            let is_replaced = known.replaced.contains(&name);
            let Some(manifest) = folder.manifest(&name).await? else {
                tracing::error!(
                    archive.folder = path,
                    archive.manifest = name,
                    "failed to read a manifest; keeping all objects of its folder"
                );
                folder.is_known = false;
                break;
            };
            let paths = folder.paths(&name, &manifest);
            if is_replaced {
                folder.replaced.extend(paths);
                continue;
            }
            if !known.intended.contains(&name) {
                tracing::warn!(
                    archive.folder = path,
                    archive.manifest = name,
                    "found a manifest that this database did not write; keeping its objects"
                );
            }
            folder.needed.extend(paths);
        }
        Ok(folder)
    }

    async fn manifest(&self, name: &str) -> Result<Option<Manifest>, Error> {
        match self.bucket.get(&self.path_of(name), MOST_BYTES).await {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            // It was deleted in the meantime or is not a manifest.
            Err(bucket::Error::NotFound(_) | bucket::Error::Unfit(..)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the paths of the manifest's objects, and the path of the manifest at the end.
    fn paths(&self, name: &str, manifest: &Manifest) -> Vec<String> {
        let objects = manifest.objects.iter().map(|object| object.name.as_str());
        objects.chain([name]).map(|name| self.path_of(name)).collect()
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Deletes the objects that are not needed and that `may_go` accepts, manifests last: if the
    /// call is interrupted, the next one needs the manifests to find the remaining objects.
    async fn delete(mut self, may_go: impl Fn(&Listed) -> bool) -> Result<bool, Error> {
        if !self.is_known {
            return Ok(false);
        }
        let start = self.path.len() + 1;
        self.listed.sort_by_key(|object| names::is_manifest(&object.name[start..]));
        let mut is_clean = true;
        for object in self.listed.iter().filter(|object| !self.needed.contains(&object.name)) {
            if may_go(object) {
                self.bucket.delete(&object.name).await?;
                tracing::info!(archive.object = object.name, "deleted an object of no archive");
            } else {
                is_clean = false;
            }
        }
        Ok(self.bucket.delete_halves(self.path).await? && is_clean)
    }
}
