//! The imports that every record's file uses.

pub(crate) use authority_model::{
    record::{Listing, Record},
    service::Replies,
    validate::Violations,
};
pub(crate) use diesel::{QueryResult, pg::Pg, prelude::*, sql_types::Bool};
pub(crate) use tonic::Request;

pub(crate) use super::{
    entity::{Entity, OnDelete, RecordRow, SoftDelete, Stops, Verb, WriteTx},
    error::Error,
    names,
    operations::Reply,
    page::Window,
    queries::{
        End, Queries, QueryFuture, Referenced, Save, clock_timestamp, impl_end, impl_queries,
        impl_referenced, impl_save, impl_soft_delete,
    },
    references::{self, Known},
    registry::Registry,
    rules,
};
pub(crate) use authority_api::{
    error::ErrorCode,
    idempotency::IdempotencyKey,
    identity::{Caller, admitted},
};
pub(crate) use authority_ids::{InvalidId, TenantId};
pub(crate) use authority_store::{Db, RunQueryDsl, new_id, row_id};
