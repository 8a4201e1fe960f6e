//! The operations that pages offer or send by their paths.

pub(crate) const LIST_APPROVALS: &str = "/authority.approval.v1.ApprovalService/ListApprovals";
pub(crate) const GET_APPROVAL: &str = "/authority.approval.v1.ApprovalService/GetApproval";
pub(crate) const APPROVE_APPROVAL: &str = "/authority.approval.v1.ApprovalService/ApproveApproval";
pub(crate) const WITHDRAW_APPROVAL: &str =
    "/authority.approval.v1.ApprovalService/WithdrawApproval";
pub(crate) const GET_PRINCIPAL: &str = "/authority.registry.v1.PrincipalService/GetPrincipal";
pub(crate) const CREATE_PRINCIPAL: &str = "/authority.registry.v1.PrincipalService/CreatePrincipal";
pub(crate) const CREATE_DELEGATION: &str =
    "/authority.delegation.v1.DelegationService/CreateDelegation";
pub(crate) const CREATE_POLICY: &str = "/authority.registry.v1.PolicyService/CreatePolicy";
pub(crate) const SIMULATE_DECISION: &str = "/authority.runtime.v1.DecisionService/SimulateDecision";
pub(crate) const LIST_DECISIONS: &str = "/authority.runtime.v1.DecisionService/ListDecisions";
pub(crate) const SEARCH: &str = "/authority.runtime.v1.SearchService/Search";
pub(crate) const LIST_USAGE: &str = "/authority.runtime.v1.UsageService/ListUsage";
pub(crate) const RANK_USAGE: &str = "/authority.runtime.v1.UsageService/RankUsage";
pub(crate) const LIST_ENTITY_HISTORY: &str =
    "/authority.runtime.v1.AuthorityService/ListEntityHistory";
pub(crate) const LIST_TENANTS: &str = "/authority.registry.v1.TenantService/ListTenants";
pub(crate) const LIST_STOP_SIGNALS: &str =
    "/authority.registry.v1.StopSignalService/ListStopSignals";
pub(crate) const CREATE_STOP_SIGNAL: &str =
    "/authority.registry.v1.StopSignalService/CreateStopSignal";
pub(crate) const LIFT_STOP_SIGNAL: &str = "/authority.registry.v1.StopSignalService/LiftStopSignal";
pub(crate) const LIST_QUARANTINES: &str =
    "/authority.registry.v1.QuarantineService/ListQuarantines";
pub(crate) const CREATE_QUARANTINE: &str =
    "/authority.registry.v1.QuarantineService/CreateQuarantine";
pub(crate) const RELEASE_QUARANTINE: &str =
    "/authority.registry.v1.QuarantineService/ReleaseQuarantine";
pub(crate) const LIST_PRINCIPALS: &str = "/authority.registry.v1.PrincipalService/ListPrincipals";
pub(crate) const FIND_UNKNOWN_NAMES: &str = "/authority.registry.v1.ToolService/FindUnknownNames";
pub(crate) const GET_TOOL: &str = "/authority.registry.v1.ToolService/GetTool";
pub(crate) const PIN_TOOL: &str = "/authority.registry.v1.ToolService/PinTool";
pub(crate) const LIST_POLICIES: &str = "/authority.registry.v1.PolicyService/ListPolicies";
pub(crate) const GET_POLICY: &str = "/authority.registry.v1.PolicyService/GetPolicy";
pub(crate) const LIST_APPLIES_TO: &str = "/authority.registry.v1.AppliesToService/ListAppliesTo";
pub(crate) const LIST_POLICY_VERSIONS: &str =
    "/authority.registry.v1.PolicyService/ListPolicyVersions";
