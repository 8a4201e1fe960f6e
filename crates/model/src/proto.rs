//! The messages and services of `../proto`, one module for each area: `proto::registry::Tool`.

#[expect(unreachable_pub, clippy::all, clippy::pedantic, reason = "written by prost and tonic")]
#[expect(clippy::allow_attributes_without_reason, reason = "written by prost and tonic")]
mod packages {
    include!(concat!(env!("OUT_DIR"), "/packages.rs"));
}

include!(concat!(env!("OUT_DIR"), "/areas.rs"));

/// Implementations of this crate's traits, from their annotations.
mod facts {
    use crate::{
        record::{
            ByIdRequest, Deleted, Exported, ListResponse, Listing, Page, Record, RecordRequest,
            RpcRequest,
        },
        validate::{Text, Validate, Violations},
        wire::{FieldMask, Time},
    };

    include!(concat!(env!("OUT_DIR"), "/facts.rs"));
}
