//! Access to approval requests for the credential that created them. The credential can read the
//! state of its requests and cancel pending requests.
//!
//! An API key keeps its identity when it is rotated. A key that is bound to principals sees and
//! cancels only the requests of these principals. Other requests are not found.

use authority_model::{
    proto::approval::{
        Approval, AskedApproval, CancelApprovalRequest, GetAskedApprovalRequest,
        ListAskedApprovalsRequest, ListAskedApprovalsResponse,
    },
    schema::approvals,
    state::ApprovalState,
    wire::Time,
};
use diesel::{
    result::Error::NotFound,
    sql_types::{Array, BigInt, Bytea, Nullable, Text, Timestamptz},
};
use tonic::Response;

use super::{handlers::Approvals, record::open};
use crate::flow::{operations::or_not_found, page::place_at, prelude::*};
use authority_api::{
    identity::{Caller, CallerKind},
    page_token::PageTokens,
};
use authority_evidence::digest_text;

/// Uses the index of each key's requests. `$3` is the list of the key's principals, or NULL if the
/// key is unbound.
const PAGE: &str = "
    SELECT a.id, a.state, a.action, a.expires_at, a.request_digest AS digest, a.created_at
    FROM approval_askers k JOIN approvals a ON a.id = k.approval_id AND a.tenant_id = k.tenant_id
    WHERE k.key_id = $1 AND k.tenant_id = $2
      AND ($3 IS NULL OR a.subject = ANY ($3)) AND ($4 IS NULL OR a.state = $4)
      AND ($5 IS NULL OR k.created_at >= $5)
      AND ($6 IS NULL OR (k.created_at, k.approval_id) < ($6, $7))
    ORDER BY k.created_at DESC, k.approval_id DESC LIMIT $8";

#[derive(QueryableByName)]
struct OwnRequestRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = Timestamptz)]
    expires_at: Time,
    #[diesel(sql_type = Bytea)]
    digest: Vec<u8>,
    #[diesel(sql_type = Timestamptz)]
    created_at: Time,
}

impl From<OwnRequestRow> for AskedApproval {
    fn from(row: OwnRequestRow) -> Self {
        let digest = <[u8; 32]>::try_from(row.digest).unwrap_or_default();
        Self {
            id: row.id,
            state: row.state,
            action: row.action,
            expires_at: Some(row.expires_at),
            digest: digest_text(&digest),
        }
    }
}

impl Approvals {
    pub(super) async fn list_asked(
        &self,
        call: Request<ListAskedApprovalsRequest>,
    ) -> Reply<ListAskedApprovalsResponse> {
        let (caller, by) = admitted(call)?;
        let tokens = PageTokens::of(&self.registry.keys, &caller, &by);
        let window = Window::of(by.page(), &tokens)?;
        let (reader, size) = (caller.clone(), window.size);
        let read = self.registry.store.read_tx(&caller.scope(), async move |db| {
            let (at, id) = window.after.as_ref().map(|(at, id)| (*at, id.clone())).unzip();
            let rows: Vec<OwnRequestRow> = diesel::sql_query(PAGE)
                .bind::<Text, _>(reader.identity())
                .bind::<Nullable<Text>, _>(reader.tenant().map(|tenant| tenant.as_str().to_owned()))
                .bind::<Nullable<Array<Text>>, _>(
                    reader.bound_to().map(|own| own.iter().map(String::from).collect::<Vec<_>>()),
                )
                .bind::<Nullable<Text>, _>(by.state)
                .bind::<Nullable<Timestamptz>, _>(by.since)
                .bind::<Nullable<Timestamptz>, _>(at)
                .bind::<Nullable<Text>, _>(id)
                .bind::<BigInt, _>(window.query_limit())
                .load(db)
                .await?;
            Ok::<_, Error>(rows)
        });
        let mut rows = read.await?;
        let more = rows.len() > size;
        rows.truncate(size);
        let last = rows.last().filter(|_| more);
        let next_page_token = last.map(|last| place_at(last.created_at, &last.id, &tokens));
        let approvals = rows.into_iter().map(AskedApproval::from).collect();
        Ok(Response::new(ListAskedApprovalsResponse { approvals, next_page_token }))
    }

    pub(super) async fn get_asked(
        &self,
        call: Request<GetAskedApprovalRequest>,
    ) -> Reply<AskedApproval> {
        let (caller, request) = admitted(call)?;
        let (id, by) = (request.id, caller.clone());
        let read = self.registry.store.read_tx(&caller.scope(), async move |db| {
            let found = Approval::find(db, by.tenant(), &id, false).await.optional()?;
            let own = found.filter(|row| is_askers(row, &by)).ok_or(NotFound);
            let row = or_not_found(own, &id)?;
            Ok::<_, Error>(shown(db, &row).await?)
        });
        Ok(Response::new(read.await?))
    }

    pub(super) async fn cancel(
        &self,
        call: Request<CancelApprovalRequest>,
    ) -> Reply<AskedApproval> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let (id, by, clock) = (request.id, caller.clone(), self.registry.clock.clone());
        let cancelled = self.registry.idempotent(&caller, key, async move |db| {
            // The lock serialises a person's act and the cancellation.
            let found = Approval::lock(db, by.tenant(), &id).await.optional()?;
            let own = found.filter(|row| is_askers(row, &by)).ok_or(NotFound);
            let row = or_not_found(own, &id)?;
            let now = clock.now();
            open(&row, now)?;
            if row.requested_by.len() > 1 {
                let text =
                    "other callers made the same request; it ends with a decision or its expiry";
                return Err(Error::NotAllowed(text.to_owned()));
            }
            let own =
                approvals::table.find(&row.id).filter(approvals::tenant_id.eq(&row.tenant_id));
            let row: Approval = diesel::update(own)
                .set((
                    approvals::state.eq(ApprovalState::Void),
                    approvals::void_reason.eq("cancelled by the requester"),
                    approvals::updated_at.eq(Time::from(now)),
                ))
                .returning(Approval::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(shown(db, &row).await?)
        });
        Ok(cancelled.await?.reply())
    }
}

/// Whether the caller created the request and may still act for its subject.
fn is_askers(row: &Approval, caller: &Caller) -> bool {
    let kind = match &caller.kind {
        CallerKind::Key { .. } => "api_key",
        CallerKind::Owner { .. } | CallerKind::Member { .. } => "person",
        CallerKind::Anonymous => return false,
    };
    let identity = caller.identity();
    let asked = row.requested_by.iter().any(|asker| asker.kind == kind && asker.id == identity);
    asked && caller.acts_for(&row.subject)
}

async fn shown(db: &mut Db, row: &Approval) -> QueryResult<AskedApproval> {
    Ok(AskedApproval {
        id: row.id.clone(),
        state: row.state.clone(),
        action: row.action.clone(),
        expires_at: row.expires_at,
        digest: digest_text(&super::question::digest(db, &row.id).await?),
    })
}
