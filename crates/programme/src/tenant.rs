//! The programme for the users of a tenant: the tenant's consultants, links and brand. Every query
//! runs in the tenant's own scope. Row-level security hides the rows of other tenants.

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, admitted},
    page,
    page_token::PageTokens,
};
use authority_ids::TenantId;
use authority_model::{
    proto::programme::{
        GetTenantBrandRequest, GetTenantConsultantRequest, GetTenantLinkRequest,
        ListTenantConsultantsRequest, ListTenantConsultantsResponse, ListTenantLinksRequest,
        ListTenantLinksResponse, TenantBrand, TenantConsultant, TenantLink,
    },
    schema::consultant_links,
    service::{Reply, TenantProgrammeService},
    wire::Time,
};
use authority_store::{self as store, Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use prost::Message;
use tonic::{Request, Response};

use super::{
    Brand, Programme,
    entry::{self, Wanted},
};

const SIZE: i32 = 100;

/// A position in a list: the time and ID of the last record returned.
type ListPosition = (DateTime<Utc>, String);

/// The columns of a link that a tenant may see.
type LinkRow = (String, String, String, String, String, Option<Time>, Option<Time>, Time);

fn tenant_of(caller: &Caller) -> Result<TenantId, ApiError> {
    caller.tenant().cloned().ok_or_else(|| ApiError::plain(ErrorCode::Forbidden))
}

fn size(limit: Option<i32>) -> usize {
    usize::try_from(limit.unwrap_or(SIZE)).unwrap_or_default()
}

/// One more than the page size, to find out whether there is a next page.
fn rows(limit: Option<i32>) -> i64 {
    i64::from(limit.unwrap_or(SIZE)) + 1
}

fn place(tokens: &PageTokens, token: &str) -> Result<Option<ListPosition>, ApiError> {
    let Some(bytes) = tokens.read(token)? else { return Ok(None) };
    // An authentic token contains a valid position, because `next` wrote it.
    let parts = bytes.split_first_chunk().and_then(|(micros, id)| {
        let at = DateTime::from_timestamp_micros(i64::from_be_bytes(*micros))?;
        Some((at, String::from_utf8(id.to_vec()).ok()?))
    });
    Ok(parts)
}

fn next(tokens: &PageTokens, (at, id): (DateTime<Utc>, &str)) -> String {
    tokens.write(&[&at.timestamp_micros().to_be_bytes(), id.as_bytes()].concat())
}

impl Programme {
    async fn consultants(
        &self,
        caller: &Caller,
        wanted: Wanted,
    ) -> Result<Vec<(DateTime<Utc>, TenantConsultant)>, ApiError> {
        let now = self.0.clock.now();
        let read = self.0.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(entry::of_tenant(db, wanted, now).await?)
        });
        Ok(read.await?)
    }
}

async fn links(
    db: &mut Db,
    tenant_id: TenantId,
    (id, status): (Option<String>, Option<String>),
    after: Option<ListPosition>,
    limit: i64,
) -> QueryResult<Vec<LinkRow>> {
    let mut query = consultant_links::table
        .filter(consultant_links::tenant_id.eq(String::from(tenant_id)))
        .filter(consultant_links::deleted_at.is_null())
        .into_boxed();
    if let Some(id) = id {
        query = query.filter(consultant_links::id.eq(id));
    }
    if let Some(status) = status {
        query = query.filter(consultant_links::status.eq(status));
    }
    if let Some((at, id)) = after {
        let later = consultant_links::created_at
            .gt(at)
            .or(consultant_links::created_at.eq(at).and(consultant_links::id.gt(id)));
        query = query.filter(later);
    }
    query
        .order((consultant_links::created_at, consultant_links::id))
        .limit(limit)
        .select((
            consultant_links::id,
            consultant_links::tenant_id,
            consultant_links::consultant_id,
            consultant_links::scope,
            consultant_links::status,
            consultant_links::accepted_at,
            consultant_links::revoked_at,
            consultant_links::created_at,
        ))
        .load(db)
        .await
}

