//! The policies that denied or held a request, by name and with their advice, as the stages' findings have them.

use authority_ids::EntityRef;
use authority_model::proto::{registry::GetPolicyRequest, runtime::GetDecisionResponse};

use crate::kit::{prelude::*, text};

/// One sentence for each policy that gave the decisive reason; none if the role does not read findings.
pub(super) async fn deciding_policies(view: &View, decision: &GetDecisionResponse) -> Vec<String> {
    let findings = decision.trace.iter().flat_map(|stage| &stage.findings);
    let decisive =
        findings.filter(|found| found.reason_code.as_deref() == Some(&*decision.reason_code));
    let sentences = decisive.filter_map(|finding| Some((finding.statement.as_ref()?, finding)));
    let sentences = sentences.map(|(statement, finding)| async move {
        let name = name(view, statement.policy_id.as_str().into()).await;
        let name = name.as_deref().unwrap_or(&statement.id);
        let shown = text::policy(name, statement.advice.as_deref());
        match finding.outcome.as_str() {
            "hold" => t::decisions::held_by(shown),
            _ => t::decisions::denied_by(shown),
        }
    });
    let mut sentences = some_at_once(sentences).await;
    sentences.dedup();
    sentences
}

/// The policy's present name, if the role may read it.
async fn name(view: &View, id: EntityRef) -> Option<String> {
    if !view.may(rpc::GET_POLICY) {
        return None;
    }
    let request = GetPolicyRequest { id: id.into() };
    let read = view.calls.call(&request).await;
    read.ok()?.name
}
