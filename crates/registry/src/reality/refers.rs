//! What the records of reality refer to: all of one tenant.

use authority_ids::DecisionId;
use authority_model::schema::{decisions, legal_entities};
use diesel::sql_types::{Array, Text};
use serde_json::Value;

use super::super::prelude::*;

/// What an `action_id` stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) action: String,
    /// Of the decision that it names.
    pub(super) subject_id: Option<String>,
    /// The purpose of that decision, if it had one.
    pub(super) purpose: Option<String>,
}

/// The action, or the action and subject of the decision, that `action_id` names.
pub(super) async fn subject(
    db: &mut Db,
    kind: &str,
    tenant_id: &str,
    action_id: &str,
) -> Result<Subject, Error> {
    if !action_id.starts_with(DecisionId::PREFIX) {
        return Ok(Subject { action: action_id.to_owned(), ..Subject::default() });
    }
    let decision: Option<(String, String, Vec<u8>)> = decisions::table
        .filter(decisions::id.eq(action_id).and(decisions::tenant_id.eq(tenant_id)))
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

/// A principal that is not deleted, or a legal entity.
pub(super) async fn party(
    known: &mut Known<'_>,
    db: &mut Db,
    field: &str,
    id: Option<&str>,
) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    let entity: Option<String> = legal_entities::table
        .filter(legal_entities::id.eq(id).and(legal_entities::tenant_id.eq(known.tenant())))
        .for_key_share()
        .select(legal_entities::id)
        .first(db)
        .await
        .optional()?;
    if entity.is_some() { Ok(()) } else { known.principal(db, field, Some(id)).await }
}

/// The records that a list may name, as a query of those that are there: $1 is the tenant, $2 the ids.
#[derive(Clone, Copy)]
pub(super) struct Referred(&'static str);

/// Not deleted.
pub(super) const ANCHORS: Referred = Referred(
    "SELECT id FROM reality_anchors WHERE tenant_id = $1 AND id = ANY ($2) AND deleted_at IS NULL",
);
/// Deleted ones too: a report may be by one of them.
pub(super) const SNAPSHOTS: Referred =
    Referred("SELECT id FROM reality_snapshots WHERE tenant_id = $1 AND id = ANY ($2)");
/// Whatever their state.
pub(super) const DELEGATIONS: Referred =
    Referred("SELECT id FROM delegations WHERE tenant_id = $1 AND id = ANY ($2)");
/// Not deleted.
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
    /// Reports each id of a list that names none.
    pub(super) async fn each(
        self,
        known: &mut Known<'_>,
        db: &mut Db,
        field: &str,
        ids: &[String],
    ) -> Result<(), Error> {
        let present = self.present(known, db, ids).await?;
        known.compare_each(field, ids, &present);
        Ok(())
    }

    /// Reports an id that names none.
    pub(super) async fn one(
        self,
        known: &mut Known<'_>,
        db: &mut Db,
        field: &str,
        id: Option<&String>,
    ) -> Result<(), Error> {
        let Some(id) = id else { return Ok(()) };
        let present = self.present(known, db, std::slice::from_ref(id)).await?;
        known.compare(field, &[id], &present);
        Ok(())
    }

    async fn present(
        self,
        known: &Known<'_>,
        db: &mut Db,
        ids: &[String],
    ) -> QueryResult<Vec<String>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let present: Vec<Present> = diesel::sql_query(self.0)
            .bind::<Text, _>(known.tenant())
            .bind::<Array<Text>, _>(ids)
            .load(db)
            .await?;
        Ok(present.into_iter().map(|present| present.id).collect())
    }
}
