//! Reads the objects of an archive back and compares them with its manifest.

use std::sync::Arc;

use authority_crypto::sha256;
use authority_evidence::{
    archive::{Content, Manifest, Object},
    digest_text,
};
use bytes::Bytes;

use crate::{
    Bucket, Error, bucket,
    format::{self, frames::lines, index::IndexRow, month::Month, names, part},
};

/// The maximum size of an object to read, in bytes. A part is full when its compressed frames reach
/// 32 MiB; the last frame can take the part beyond that size.
const MOST_BYTES: u64 = 512 << 20;

/// A function that is called for each entry, with its row in the index and its line.
pub type Each = Arc<dyn Fn(&IndexRow, &[u8]) -> Result<(), format::Error> + Send + Sync>;

/// Reads and checks the objects of one archive.
pub struct Inspector<'a> {
    pub bucket: &'a Bucket,
    /// The folder of the archive: `<slug>/<month>`.
    pub folder: &'a str,
    pub manifest: &'a Manifest,
}

/// An object to inspect, or a part with its index.
pub enum Target<'a> {
    Part { decisions: &'a Object, index: &'a Object },
    History(&'a Object),
}

impl Target<'_> {
    pub fn name(&self) -> &str {
        match self {
            Self::Part { decisions, .. } => &decisions.name,
            Self::History(object) => &object.name,
        }
    }
}

impl<'a> Inspector<'a> {
    /// Returns the objects to inspect: the parts in their order, then history.
    ///
    /// # Errors
    /// A part does not have exactly one index with the same number of entries, or its ids do not
    /// come after the ids of the part before it.
    pub fn targets(&self) -> Result<Vec<Target<'a>>, Error> {
        let mut targets = Vec::new();
        let mut before: Option<&str> = None;
        for decisions in self.manifest.objects_of(Content::Decisions) {
            let mut indexes = self.manifest.objects_of(Content::Index);
            let fits = |index: &&Object| index.part == decisions.part;
            let index = indexes.find(fits).filter(|_| indexes.all(|other| !fits(&other)));
            let index = index.ok_or_else(|| damaged(decisions, &"it needs exactly one index"))?;
            let first = decisions.first_id.as_deref();
            if first <= before || index.entries != decisions.entries {
                return Err(damaged(decisions, &"it does not follow the part before it"));
            }
            before = decisions.last_id.as_deref();
            targets.push(Target::Part { decisions, index });
        }
        let history = [Content::Versions, Content::Changes];
        let history = history.into_iter().flat_map(|content| self.manifest.objects_of(content));
        targets.extend(history.map(Target::History));
        Ok(targets)
    }

    /// Reads a target and compares it with the manifest. Returns the rows of a part's index.
    ///
    /// # Errors
    /// [`Error::Damaged`] if an object differs or `each` fails; [`Error::Elsewhere`] if an object
    /// is missing; another error if the bucket is unavailable.
    pub async fn inspect(&self, target: &Target<'_>, each: Each) -> Result<Vec<IndexRow>, Error> {
        match target {
            Target::Part { decisions, index } => {
                let (part, bytes) = (self.read(decisions).await?, self.read(index).await?);
                self.part(decisions, part, bytes, each).await
            }
            Target::History(object) => {
                let bytes = self.read(object).await?;
                let found = tokio::task::spawn_blocking(move || lines(&bytes)).await?;
                let found = found.map_err(|why| damaged(object, &why))?;
                if u64::try_from(found.len()) != Ok(object.entries) {
                    return Err(damaged(object, &"it has another number of lines"));
                }
                Ok(Vec::new())
            }
        }
    }

    async fn part(
        &self,
        decisions: &Object,
        part: Bytes,
        index: Bytes,
        each: Each,
    ) -> Result<Vec<IndexRow>, Error> {
        let month: Result<Month, _> = self.manifest.month.parse();
        let month =
            month.map_err(|why| damaged(decisions, &format!("the month of its manifest {why}")))?;
        let (tenant_id, name) = (self.manifest.tenant_id.clone(), decisions.name.clone());
        let rows = tokio::task::spawn_blocking(move || {
            let tenant_id = &tenant_id;
            part::Read { tenant_id, month, name: &name, decisions: &part, index }
                .check(|row, line| each(row, line))
        });
        let rows = rows.await?.map_err(|why| damaged(decisions, &why))?;
        let ends = rows.first().zip(rows.last());
        let ends = ends.map(|(first, last)| (&*first.about.decision_id, &*last.about.decision_id));
        let named = decisions.first_id.as_deref().zip(decisions.last_id.as_deref());
        if ends != named || u64::try_from(rows.len()) != Ok(decisions.entries) {
            return Err(damaged(decisions, &"it has other decisions than the manifest names"));
        }
        Ok(rows)
    }

    async fn read(&self, object: &Object) -> Result<Bytes, Error> {
        read(self.bucket, self.folder, object).await
    }
}

/// Reads a whole object.
///
/// # Errors
/// [`Error::Damaged`] if it differs from the manifest; [`Error::Elsewhere`] if it is missing;
/// another error if the bucket is unavailable.
pub(crate) async fn read(bucket: &Bucket, folder: &str, object: &Object) -> Result<Bytes, Error> {
    if object.bytes > MOST_BYTES {
        return Err(damaged(object, &"it is larger than any object of the service"));
    }
    let path = names::path(folder, &object.name);
    let bytes = match bucket.get(&path, object.bytes).await {
        Err(bucket::Error::NotFound(_)) => return Err(Error::Elsewhere(path)),
        Err(bucket::Error::Unfit(_, why)) => return Err(damaged(object, &why)),
        bytes => bytes?,
    };
    if u64::try_from(bytes.len()) != Ok(object.bytes) {
        let what = format!("it has {} bytes, not {}", bytes.len(), object.bytes);
        return Err(damaged(object, &what));
    }
    if digest_text(&sha256(&bytes)) != object.sha256 {
        return Err(damaged(object, &"its SHA-256 differs from the manifest's"));
    }
    Ok(bytes)
}

pub(crate) fn damaged(object: &Object, why: &impl ToString) -> Error {
    Error::Damaged(object.name.clone(), why.to_string())
}
