//! Looks for a person in archives without changing them.

use std::collections::HashMap;

use authority_evidence::archive::Content;
use authority_ids::TenantId;
use authority_model::wire::Json;
use authority_store::{RunQueryDsl, Scope, row_id};
use diesel::{
    QueryableByName,
    sql_types::{Array, Jsonb, Text},
};

use super::{Eraser, Person, Rewriting, entries::Judged, needles::Needles};
use crate::{
    Error,
    bucket::Listed,
    format::names,
    inspect::{Inspector, Target},
};

/// The tenants in the person's scope, with the manifests that this database wrote.
const WRITTEN: &str = "
    SELECT t.id, ARRAY(
        SELECT a.month || '/' || unnest(a.replaced || a.intended || a.manifest) FROM archives a
        WHERE a.tenant_id = t.id
        UNION ALL
        SELECT r.month || '/' || unnest(r.written) FROM archive_runs r WHERE r.tenant_id = t.id) AS manifests
    FROM tenants t WHERE person_in_scope($1, t.id)";

/// The manifests of a tenant that this database has written, relative to the tenant's folder.
#[derive(QueryableByName)]
struct Written {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Array<Text>)]
    manifests: Vec<String>,
}

impl Eraser {
    /// Checks that all archives in the person's scope can be read and are this database's.
    ///
    /// Call it before erasing the tables. If the erasure failed after that, a second erasure would
    /// not count the data that the first one erased.
    ///
    /// # Errors
    /// The archive is unavailable, or [`Error::Foreign`] if another database wrote a manifest.
    pub async fn reach(&self, scope: &Scope, person: &Json) -> Result<(), Error> {
        for archived in self.archives_of(scope, person).await? {
            archived.manifest(self.bucket_of(&archived)?, &self.keys).await?;
        }
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let person = person.clone();
        let written = self.store.read_tx(scope, async move |db| {
            let written = diesel::sql_query(WRITTEN).bind::<Jsonb, _>(person).load(db).await?;
            Ok::<Vec<Written>, Error>(written)
        });
        let mut known = HashMap::new();
        for Written { id, manifests } in written.await? {
            known.insert(row_id(&id).map(|id: TenantId| id.slug().to_owned())?, manifests);
        }
        for Listed { name, .. } in bucket.list("").await? {
            let Some((slug, manifest)) = name.split_once('/') else { continue };
            let is_manifest =
                manifest.split_once('/').is_some_and(|(_, name)| names::is_manifest(name));
            let of_tenant = known.get(slug).filter(|_| is_manifest);
            if of_tenant.is_some_and(|written| !written.iter().any(|one| one == manifest)) {
                return Err(Error::Foreign(name));
            }
        }
        Ok(())
    }

    /// Whether an erasure would remove data from an archive in the person's scope.
    ///
    /// # Errors
    /// The archive is unavailable or damaged.
    pub async fn has_any(&self, scope: &Scope, person: &Json) -> Result<bool, Error> {
        let found = self.archives_of(scope, person).await?;
        let person = &Person { parameter: person, needles: Needles::of(person) };
        for archived in found {
            let (bucket, folder) = (self.bucket_of(&archived)?, archived.folder()?);
            let manifest = archived.manifest(bucket, &self.keys).await?;
            let searching = Rewriting { eraser: self, scope, bucket, folder: &folder, person };
            for target in (Inspector { bucket, folder: &folder, manifest: &manifest }).targets()? {
                let has_any = match &target {
                    Target::Part { decisions, index } => {
                        let (_, judged) = searching.judged(&manifest, decisions, index).await?;
                        judged.iter().any(Judged::has_any)
                    }
                    Target::History(object) if object.content == Content::Versions => {
                        let (_, changed) = searching.changed(object).await?;
                        !changed.is_empty()
                    }
                    Target::History(_) => false,
                };
                if has_any {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
