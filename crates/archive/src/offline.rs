//! Lists and verifies archives without the service and its database.
//!
//! Every manifest in the bucket is an archive. Verifying needs only the files and trusted keys.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use authority_evidence::{
    archive::Manifest,
    verify::{Fault, Trust, Valid, verify, verify_manifest},
};
use authority_ids::{DecisionId, TenantId};

use crate::{
    Bucket, Error, bucket,
    format::{self, entry::Entry, month::Month, names},
    inspect::{Each, Inspector},
    manifest::MOST_BYTES,
    reader::{find_line, recent::Recent},
};

/// An archived month in a bucket.
pub struct ArchivedMonth {
    /// `<slug>/<month>`, or shorter if the bucket's URL names a folder below the archive.
    pub folder: String,
    /// The manifest's name.
    pub name: String,
    pub manifest: Result<(Manifest, Valid), Fault>,
}

/// An object that differs from its manifest, or a decision that cannot be verified.
pub struct Damage {
    pub object: String,
    pub what: String,
    /// Whether the trusted keys do not include the key of a decision's signature.
    pub lacks_key: bool,
}

impl ArchivedMonth {
    /// Returns the manifest's name, relative to the URL.
    pub fn path(&self) -> String {
        names::path(&self.folder, &self.name)
    }

    /// Returns an object's name, relative to the URL.
    pub fn beside(&self, object: &str) -> String {
        names::path(&self.folder, object)
    }

    /// Whether the manifest belongs to another tenant or month than its folder.
    ///
    /// If the bucket's URL names a folder below the archive, only the rest of the path is compared.
    pub fn is_misplaced(&self) -> bool {
        let Ok((manifest, _)) = &self.manifest else { return false };
        let mut folders = self.folder.rsplit('/').filter(|folder| !folder.is_empty());
        let (month, slug) = (folders.next(), folders.next());
        let tenant_id = TenantId::parse(&manifest.tenant_id).ok();
        let slug_named = tenant_id.as_ref().map_or("", |id| id.slug());
        month.is_some_and(|month| month != manifest.month)
            || slug.is_some_and(|slug| slug != slug_named)
    }
}

/// Lists all archives below a bucket's URL, in the order of their names.
///
/// # Errors
/// The bucket cannot be read.
pub async fn list(bucket: &Bucket, trust: &Trust) -> Result<Vec<ArchivedMonth>, Error> {
    let mut found = Vec::new();
    for object in bucket.list("").await? {
        let (folder, name) = object.name.rsplit_once('/').unwrap_or(("", &object.name));
        if !names::is_manifest(name) {
            continue;
        }
        let manifest = match bucket.get(&object.name, MOST_BYTES).await {
            // It was deleted in the meantime, for example by an erasure.
            Err(bucket::Error::NotFound(_)) => continue,
            Err(bucket::Error::Unfit(_, why)) => Err(Fault::Unreadable(format!("it {why}"))),
            text => verify_manifest(&text?, trust),
        };
        found.push(ArchivedMonth { folder: folder.to_owned(), name: name.to_owned(), manifest });
    }
    Ok(found)
}

/// Returns pairs of manifests in one folder.
///
/// The service reads only one manifest of a folder. The second manifest was copied there, or was
/// written by a node that died.
pub fn doubled(found: &[ArchivedMonth]) -> impl Iterator<Item = (&ArchivedMonth, &ArchivedMonth)> {
    found.iter().zip(found.iter().skip(1)).filter(|(one, other)| one.folder == other.folder)
}

/// Reads all objects of a manifest and verifies each decision. Returns all faults.
///
/// # Errors
/// The bucket cannot be read.
pub async fn inspect(
    bucket: &Bucket,
    found: &ArchivedMonth,
    manifest: &Manifest,
    trust: &Trust,
) -> Result<Vec<Damage>, Error> {
    let inspector = Inspector { bucket, folder: &found.folder, manifest };
    let (trust, lacks_key) = (trust.clone(), Arc::new(AtomicBool::new(false)));
    let noted = Arc::clone(&lacks_key);
    let each: Each = Arc::new(move |_, line| entry(line, &trust, &noted));
    let damage = |object, what| {
        let lacks_key = lacks_key.swap(false, Ordering::Relaxed);
        Damage { object, what, lacks_key }
    };
    let mut damages = Vec::new();
    let targets = match inspector.targets() {
        Err(Error::Damaged(object, what)) => return Ok(vec![damage(object, what)]),
        targets => targets?,
    };
    for target in targets {
        match inspector.inspect(&target, Arc::clone(&each)).await {
            Err(Error::Damaged(object, what)) => damages.push(damage(object, what)),
            Err(Error::Elsewhere(_)) => {
                let object = target.name().to_owned();
                damages.push(damage(object, "it or its index is missing".to_owned()));
            }
            inspected => drop(inspected?),
        }
    }
    Ok(damages)
}

/// Verifies the files in an entry. Sets `lacks_key` if the key of a signature is not trusted.
///
/// A pack without a bundle and the proof of a replay contain no keys. Without trusted keys their
/// signatures are not verified.
fn entry(line: &[u8], trust: &Trust, lacks_key: &AtomicBool) -> Result<(), format::Error> {
    let entry = Entry::read(line)?;
    let mut files = Vec::from_iter(entry.bundle);
    if trust.keys.is_some() {
        files.extend(entry.pack);
        files.extend(&entry.replays);
    }
    for file in files {
        verify(file.get().as_bytes(), trust).map_err(|fault| {
            lacks_key.fetch_or(fault.lacks_key(), Ordering::Relaxed);
            format::Error::Differs(format!("`{}`: {fault}", entry.decision_id))
        })?;
    }
    Ok(())
}

/// Returns the bundle of an archived decision, or its pack if a part was erased.
///
/// Returns `None` if it is not in any archive.
///
/// # Errors
/// The bucket cannot be read, or an object is damaged.
pub async fn get(bucket: &Bucket, id: &DecisionId) -> Result<Option<String>, Error> {
    let Some(month) = Month::of_decision(id) else { return Ok(None) };
    let mut unfit = None;
    for found in list(bucket, &Trust::default()).await? {
        let Ok((manifest, _)) = &found.manifest else { continue };
        if manifest.month != month.to_string() {
            continue;
        }
        let line = find_line(bucket, &Recent::default(), &found.folder, manifest, id).await;
        let line = match line {
            // Another manifest may have the complete decision.
            Err(Error::Elsewhere(object)) => {
                unfit = Some(Error::Damaged(object, "it is missing".to_owned()));
                continue;
            }
            Err(error @ Error::Damaged(..)) => {
                unfit = Some(error);
                continue;
            }
            line => line?,
        };
        if let Some(line) = line {
            let entry = Entry::read(&line)?;
            let text = match entry.bundle {
                Some(bundle) => bundle.get(),
                None => entry.pack_text()?,
            };
            return Ok(Some(text.to_owned()));
        }
    }
    unfit.map_or(Ok(None), Err)
}
