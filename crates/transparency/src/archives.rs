//! Lists archived months.

use authority_model::{
    proto::evidence::{Archive, ListArchivesRequest, ListArchivesResponse},
    schema::archives,
    service::{ArchiveService, Reply},
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use tonic::{Request, Response};

use authority_api::{
    error::ApiError, identity::admitted, named_tenant, page, page_token::PageTokens,
};
use authority_archive::format::names;
use authority_evidence::digest_text;
use authority_ids::TenantId;
use authority_keys::Keys;
use authority_store::{self as store, RunQueryDsl, Store};

const PAGE: i32 = 100;

#[derive(Queryable, Selectable)]
#[diesel(table_name = archives, check_for_backend(diesel::pg::Pg))]
struct ArchiveRow {
    tenant_id: String,
    month: String,
    decisions: i64,
    versions: i64,
    changes: i64,
    bytes: i64,
    manifest: String,
    manifest_sha256: Vec<u8>,
    archived_at: DateTime<Utc>,
    removed_at: Option<DateTime<Utc>>,
}

impl From<ArchiveRow> for Archive {
    fn from(row: ArchiveRow) -> Self {
        let tenant_id = TenantId::parse(&row.tenant_id).ok();
        let folder = tenant_id.map(|tenant_id| names::folder(&tenant_id, &row.month));
        Self {
            folder: folder.unwrap_or_default(),
            manifest_sha256: digest_text(&row.manifest_sha256.try_into().unwrap_or_default()),
            tenant_id: row.tenant_id,
            month: row.month,
            decisions: row.decisions,
            versions: row.versions,
            changes: row.changes,
            bytes: row.bytes,
            manifest: row.manifest,
            archived_at: Some(row.archived_at.into()),
            removed_at: row.removed_at.map(Into::into),
        }
    }
}

/// Serves `ArchiveService`.
pub(super) struct ArchiveHandlers {
    pub(super) store: Store,
    /// The keys that authenticate page tokens.
    pub(super) keys: Keys,
}

#[tonic::async_trait]
impl ArchiveService for ArchiveHandlers {
    async fn list_archives(
        &self,
        call: Request<ListArchivesRequest>,
    ) -> Reply<ListArchivesResponse> {
        let (caller, by) = admitted(call)?;
        let tokens = PageTokens::of(&self.keys, &caller, &by);
        let after = tokens.read(&by.page_token)?;
        // The token is authenticated, and therefore contains a position as written below.
        let after = after.and_then(|place| place_of(&place));
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        named_tenant::known(&self.store, &caller, by.tenant_id.as_deref()).await?;
        let scope = caller.scope();
        let within = scope.tenant.clone();
        let found = self.store.read_tx(&scope, async move |db| {
            let mut query = archives::table.into_boxed();
            if let Some(own) = &within {
                query = query.filter(archives::tenant_id.eq(own.as_str()));
            }
            if let Some(tenant) = by.tenant_id {
                query = query.filter(archives::tenant_id.eq(tenant));
            }
            if let Some((month, tenant_id)) = after {
                let same = archives::month.eq(month.clone()).and(archives::tenant_id.gt(tenant_id));
                query = query.filter(archives::month.lt(month).or(same));
            }
            let page = query
                .order((archives::month.desc(), archives::tenant_id.asc()))
                .limit(i64::try_from(size).unwrap_or(i64::MAX - 1) + 1)
                .select(ArchiveRow::as_select());
            Ok::<Vec<ArchiveRow>, store::Error>(page.load(db).await?)
        });
        let rows = found.await.map_err(ApiError::from)?;
        let mut archives: Vec<Archive> = rows.into_iter().map(Archive::from).collect();
        let goes_on = page::cut(&mut archives, size);
        let last = archives.last().filter(|_| goes_on);
        let next_page_token =
            last.map(|last| tokens.write(format!("{} {}", last.month, last.tenant_id).as_bytes()));
        Ok(Response::new(ListArchivesResponse { archives, next_page_token }))
    }
}

fn place_of(place: &[u8]) -> Option<(String, String)> {
    let (month, tenant_id) = std::str::from_utf8(place).ok()?.split_once(' ')?;
    Some((month.to_owned(), tenant_id.to_owned()))
}
