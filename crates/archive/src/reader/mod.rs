//! Finds decisions in archives after their rows were removed.
//!
//! The database stores the digest of the manifest, the manifest stores the digest of the index, and
//! the index stores the digest of the frame. The result is therefore the decision as it was
//! archived, or an error.

mod archived;
pub(crate) mod recent;

use std::sync::Arc;

use authority_crypto::sha256;
use authority_evidence::archive::{Content, Manifest, Object};
use authority_ids::{DecisionId, TenantId};
use authority_keys::Keys;
use authority_store::{RunQueryDsl, Scope, Store};
use diesel::sql_types::{Bytea, Integer, Nullable, Text};

pub use archived::Archived;
use recent::Recent;

use crate::{
    Bucket, Error, bucket,
    format::{
        frames::frame_lines,
        index::{self, About, IndexRow},
        month::Month,
        names,
    },
    inspect::{self, damaged},
    manifest::Archive,
};

/// The archives that may contain a decision made at this time, optionally of one tenant. Archives
/// with all rows still in the tables are left out: those decisions are read from the tables.
const PLACES: &str = "
    SELECT a.tenant_id, a.month, a.manifest, a.manifest_sha256
    FROM archived_times t JOIN archives a ON a.tenant_id = t.tenant_id AND a.month = t.month
    WHERE t.hour = $1 AND position($2 IN t.times) > 0 AND ($3 IS NULL OR t.tenant_id = $3)
      AND a.removal_begun IS NOT NULL
    ORDER BY a.tenant_id";

/// Reads archived decisions. Cheap to clone.
#[derive(Clone)]
pub struct Archives(Arc<Inner>);

struct Inner {
    store: Store,
    /// The keys that sign manifests.
    keys: Keys,
    /// `None` in an installation without an archive.
    bucket: Option<Bucket>,
    /// Manifests by tenant, month and the manifest's SHA-256.
    manifests: Recent<Manifest>,
    /// Indexes by the SHA-256 of the index.
    indexes: Recent<Vec<IndexRow>>,
}

impl Archives {
    pub fn new(store: Store, keys: Keys, bucket: Option<Bucket>) -> Self {
        let (manifests, indexes) = (Recent::default(), Recent::default());
        Self(Arc::new(Inner { store, keys, bucket, manifests, indexes }))
    }

    /// Returns the archived decision. If the scope has a tenant, only that tenant's archives are
    /// read.
    ///
    /// Returns `None` if no archive has the decision.
    ///
    /// # Errors
    /// The archive or the database is unavailable, or an object is damaged.
    pub async fn find(&self, scope: &Scope, id: &DecisionId) -> Result<Option<Archived>, Error> {
        for place in self.places(scope, id).await? {
            let Some(bucket) = &self.0.bucket else { return Err(Error::NoArchive(place.month)) };
            if let Some(line) = self.line(bucket, &place, id).await? {
                return Archived::new(line, &place.tenant_id).map(Some);
            }
        }
        Ok(None)
    }

    async fn places(&self, scope: &Scope, id: &DecisionId) -> Result<Vec<Archive>, Error> {
        let Some((hour, rest)) = Month::time(id) else { return Ok(Vec::new()) };
        let tenant = scope.tenant.as_ref().map(TenantId::to_string);
        let read = self.0.store.read_tx(scope, async move |db| {
            let places = diesel::sql_query(PLACES)
                .bind::<Integer, _>(hour)
                .bind::<Bytea, _>(&rest[..])
                .bind::<Nullable<Text>, _>(tenant);
            Ok::<_, Error>(places.load(db).await?)
        });
        read.await
    }

    async fn line(
        &self,
        bucket: &Bucket,
        place: &Archive,
        id: &DecisionId,
    ) -> Result<Option<Vec<u8>>, Error> {
        let key = place.key();
        let manifest = if let Some(known) = self.0.manifests.get(&key) {
            known
        } else {
            let read = place.manifest(bucket, &self.0.keys).await?;
            self.0.manifests.add(&key, Arc::new(read))
        };
        let folder = place.folder()?;
        find_line(bucket, &self.0.indexes, &folder, &manifest, id).await
    }
}

/// Returns the line of a decision in an archive; `None` if it is not in the archive.
pub(crate) async fn find_line(
    bucket: &Bucket,
    indexes: &Recent<Vec<IndexRow>>,
    folder: &str,
    manifest: &Manifest,
    id: &DecisionId,
) -> Result<Option<Vec<u8>>, Error> {
    let id = id.as_str();
    let has = |index: &&Object| {
        index.first_id.as_deref().is_some_and(|first| first <= id)
            && index.last_id.as_deref().is_some_and(|last| id <= last)
    };
    let Some(object) = manifest.objects_of(Content::Index).find(has) else { return Ok(None) };
    let index = read_index(bucket, indexes, folder, object).await?;
    let found = index.binary_search_by(|row| row.about.decision_id.as_str().cmp(id));
    let Ok(found) = found else { return Ok(None) };
    let parts = &mut manifest.objects_of(Content::Decisions);
    let part = parts.find(|part| part.part == object.part);
    let part = part.ok_or_else(|| damaged(object, &"it is not the index of any part"))?;
    let row = &index[found];
    let line = frame_line(bucket, folder, part, row).await?;
    // Checked although the manifest is signed: an index must not lead to another decision.
    if About::of(&line, &manifest.tenant_id).map_err(|why| damaged(part, &why))? != row.about {
        return Err(damaged(object, &"it leads to another decision"));
    }
    Ok(Some(line))
}

async fn read_index(
    bucket: &Bucket,
    indexes: &Recent<Vec<IndexRow>>,
    folder: &str,
    object: &Object,
) -> Result<Arc<Vec<IndexRow>>, Error> {
    let key = object.sha256.as_bytes();
    if let Some(index) = indexes.get(key) {
        return Ok(index);
    }
    let bytes = inspect::read(bucket, folder, object).await?;
    let read = tokio::task::spawn_blocking(move || index::read(bytes)).await?;
    let (rows, _) = read.map_err(|why| damaged(object, &why))?;
    Ok(indexes.add(key, Arc::new(rows)))
}

/// Returns the line of a row of the index.
async fn frame_line(
    bucket: &Bucket,
    folder: &str,
    part: &Object,
    row: &IndexRow,
) -> Result<Vec<u8>, Error> {
    let place = &row.place;
    let end = place.offset.checked_add(place.length).filter(|end| *end <= part.bytes);
    let end = end.ok_or_else(|| damaged(part, &"its index names frames that it does not have"))?;
    let path = names::path(folder, &part.name);
    let frame = match bucket.get_range(&path, place.offset..end).await {
        Err(bucket::Error::NotFound(_)) => return Err(Error::Elsewhere(path)),
        frame => frame?,
    };
    if sha256(&frame) != place.sha256 {
        return Err(damaged(part, &"a frame differs from the archived one"));
    }
    let found = tokio::task::spawn_blocking(move || frame_lines(&frame)).await?;
    let mut found = found.map_err(|why| damaged(part, &why))?;
    let line = usize::try_from(place.line).ok().filter(|line| *line < found.len());
    let line = line.ok_or_else(|| damaged(part, &"a frame has too few lines"))?;
    Ok(found.swap_remove(line))
}
