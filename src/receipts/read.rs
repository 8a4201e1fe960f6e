//! The data of a receipt: a decision's row, and rows that were added later.

use authority_ids::{ApprovalRef, DecisionId, DecisionRef, PrincipalRef, TenantRef};
use authority_model::{
    proto::approval::{ApprovalAct, ApprovalPolicy},
    schema::{approvals, decision_reports, decisions, policies, tenants},
};
use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Timestamptz},
};

use super::names::Names;
use authority_keys::Keys;
use authority_ledger::stored_packs::{self, Altered, StoredPack};
use authority_store::{Db, Error, RunQueryDsl, Scope, Store, row_id};

/// A decision with its related rows.
pub(super) struct Read {
    pub(super) decision: Decision,
    pub(super) approval: Option<Approval>,
    pub(super) report: Option<Report>,
    pub(super) pack: Option<Pack>,
    /// The archived pack, if the decision is archived.
    pub(super) archived_pack: Option<String>,
    pub(super) names: Names,
    /// Whether only the tenant's own credentials may see the receipt.
    pub(super) members_only: bool,
    /// Whether the reader may see people's names: a person of the tenant, or the installation's
    /// owner.
    pub(super) knows_people: bool,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(diesel::pg::Pg))]
pub(super) struct Decision {
    #[diesel(deserialize_as = String)]
    pub(super) id: DecisionRef,
    #[diesel(deserialize_as = String)]
    pub(super) tenant_id: TenantRef,
    #[diesel(deserialize_as = String)]
    pub(super) subject: PrincipalRef,
    pub(super) record: Vec<u8>,
    pub(super) kid: String,
    pub(super) signature: Vec<u8>,
    pub(super) evaluated_at: DateTime<Utc>,
    pub(super) approval_id: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = approvals, check_for_backend(diesel::pg::Pg))]
pub(super) struct Approval {
    #[diesel(deserialize_as = String)]
    pub(super) id: ApprovalRef,
    pub(super) needed: i32,
    pub(super) roles: Vec<String>,
    pub(super) acts: Vec<ApprovalAct>,
    pub(super) state: String,
    /// The policy statements that held the decision.
    pub(super) policies: Vec<ApprovalPolicy>,
    /// The held decision; `used_by` is the decision that used the approval.
    #[diesel(deserialize_as = String)]
    pub(super) decision_id: DecisionRef,
    pub(super) used_by: Option<String>,
    pub(super) expires_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = decision_reports, check_for_backend(diesel::pg::Pg))]
pub(super) struct Report {
    pub(super) outcome: String,
    pub(super) at: DateTime<Utc>,
}

#[derive(QueryableByName)]
pub(super) struct Pack {
    #[diesel(sql_type = Text)]
    pub(super) origin: String,
    #[diesel(sql_type = BigInt)]
    pub(super) log_index: i64,
    #[diesel(sql_type = Timestamptz)]
    pub(super) sealed_at: DateTime<Utc>,
}

/// Finds a pack's log, its index in the log, and the time of its sealing. The log's origin is
/// stored in the log's head.
const PACK: &str = "SELECT h.origin, p.log_index, p.sealed_at FROM evidence_packs p \
     JOIN log_heads h ON h.tenant_id = p.tenant_id AND h.epoch = p.epoch \
     WHERE p.decision_id = $1 AND p.tenant_id = $2";

/// The scope to read any tenant's decision.
pub(super) fn scope() -> Scope {
    Scope { actor: "receipt".to_owned(), ..Scope::service() }
}

/// Reads a decision; `None` if it does not exist.
pub(super) async fn decision(store: &Store, id: DecisionId) -> Result<Option<Read>, Error> {
    let read = store.read_tx(&scope(), async move |db| {
        let decision: Option<Decision> = decisions::table
            .find(id.as_str())
            .select(Decision::as_select())
            .first(db)
            .await
            .optional()?;
        let Some(decision) = decision else { return Ok(None) };
        let pack = diesel::sql_query(PACK)
            .bind::<Text, _>(id.as_str())
            .bind::<Text, _>(decision.tenant_id.as_str())
            .get_result(db)
            .await
            .optional()?;
        Ok::<_, Error>(Some(Read { pack, ..Read::beside(db, decision).await? }))
    });
    read.await
}

impl Read {
    /// Reads the related rows of a decision, except its pack. The decision may be archived.
    pub(super) async fn beside(db: &mut Db, decision: Decision) -> Result<Self, Error> {
        let tenant = tenants::table.find(decision.tenant_id.as_str()).select(tenants::receipts);
        let shown_to: Option<String> = tenant.first(db).await.optional()?;
        // The approval that a held decision opened, or the approval that an allow used.
        let about = approvals::table.filter(
            approvals::used_by
                .eq(decision.id.as_str())
                .or(approvals::id.nullable().eq(&decision.approval_id)),
        );
        let mut approval = about.select(Approval::as_select()).first(db).await.optional()?;
        if let Some(approval) = &mut approval {
            name_policies(db, &mut approval.policies).await?;
        }
        let report = decision_reports::table.find(decision.id.as_str()).select(Report::as_select());
        let report = report.first(db).await.optional()?;
        // If the setting is unknown, the receipt is not public.
        let members_only = shown_to.as_deref() != Some("public");
        let record = serde_json::from_slice(&decision.record).map_err(|error| {
            Error::Internal(format!("the record of a decision cannot be read: {error}"))
        })?;
        let names = Names::read(db, &decision.tenant_id, &record).await?;
        Ok(Self {
            decision,
            approval,
            report,
            pack: None,
            archived_pack: None,
            names,
            members_only,
            knows_people: false,
        })
    }
}

/// Sets the current names of policies.
async fn name_policies(db: &mut Db, policies: &mut [ApprovalPolicy]) -> Result<(), Error> {
    let ids: Vec<String> = policies.iter().map(|policy| policy.id.clone()).collect();
    let named = policies::table.filter(policies::id.eq_any(ids));
    let named: Vec<(String, Option<String>)> =
        named.select((policies::id, policies::name)).load(db).await?;
    for policy in policies {
        let name = named.iter().find(|(id, _)| *id == policy.id);
        policy.name = name.and_then(|(_, name)| name.clone());
    }
    Ok(())
}

/// Reads the decision's pack; `None` if the decision is not sealed.
pub(super) async fn sealed(
    store: &Store,
    keys: &Keys,
    decision: &Decision,
) -> Result<Option<Result<StoredPack, Altered>>, Error> {
    let (id, tenant_id) = (row_id(&decision.id)?, row_id(&decision.tenant_id)?);
    let keys = keys.clone();
    let read = store.read_tx(&scope(), async move |db| {
        Ok::<_, Error>(stored_packs::one(db, &keys, Some(&tenant_id), &id).await?)
    });
    read.await
}
