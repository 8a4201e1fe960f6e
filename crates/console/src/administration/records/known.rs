//! Finds the kind of records that an address names.

use tonic::Status;

use crate::{kit::kinds::Kind, texts as t};

/// The kind at this part of an address.
pub(super) fn known(kind: &str) -> Result<&'static Kind, Status> {
    Kind::at(kind).ok_or_else(nowhere)
}

pub(super) fn nowhere() -> Status {
    Status::not_found(t::NO_SUCH_PAGE)
}
