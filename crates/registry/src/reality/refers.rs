//! Resolves references of reality records. All referenced records belong to the same tenant.

use authority_ids::DecisionId;
use authority_model::schema::{decisions, legal_entities};
use diesel::sql_types::{Array, Text};
use serde_json::Value;

use crate::flow::prelude::*;

/// The action that `action_id` names. The other fields are set if `action_id` is a decision's ID.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) action: String,
    /// The subject of the decision that `action_id` names.
    pub(super) subject_id: Option<String>,
    /// The purpose of that decision, if it has one.
    pub(super) purpose: Option<String>,
}

/// Returns the action that `action_id` names. For a decision, also returns its subject.
pub(super) async fn subject(
    db: &mut Db,
    kind: &'static str,
    tenant: &TenantId,
    action_id: &str,
) -> Result<Subject, Error> {
    if !action_id.starts_with(DecisionId::PREFIX) {
        return Ok(Subject { action: action_id.to_owned(), ..Subject::default() });
    }
    let decision: Option<(String, String, Vec<u8>)> = decisions::table
        .filter(decisions::id.eq(action_id).and(decisions::tenant_id.eq(tenant.as_str())))
        .select((decisions::action, decisions::subject, decisions::record))
        .first(db)
        .await
        .optional()?;
    let unknown = || Error::unknown(&format!("{kind}.action_id"), action_id);
    let (action, subject_id, record) = decision.ok_or_else(unknown)?;
    let record: Value = serde_json::from_slice(&record).unwrap_or_default();
    let purpose = record["request"]["purpose"].as_str().map(str::to_owned);
    Ok(Subject { action, subject_id: Some(subject_id), purpose })
}

/// Checks that a party is a principal that is not deleted, or a legal entity.
pub(super) async fn party(
    known: &mut Known,
    db: &mut Db,
    field: &str,
    id: Option<&str>,
) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    let entity: Option<String> = legal_entities::table
        .filter(
            legal_entities::id.eq(id).and(legal_entities::tenant_id.eq(known.tenant().as_str())),
        )
        .for_key_share()
        .select(legal_entities::id)
        .first(db)
        .await
        .optional()?;
    if entity.is_some() { Ok(()) } else { known.principal(db, field, Some(id)).await }
}

/// A type of referenced record, as a query for existing rows. `$1` is the tenant and `$2` the IDs.
#[derive(Clone, Copy)]
pub(super) struct Referred(&'static str);

/// Anchors that are not deleted.
pub(super) const ANCHORS: Referred = Referred(
    "SELECT id FROM reality_anchors WHERE tenant_id = $1 AND id = ANY ($2) AND deleted_at IS NULL",
);
/// All snapshots, including deleted ones, because a report may be based on a deleted snapshot.
pub(super) const SNAPSHOTS: Referred =
    Referred("SELECT id FROM reality_snapshots WHERE tenant_id = $1 AND id = ANY ($2)");
/// Delegations in any state.
pub(super) const DELEGATIONS: Referred =
    Referred("SELECT id FROM delegations WHERE tenant_id = $1 AND id = ANY ($2)");
/// Drift events that are not deleted.
pub(super) const DRIFT_EVENTS: Referred = Referred(
    "SELECT id FROM stable_drift_events \
     WHERE tenant_id = $1 AND id = ANY ($2) AND deleted_at IS NULL",
);

#[derive(QueryableByName)]
struct Present {
    #[diesel(sql_type = Text)]
    id: String,
}

impl Referred {
    /// Reports each ID of a list that does not exist.
    pub(super) async fn each(
        self,
        known: &mut Known,
        db: &mut Db,
        field: &str,
        ids: &[String],
    ) -> Result<(), Error> {
        let present = self.present(known, db, ids).await?;
        known.compare_each(field, ids, &present);
        Ok(())
    }

    /// Reports an ID that does not exist.
    pub(super) async fn one(
        self,
        known: &mut Known,
        db: &mut Db,
        field: &str,
        id: Option<&String>,
    ) -> Result<(), Error> {
        let Some(id) = id else { return Ok(()) };
        let present = self.present(known, db, std::slice::from_ref(id)).await?;
        known.compare(field, &[id], &present);
        Ok(())
    }

    async fn present(self, known: &Known, db: &mut Db, ids: &[String]) -> QueryResult<Vec<String>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let present: Vec<Present> = diesel::sql_query(self.0)
            .bind::<Text, _>(known.tenant().as_str())
            .bind::<Array<Text>, _>(ids)
            .load(db)
            .await?;
        Ok(present.into_iter().map(|present| present.id).collect())
    }
}