fn link(row: LinkRow) -> TenantLink {
    let (id, tenant_id, consultant_id, scope, status, accepted_at, revoked_at, created_at) = row;
    let created_at = Some(created_at);
    TenantLink { id, tenant_id, consultant_id, scope, status, accepted_at, revoked_at, created_at }
}

#[tonic::async_trait]
impl TenantProgrammeService for Programme {
    async fn list_tenant_consultants(
        &self,
        call: Request<ListTenantConsultantsRequest>,
    ) -> Reply<ListTenantConsultantsResponse> {
        let (caller, request) = admitted(call)?;
        let tokens = PageTokens::of(&self.0.keys, &caller, &request);
        let wanted = Wanted {
            tenant_id: tenant_of(&caller)?,
            id: None,
            level: request.level,
            sector: request.sector,
            after: place(&tokens, &request.page_token)?,
            limit: rows(request.limit),
        };
        let mut found = self.consultants(&caller, wanted).await?;
        let goes_on = page::cut_by(&mut found, size(request.limit), |(_, one)| one.encoded_len());
        let last = found.last().filter(|_| goes_on);
        let next_page_token = last.map(|(at, one)| next(&tokens, (*at, &one.id)));
        let consultants = found.into_iter().map(|(_, one)| one).collect();
        Ok(Response::new(ListTenantConsultantsResponse { consultants, next_page_token }))
    }

    async fn get_tenant_consultant(
        &self,
        call: Request<GetTenantConsultantRequest>,
    ) -> Reply<TenantConsultant> {
        let (caller, request) = admitted(call)?;
        let wanted = Wanted {
            tenant_id: tenant_of(&caller)?,
            id: Some(request.id.as_str().into()),
            level: None,
            sector: None,
            after: None,
            limit: 1,
        };
        let found = self.consultants(&caller, wanted).await?.into_iter().next();
        let found = found.ok_or_else(|| ApiError::not_found("consultant", &request.id))?;
        Ok(Response::new(found.1))
    }

    async fn list_tenant_links(
        &self,
        call: Request<ListTenantLinksRequest>,
    ) -> Reply<ListTenantLinksResponse> {
        let (caller, request) = admitted(call)?;
        let tokens = PageTokens::of(&self.0.keys, &caller, &request);
        let tenant_id = tenant_of(&caller)?;
        let after = place(&tokens, &request.page_token)?;
        let (limit, status) = (rows(request.limit), request.status);
        let read = self.0.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(links(db, tenant_id, (None, status), after, limit).await?)
        });
        let found = read.await.map_err(ApiError::from)?;
        let mut links: Vec<TenantLink> = found.into_iter().map(link).collect();
        let goes_on = page::cut(&mut links, size(request.limit));
        let last = links.last().filter(|_| goes_on);
        let place = last.and_then(|link| Some((link.created_at?.moment()?, &*link.id)));
        let next_page_token = place.map(|place| next(&tokens, place));
        Ok(Response::new(ListTenantLinksResponse { links, next_page_token }))
    }

    async fn get_tenant_link(&self, call: Request<GetTenantLinkRequest>) -> Reply<TenantLink> {
        let (caller, request) = admitted(call)?;
        let (tenant_id, id) = (tenant_of(&caller)?, Some(request.id.clone()));
        let read = self.0.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(links(db, tenant_id, (id, None), None, 1).await?)
        });
        let found = read.await.map_err(ApiError::from)?.into_iter().next();
        let found = found.ok_or_else(|| ApiError::not_found("link", &request.id))?;
        Ok(Response::new(link(found)))
    }

    async fn get_tenant_brand(&self, call: Request<GetTenantBrandRequest>) -> Reply<TenantBrand> {
        let (caller, _) = admitted(call)?;
        let tenant_id = tenant_of(&caller)?;
        let read = self.0.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(Brand::of_tenant(db, &tenant_id).await?)
        });
        let text = "the tenant has no active brand with an active link and consultant";
        let brand = read.await.map_err(ApiError::from)?;
        let brand = brand.ok_or_else(|| ApiError::new(ErrorCode::NotFound, text))?;
        Ok(Response::new(brand.into()))
    }
}
