//! Returns an entity as it was at a requested time.

use authority_ids::IdParts;
use authority_model::{
    proto::runtime::{GetEntityRequest, GetEntityResponse},
    wire::{Json, Time},
};
use serde_json::Value;

use super::{
    history::{EntityQueries, normal},
    view,
};
use authority_api::{error::ApiError, identity::Caller};

impl EntityQueries {
    pub(super) async fn get(
        &self,
        caller: &Caller,
        asked: GetEntityRequest,
    ) -> Result<GetEntityResponse, ApiError> {
        let at = asked.as_of.and_then(Time::moment);
        let missing = ApiError::not_found("entity", &asked.entity_id);
        let version = self.version(caller, asked.entity_id, at).await?;
        let Some(version) = version else { return Err(missing) };
        let Some(Value::Object(record)) = version.body else { return Err(missing) };
        // A soft-deleted entity is only returned if the request has a time.
        if at.is_none() && record.get("deleted_at").is_some_and(|at| !at.is_null()) {
            return Err(missing);
        }
        let record = view::of(&version.table_name, record, caller);
        let Some(record) = record else { return Err(missing) };
        Ok(GetEntityResponse {
            entity_type: IdParts::of(&version.entity_id).map_or("", |id| id.kind).to_owned(),
            entity_id: version.entity_id,
            tenant_id: version.tenant_id.unwrap_or_default(),
            valid_from: Some(version.valid_from.into()),
            valid_to: version.valid_to.map(Into::into),
            record: Some(Json(normal(record))),
        })
    }
}