pub(crate) const UPDATE_POLICY: &str = "/authority.registry.v1.PolicyService/UpdatePolicy";
pub(crate) const ACTIVATE_POLICY: &str = "/authority.registry.v1.PolicyService/ActivatePolicy";
pub(crate) const OBSERVE_POLICY: &str = "/authority.registry.v1.PolicyService/ObservePolicy";
pub(crate) const UNOBSERVE_POLICY: &str = "/authority.registry.v1.PolicyService/UnobservePolicy";
pub(crate) const VALIDATE_POLICY: &str = "/authority.registry.v1.PolicyService/ValidatePolicy";
pub(crate) const IMPACT_POLICIES: &str = "/authority.runtime.v1.DecisionService/ImpactPolicies";
pub(crate) const LIST_DELEGATIONS: &str =
    "/authority.delegation.v1.DelegationService/ListDelegations";
pub(crate) const GET_BLAST_RADIUS: &str =
    "/authority.delegation.v1.DelegationService/GetBlastRadius";
pub(crate) const GET_PRINCIPAL_BLAST_RADIUS: &str =
    "/authority.delegation.v1.DelegationService/GetPrincipalBlastRadius";
pub(crate) const INSPECT_DECISION: &str = "/authority.runtime.v1.DecisionService/InspectDecision";
pub(crate) const SEAL_DECISION: &str = "/authority.evidence.v1.EvidenceService/SealDecision";
pub(crate) const MINT_REPLAY_PROOF: &str = "/authority.evidence.v1.EvidenceService/MintReplayProof";
pub(crate) const LIST_API_KEYS: &str = "/authority.keys.v1.ApiKeyService/ListApiKeys";
pub(crate) const GET_API_KEY: &str = "/authority.keys.v1.ApiKeyService/GetApiKey";
pub(crate) const GET_AUTHORITY: &str = "/authority.runtime.v1.AuthorityService/GetAuthority";
pub(crate) const LIST_WEBHOOK_ENDPOINTS: &str =
    "/authority.events.v1.WebhookEndpointService/ListWebhookEndpoints";
pub(crate) const TEST_WEBHOOK_ENDPOINT: &str =
    "/authority.events.v1.WebhookDeliveryService/TestWebhookEndpoint";
pub(crate) const REDRIVE_WEBHOOK_DELIVERY: &str =
    "/authority.events.v1.WebhookDeliveryService/RedriveWebhookDelivery";
pub(crate) const LIST_MESSAGE_CHANNELS: &str =
    "/authority.events.v1.MessageChannelService/ListMessageChannels";
pub(crate) const GET_CHECKPOINT: &str = "/authority.evidence.v1.EvidenceService/GetCheckpoint";
pub(crate) const LIST_STATE_LIBRARY: &str =
    "/authority.states.v1.StateLibraryService/ListStateLibrary";
pub(crate) const LIST_KEYS: &str = "/authority.keys.v1.KeyService/ListKeys";
pub(crate) const REVOKE_KEY: &str = "/authority.keys.v1.KeyService/RevokeKey";
pub(crate) const SCHEDULE_KEY_ROTATION: &str = "/authority.keys.v1.KeyService/ScheduleKeyRotation";
pub(crate) const COMPLETE_KEY_ROTATION: &str = "/authority.keys.v1.KeyService/CompleteKeyRotation";
pub(crate) const CANCEL_KEY_ROTATION: &str = "/authority.keys.v1.KeyService/CancelKeyRotation";

#[cfg(test)]
mod tests {
    use authority_model::access::RULES;

    /// The access rules know each operation by its path: a misspelt one would be refused to everybody, and its
    /// buttons would never be shown.
    #[test]
    fn every_path_is_an_operation_of_the_service() {
        let source = include_str!("rpc.rs").split("#[cfg(test)]").next().unwrap();
        let constants = source.matches("pub(crate) const ").count();
        let paths: Vec<_> = source.split('"').skip(1).step_by(2).collect();
        assert_eq!(paths.len(), constants);
        for path in paths {
            assert!(RULES.iter().any(|(known, _)| *known == path), "{path}");
        }
    }
}
