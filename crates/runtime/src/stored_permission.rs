//! A stored permission, judged again on current authority. This is done before an allow is repeated
//! and for the streams that watch the permission.

use std::{collections::HashMap, sync::Arc};

use authority_ids::TenantId;
use authority_model::schema::decisions;
use chrono::{DateTime, Utc};
use diesel::prelude::*;

use super::{
    facts::FactSource,
    permission_status::{Permitted, permitted},
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_decision::{Facts, Gathered, Verdict, judge_again};
use authority_evidence::sealed;
use authority_graph::{self as graph, TenantHandle, time_zones};
use authority_ledger::spending::{self, Cited};
use authority_store::{Db, RunQueryDsl};

/// The stored parts of a permitted decision, for judging its request again.
pub(super) struct StoredPermission {
    record: Vec<u8>,
    context: Vec<u8>,
    facts: Vec<u8>,
    /// The approval that the decision used, with all acts on it.
    spent: Option<Cited>,
}

/// The ID, record, context and facts of a decision.
type PermissionRow = (String, Vec<u8>, Vec<u8>, Vec<u8>);

/// The request of a permission, and the permission's times.
pub(super) struct Question {
    pub(super) permitted: Permitted,
    pub(super) evaluated_at: DateTime<Utc>,
    pub(super) valid_until: DateTime<Utc>,
    /// The approval that the decision used, with the acts that counted.
    spent: Option<Cited>,
}

impl StoredPermission {
    /// Reads the tenant's decisions that are still in the tables.
    pub(super) async fn read(
        db: &mut Db,
        tenant_id: &TenantId,
        ids: &[String],
    ) -> QueryResult<HashMap<String, Self>> {
        let rows: Vec<PermissionRow> = decisions::table
            .filter(decisions::tenant_id.eq(tenant_id.as_str()))
            .filter(decisions::id.eq_any(ids))
            .select((decisions::id, decisions::record, decisions::context, decisions::facts))
            .load(db)
            .await?;
        let cites = |facts: &[u8]| !matches!(sealed::approval(facts), Ok(None));
        let citing = rows.iter().filter(|(.., facts)| cites(facts)).map(|(id, ..)| id.clone());
        let citing: Vec<String> = citing.collect();
        let mut spent = HashMap::new();
        if !citing.is_empty() {
            spent = spending::spent_on(db, tenant_id, &citing).await?;
        }
        let stored = rows.into_iter().map(|(id, record, context, facts)| {
            let spent = spent.remove(&id);
            (id, Self { record, context, facts, spent })
        });
        Ok(stored.collect())
    }

    /// Returns the request of the permission.
    ///
    /// # Errors
    /// The request can't be read or was erased.
    pub(super) fn question(&self) -> Result<Question, ApiError> {
        let request = sealed::request(&self.record, &self.context)?;
        let mut permitted = permitted(request, &self.record, &self.facts)?;
        let times = sealed::permission(&self.record)?;
        // An approval that the decision cited but did not use is left out. Another decision may
        // have used it since.
        let own = |cited: &&Cited| {
            permitted.approval.as_ref().is_some_and(|approval| approval.id == cited.approval.id)
        };
        let spent = self.spent.as_ref().filter(own).cloned();
        permitted.approval = permitted.approval.filter(|_| spent.is_some());
        let spent = spent.map(|cited| Cited {
            approval: permitted.approval.clone().unwrap_or_else(|| cited.approval.clone()),
            ..cited
        });
        let (evaluated_at, valid_until) = (times.evaluated_at, times.valid_until);
        Ok(Question { permitted, evaluated_at, valid_until, spent })
    }
}

impl FactSource {
    /// Judges the request on current facts, with the acts that count now.
    ///
    /// `claims` is the caller who requests the repeated response, if any. Uses memory only.
    pub(super) fn judge_again(
        &self,
        handle: Option<&TenantHandle>,
        question: &Question,
        gathered: &Arc<Gathered>,
        claims: Option<&Caller>,
        at: DateTime<Utc>,
    ) -> Verdict {
        let Question { permitted: Permitted { request, used, .. }, evaluated_at, spent, .. } =
            question;
        let counting = self.counting(claims, handle, request, gathered);
        let counted = counting.as_ref().and_then(|acts| acts.in_gathered(gathered, request));
        let gathered = counted.map_or_else(|| Arc::clone(gathered), Arc::new);
        let approval = spent.as_ref().map(|cited| cited.approval.clone());
        let mut facts = Facts { approval, ..Facts::new(gathered) };
        time_zones::complete(&request.action, &mut facts, *evaluated_at);
        let judge = |facts: &Facts| judge_again(request, used, facts, *evaluated_at, at);
        let Some(cited) = spent else { return judge(&facts) };
        let given = self.given(cited, counting.as_ref());
        graph::decide_by(handle, request, &mut facts, &given, judge)
    }
}

/// The refusal to repeat a permission that can't be judged again.
pub(super) fn unreadable() -> ApiError {
    let text = "the decision under this key can't be read back, and its permission can't be verified; \
                retry with a new Idempotency-Key";
    ApiError::new(ErrorCode::DecisionStopped, text).with("stop_condition", "authority.unavailable")
}
