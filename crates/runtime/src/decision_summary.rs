//! A decision in a list, with the declared facts of its request and the policies that decided it.

use std::collections::HashMap;

use authority_decision::{Amount, Decision, Reason};
use authority_graph::Graph;
use authority_ids::TenantId;
use authority_model::{
    proto::runtime::{DecisionSummary, ExportedDecision, RequestFact},
    schema::decisions,
    wire::Time,
};
use authority_presentation::written_values;
use diesel::{pg::Pg, prelude::*};
use serde_json::{Map, Value};

use super::{answer, settings::ReceiptUrls};

/// The maximum number of facts of a decision, and their maximum length in characters. A longer text
/// can't be searched.
const FACTS: usize = 8;
const LONGEST: usize = 300;

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
pub(super) struct DecisionSummaryRow {
    pub(super) id: String,
    tenant_id: String,
    subject: String,
    action: String,
    decision: String,
    reason_code: String,
    evaluated_at: Time,
    pub(super) approval_id: Option<String>,
    /// Empty if it was erased.
    pub(super) context: Vec<u8>,
    pub(super) record: Vec<u8>,
}

/// The names of policies, by the id of the approval request that waits or of the denied decision.
pub(super) type Policies = HashMap<String, Vec<String>>;

impl DecisionSummaryRow {
    /// The approval request that the action waits for, if it was held.
    pub(super) fn waits_for(&self) -> Option<&str> {
        let is_held = Decision::from_word(&self.decision) == Some(Decision::RequireApproval);
        self.approval_id.as_deref().filter(|_| is_held)
    }

    /// Whether a policy denied the action, or could not be evaluated.
    pub(super) fn is_denied_by_policy(&self) -> bool {
        let is_by_policy = |reason: Reason| {
            matches!(reason, Reason::PolicyDenied | Reason::RuleError | Reason::Own(_))
        };
        Decision::from_word(&self.decision) == Some(Decision::Deny)
            && Reason::from_word(&self.reason_code).is_some_and(is_by_policy)
    }

    pub(super) fn shown(
        self,
        receipts: &ReceiptUrls,
        graph: &Graph,
        policies: &Policies,
    ) -> DecisionSummary {
        let mut names = policies.get(self.waits_for().unwrap_or(&self.id)).cloned();
        // A policy can have several statements.
        names.iter_mut().for_each(Vec::dedup);
        let context = answer::object(&self.context).unwrap_or_default().0;
        let facts = self.facts(graph, &context);
        let record = answer::object(&self.record).unwrap_or_default().0;
        let purpose = record.get("request").and_then(|request| request["purpose"].as_str());
        let exported = self.exported(receipts, Some(&context));
        DecisionSummary {
            decision_id: exported.decision_id,
            tenant_id: exported.tenant_id,
            subject: exported.subject,
            action: exported.action,
            decision: exported.decision,
            reason_code: exported.reason_code,
            evaluated_at: exported.evaluated_at,
            approval_id: exported.approval_id,
            verify_url: exported.verify_url,
            amount: exported.amount,
            currency: exported.currency,
            purpose: purpose.map(str::to_owned),
            facts,
            policies: names.unwrap_or_default(),
        }
    }

    /// The members that a line of an export has. Without the context, it has no amount.
    pub(super) fn exported(
        self,
        receipts: &ReceiptUrls,
        context: Option<&Map<String, Value>>,
    ) -> ExportedDecision {
        let member = |name: &str| context.and_then(|context| context.get(name));
        let amount = member("amount").and_then(Value::as_number);
        let amount = amount.and_then(|amount| Amount::from_number(amount).ok());
        ExportedDecision {
            amount: amount.map(|amount| amount.to_string()),
            currency: member("currency").and_then(Value::as_str).map(str::to_owned),
            verify_url: receipts.url(&self.id),
            decision_id: self.id,
            tenant_id: self.tenant_id,
            subject: self.subject,
            action: self.action,
            decision: Decision::from_word(&self.decision).map_or(0, answer::word),
            reason_code: self.reason_code,
            evaluated_at: Some(self.evaluated_at),
            approval_id: self.approval_id,
        }
    }

    /// The values of the roles that tools declare. None if the graph is too old to be read.
    fn facts(&self, graph: &Graph, context: &Map<String, Value>) -> Vec<RequestFact> {
        let tenant_id = TenantId::parse(&self.tenant_id).ok();
        let handle = tenant_id.and_then(|id| graph.tenant(&id).ok().flatten());
        let Some(handle) = handle.filter(|_| !context.is_empty()) else { return Vec::new() };
        let paths = handle.read().role_paths(&self.action);
        let values = written_values(&paths, context, FACTS, LONGEST).into_iter();
        values.take(FACTS).map(|(role, value)| RequestFact { role, value }).collect()
    }
}
