//! The list of erasures. An entry contains the kinds of data, the time and the reason, but never
//! the person.

use authority_model::{
    proto::programme::{Erasure, ListErasuresRequest, ListErasuresResponse},
    schema::erasures,
    wire::{Json, Time},
};
use tonic::Response;

use crate::flow::prelude::*;
use authority_api::{page, page_token::PageTokens};

const SIZE: i32 = 100;

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = erasures, check_for_backend(Pg))]
pub(super) struct ErasureRow {
    id: String,
    tenant_id: Option<String>,
    at: Time,
    by: String,
    reason: String,
    erased: Json,
}

impl From<ErasureRow> for Erasure {
    fn from(row: ErasureRow) -> Self {
        let ErasureRow { id, tenant_id, at, by, reason, erased } = row;
        Self { id, at: Some(at), by, reason, tenant_id, erased: Some(erased) }
    }
}

impl From<Erasure> for ErasureRow {
    fn from(made: Erasure) -> Self {
        let Erasure { id, at, by, reason, tenant_id, erased } = made;
        let (at, erased) = (at.unwrap_or_default(), erased.unwrap_or_default());
        Self { id, tenant_id, at, by, reason, erased }
    }
}

/// Stores an erasure.
pub(super) async fn keep(db: &mut Db, made: Erasure) -> QueryResult<Erasure> {
    let row: ErasureRow = diesel::insert_into(erasures::table)
        .values(ErasureRow::from(made))
        .returning(ErasureRow::as_returning())
        .get_result(db)
        .await?;
    Ok(row.into())
}

pub(super) async fn list(
    registry: &Registry,
    call: Request<ListErasuresRequest>,
) -> Reply<ListErasuresResponse> {
    let (caller, asked) = admitted(call)?;
    let size = i64::from(asked.limit.unwrap_or(SIZE));
    let tokens = PageTokens::of(&registry.keys, &caller, &asked);
    let before = tokens.read(&asked.page_token)?;
    let before = before.and_then(|place| String::from_utf8(place).ok());
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let mut query = erasures::table.into_boxed();
        if let Some(before) = before {
            query = query.filter(erasures::id.lt(before));
        }
        // IDs begin with the time.
        let page = query.order(erasures::id.desc()).limit(size + 1).select(ErasureRow::as_select());
        Ok::<Vec<ErasureRow>, Error>(page.load(db).await?)
    });
    let mut erasures: Vec<Erasure> = read.await?.into_iter().map(Erasure::from).collect();
    let goes_on = page::cut(&mut erasures, usize::try_from(size).unwrap_or_default());
    let last = erasures.last().filter(|_| goes_on);
    let next_page_token = last.map(|last| tokens.write(last.id.as_bytes()));
    Ok(Response::new(ListErasuresResponse { erasures, next_page_token }))
}
