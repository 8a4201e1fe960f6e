//! The operations that pages offer or send by their paths.

macro_rules! operations {
    ($($package:literal $service:ident: $($name:ident $method:ident),+;)+) => {
        $($(pub(crate) const $name: &str =
            concat!("/authority.", $package, ".v1.", stringify!($service), "/", stringify!($method));)+)+
        #[cfg(test)]
        const ALL: &[&str] = &[$($($name),+),+];
    };
}

operations! {
    "approval" ApprovalService: LIST_APPROVALS ListApprovals, GET_APPROVAL GetApproval,
        APPROVE_APPROVAL ApproveApproval, WITHDRAW_APPROVAL WithdrawApproval;
    "delegation" DelegationService: CREATE_DELEGATION CreateDelegation,
        LIST_DELEGATIONS ListDelegations, GET_BLAST_RADIUS GetBlastRadius,
        GET_PRINCIPAL_BLAST_RADIUS GetPrincipalBlastRadius;
    "events" MessageChannelService: LIST_MESSAGE_CHANNELS ListMessageChannels;
    "events" WebhookDeliveryService: TEST_WEBHOOK_ENDPOINT TestWebhookEndpoint,
        REDRIVE_WEBHOOK_DELIVERY RedriveWebhookDelivery;
    "evidence" EvidenceService: SEAL_DECISION SealDecision, MINT_REPLAY_PROOF MintReplayProof,
        GET_CHECKPOINT GetCheckpoint;
    "keys" ApiKeyService: GET_API_KEY GetApiKey;
    "keys" KeyService: LIST_KEYS ListKeys, REVOKE_KEY RevokeKey,
        SCHEDULE_KEY_ROTATION ScheduleKeyRotation, COMPLETE_KEY_ROTATION CompleteKeyRotation,
        CANCEL_KEY_ROTATION CancelKeyRotation;
    "registry" AppliesToService: LIST_APPLIES_TO ListAppliesTo;
    "registry" PolicyService: CREATE_POLICY CreatePolicy, LIST_POLICIES ListPolicies,
        GET_POLICY GetPolicy, LIST_POLICY_VERSIONS ListPolicyVersions, UPDATE_POLICY UpdatePolicy,
        ACTIVATE_POLICY ActivatePolicy, OBSERVE_POLICY ObservePolicy,
        UNOBSERVE_POLICY UnobservePolicy, VALIDATE_POLICY ValidatePolicy;
    "registry" PrincipalService: GET_PRINCIPAL GetPrincipal, CREATE_PRINCIPAL CreatePrincipal,
        LIST_PRINCIPALS ListPrincipals;
    "registry" QuarantineService: LIST_QUARANTINES ListQuarantines,
        CREATE_QUARANTINE CreateQuarantine, RELEASE_QUARANTINE ReleaseQuarantine;
    "registry" StopSignalService: LIST_STOP_SIGNALS ListStopSignals,
        CREATE_STOP_SIGNAL CreateStopSignal, LIFT_STOP_SIGNAL LiftStopSignal;
    "registry" TenantService: LIST_TENANTS ListTenants;
    "registry" ToolService: FIND_UNKNOWN_NAMES FindUnknownNames, GET_TOOL GetTool, PIN_TOOL PinTool;
    "runtime" AuthorityService: LIST_ENTITY_HISTORY ListEntityHistory, GET_AUTHORITY GetAuthority;
    "runtime" DecisionService: SIMULATE_DECISION SimulateDecision, LIST_DECISIONS ListDecisions,
        IMPACT_POLICIES ImpactPolicies, INSPECT_DECISION InspectDecision;
    "runtime" SearchService: SEARCH Search;
    "runtime" UsageService: LIST_USAGE ListUsage, RANK_USAGE RankUsage;
    "states" StateLibraryService: LIST_STATE_LIBRARY ListStateLibrary;
}

#[cfg(test)]
mod tests {
    use authority_model::access::RULES;

    /// The access rules know each operation by its path: a misspelt one would be refused to everybody, and its
    /// buttons would never be shown.
    #[test]
    fn every_path_is_an_operation_of_the_service() {
        for path in super::ALL {
            assert!(RULES.iter().any(|(known, _)| known == path), "{path}");
        }
    }
}
