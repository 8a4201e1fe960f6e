//! The policies that denied or held a request, by name and with their advice, as the stages' findings have them.

use authority_model::proto::{
    registry::{GetPolicyRequest, Policy},
    runtime::{Finding, GetDecisionResponse},
};

use crate::{calls::some_at_once, rpc, text, view::View};

/// One sentence for each policy that gave the decisive reason; none if the role does not read findings.
pub(super) async fn deciding_policies(view: &View, decision: &GetDecisionResponse) -> Vec<String> {
    let findings = decision.trace.iter().flat_map(|stage| &stage.findings);
    let decisive =
        findings.filter(|found| found.reason_code.as_deref() == Some(&*decision.reason_code));
    let sentences = decisive.filter_map(|finding| Some((Statement::of(finding)?, finding)));
    let sentences = sentences.map(|(statement, finding)| async move {
        let name = name(view, statement.policy_id).await;
        let shown = text::policy(name.as_deref().unwrap_or(statement.id), statement.advice);
        let word = if finding.outcome == "hold" { "Held" } else { "Denied" };
        format!("{word} by {shown}.")
    });
    let mut sentences = some_at_once(sentences).await;
    sentences.dedup();
    sentences
}

/// The statement of a finding. The finding has the check `policy <statement> (<policy>#<place>)`.
struct Statement<'a> {
    id: &'a str,
    policy_id: &'a str,
    advice: Option<&'a str>,
}

impl<'a> Statement<'a> {
    fn of(finding: &'a Finding) -> Option<Self> {
        let (id, place) = finding.check.strip_prefix("policy ")?.rsplit_once(" (")?;
        let (policy_id, _) = place.rsplit_once('#')?;
        // Without advice a finding has this word.
        let advice = finding.detail.as_deref().filter(|detail| *detail != "matches");
        Some(Self { id, policy_id, advice })
    }
}

/// The policy's present name, if the role may read it.
async fn name(view: &View, id: &str) -> Option<String> {
    if !view.may(rpc::GET_POLICY) {
        return None;
    }
    let request = GetPolicyRequest { id: id.to_owned() };
    let read = view.calls.call::<_, Policy>(rpc::GET_POLICY, &request).await;
    read.ok()?.name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_a_policy_has_its_statement_and_its_advice() {
        let finding = |check: &str, detail: &str| Finding {
            check: check.to_owned(),
            detail: Some(detail.to_owned()),
            ..Finding::default()
        };
        let check = "policy night (ops) (svc:ent:acme:policy:01#2)";
        let held = finding(check, "Wait for the morning.");
        let statement = Statement::of(&held).unwrap();
        assert_eq!((statement.id, statement.policy_id), ("night (ops)", "svc:ent:acme:policy:01"));
        assert_eq!(statement.advice, Some("Wait for the morning."));
        let plain = finding(check, "matches");
        assert_eq!(Statement::of(&plain).unwrap().advice, None);
        assert!(Statement::of(&finding("delegation svc:del:acme:1", "matches")).is_none());
    }
}
