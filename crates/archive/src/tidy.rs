//! Deletes objects that no archive needs, and nothing else.
//!
//! Another database may write to the same place, or an older state of this one that was restored: a manifest that this
//! database does not know stays, with all that it names. So do files that are none of an archive's.

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

/// The names of manifests that this database has written of a month.
#[derive(Clone, Debug, Default, QueryableByName)]
pub(crate) struct Known {
    /// They and what only they name are to go.
    #[diesel(sql_type = Array<Text>)]
    pub(crate) replaced: Vec<String>,
    /// What they name is being written.
    #[diesel(sql_type = Array<Text>)]
    pub(crate) intended: Vec<String>,
}

/// Deletes what a run wrote that has no archive. Returns whether nothing of it is left.
///
/// # Errors
/// The bucket is away.
pub(crate) async fn delete_run(
    bucket: &Bucket,
    folder: &str,
    known: &Known,
) -> Result<bool, Error> {
    Folder::read(bucket, folder, known, None).await?.delete(|_| true).await
}

/// Deletes what the archive with this manifest does not need: what it took the place of, and what was written before it
/// and never named. Returns whether nothing of it is left: an object that is newer than the manifest may be of an
/// erasure that is still writing.
///
/// # Errors
/// The bucket is away.
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

/// A folder of an archive: its objects, and which of them stay.
struct Folder<'a> {
    bucket: &'a Bucket,
    path: &'a str,
    listed: Vec<Listed>,
    /// Paths that an archive, a stranger or an erasure needs.
    needed: HashSet<String>,
    /// Paths that a manifest names which is to go, and its own, which goes last.
    replaced: Vec<String>,
    /// Whether each manifest could be read: otherwise nothing is deleted.
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
                    folder = path,
                    manifest = name,
                    "a manifest cannot be read: nothing is deleted there"
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
                    folder = path,
                    manifest = name,
                    "this database did not write this manifest: it stays with all that it names"
                );
            }
            folder.needed.extend(paths);
        }
        Ok(folder)
    }

    async fn manifest(&self, name: &str) -> Result<Option<Manifest>, Error> {
        match self.bucket.get(&self.path_of(name), MOST_BYTES).await {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            // It was deleted meanwhile, or is no manifest.
            Err(bucket::Error::NotFound(_) | bucket::Error::Unfit(..)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The objects of a manifest, and at the end itself.
    fn paths(&self, name: &str, manifest: &Manifest) -> Vec<String> {
        let objects = manifest.objects.iter().map(|object| object.name.as_str());
        objects.chain([name]).map(|name| self.path_of(name)).collect()
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Manifests go after what they name: whoever is cut off finds the rest by them.
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
                tracing::info!(object = object.name, "deleted an object that no archive names");
            } else {
                is_clean = false;
            }
        }
        Ok(self.bucket.delete_halves(self.path).await? && is_clean)
    }
}
