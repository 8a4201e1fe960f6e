//! The columns of a decision in a list.

use authority_decision::{Amount, Decision};
use authority_model::{proto::runtime::DecisionSummary, schema::decisions, wire::Time};
use diesel::{pg::Pg, prelude::*};
use serde_json::Value;

use super::{answer, settings::ReceiptUrls};

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
}

impl DecisionSummaryRow {
    pub(super) fn shown(self, receipts: &ReceiptUrls) -> DecisionSummary {
        let context = answer::object(&self.context).unwrap_or_default().0;
        let amount = context.get("amount").and_then(Value::as_number);
        let amount = amount.and_then(|amount| Amount::from_number(amount).ok());
        DecisionSummary {
            amount: amount.map(|amount| amount.to_string()),
            currency: context.get("currency").and_then(Value::as_str).map(str::to_owned),
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
}
