//! The reason codes. Each has one word for clients to match, the stage that returns it, its decision,
//! and a sentence. docs/internals/adding-a-member.md lists the steps for a new code.
//!
//! They are served at `GET /v1/reason-codes`. A code is never renamed, because records contain it.

use super::levels::{Decision, words};

words! {
    /// The stages of a decision, in order.
    Stage {
        Authority "authority",
        Purpose "purpose",
        Rules "rules",
        Decision "decision",
    }
}

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::own_reason::OwnReason;

/// The metric label of all tenants' own codes. A label for each code would be too many.
const OWN: &str = "x_";

macro_rules! reasons {
    ($($name:ident $stage:ident $decision:ident $word:literal $sentence:literal;)*) => {
        /// The reason of a decision.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($name,)*
            /// The `@reason` of a tenant's own policy.
            Own(OwnReason),
        }

        impl Reason {
            /// The canonical reason codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub fn word(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Own(own) => own.word(),
                }
            }

            /// Returns the code, or the shared label of all tenants' own codes.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Own(_) => OWN,
                }
            }

            /// Returns the stage that returns this code.
            pub const fn stage(self) -> Stage {
                match self {
                    $(Self::$name => Stage::$stage,)*
                    Self::Own(_) => Stage::Rules,
                }
            }

            /// Returns the decision of this code. For a tenant's own code, it depends on the policy.
            pub const fn decision(self) -> Decision {
                match self {
                    $(Self::$name => Decision::$decision,)*
                    Self::Own(_) => Decision::Deny,
                }
            }

            /// Returns the meaning, as a sentence for people.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)*
                    Self::Own(_) => "a policy of the tenant gives this reason of its own",
                }
            }

            pub fn from_word(word: &str) -> Option<Self> {
                let canonical = Self::ALL.iter().copied().find(|known| known.word() == word);
                canonical.or_else(|| OwnReason::of(word).map(Self::Own))
            }
        }

        impl Serialize for Reason {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.word())
            }
        }

        impl<'de> Deserialize<'de> for Reason {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = String::deserialize(from)?;
                let unknown = || de::Error::custom(format_args!("`{word}` is not a reason code"));
                Self::from_word(&word).ok_or_else(unknown)
            }
        }

        impl std::fmt::Display for Reason {
            fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str(self.word())
            }
        }
    };
}

reasons! {
    PermissionGranted Decision Allow "permission_granted" "the action is permitted, under the obligations and stop conditions given";
    TenantInactive Authority Deny "tenant_inactive" "the tenant is not active";
    SubjectNotPermitted Authority Deny "subject_not_permitted" "the API key is bound to other principals than the subject";
    SubjectUnknown Authority Deny "subject_unknown" "no principal of this tenant has the subject's id";
    SubjectSuspended Authority Deny "subject_suspended" "the subject is not in state active";
    ActorStopped Authority Deny "actor_stopped" "a stop signal is on the subject or on someone in its chain of delegations";
    CapabilityQuarantined Authority Deny "capability_quarantined" "the subject, someone in its chain, its delegation or the action is in quarantine, or the definition of an MCP server's tool is not pinned";
    DelegationUnknown Authority Deny "delegation_unknown" "no delegation of this tenant has that id, or its chain does not reach a root";
    DelegationMismatch Authority Deny "delegation_mismatch" "the delegation was given to another delegate, or the authority has no delegator with the id in `on_behalf_of`";
    DelegationNotYetValid Authority Deny "delegation_not_yet_valid" "the delegation or grant, or one above it, is not valid yet";
    DelegationExpired Authority Deny "delegation_expired" "the delegation or grant, or one above it, has expired";
    DelegationRevoked Authority Deny "delegation_revoked" "the delegation, or one above it, was revoked";
    DelegationSuspended Authority Deny "delegation_suspended" "the delegation, or one above it, is suspended";
    DelegatorInactive Authority Deny "delegator_inactive" "a delegator or delegate of the chain is not an active principal";
    PermissionMissing Authority Deny "permission_missing" "nothing gives the subject authority for this action";
    CapabilityDenied Authority Deny "capability_denied" "a uses row denies the subject this action or its tool";
    ConstraintExceeded Authority Deny "constraint_exceeded" "the request is outside a bound of the authority, lacks the member that the bound needs, or has an amount below zero";
    RiskExceedsDelegation Authority Deny "risk_exceeds_delegation" "the action's risk tier is above the delegation's ceiling, or undeclared under one";
    JurisdictionUnsupported Authority Deny "jurisdiction_unsupported" "the authority or the purpose does not support the jurisdiction, or none was given";
    WorkspaceAccessMissing Authority Deny "workspace_access_missing" "the subject does not act in the workspace, or not with this action";
    ResourceAccessMissing Authority Deny "resource_access_missing" "no grant gives the access level needed on the resource, or it belongs to another workspace; only a tool's record needs less than execute";
    ProjectAccessMissing Authority Deny "project_access_missing" "reach, membership and grant on the project are not all present; only a tool's record needs less than execute";
    ToolMismatch Authority Deny "tool_mismatch" "the tool is not live, does not perform this action, or serves another workspace";
    ToolDefinitionChanged Authority Deny "tool_definition_changed" "the request does not have the digest of the pinned definition of an MCP server's tool";
    ContextIncomplete Authority Deny "context_incomplete" "the request lacks a member that the tool requires or, where none is named, one of those that perform the action";
    ContextInvalid Authority Deny "context_invalid" "the context is not of the form that the tenant's context_schema, the tool's input_schema or the types of policies ask for";
    PurposeUnknown Purpose Deny "purpose_unknown" "no purpose of this tenant has that slug";
    PurposeNotAdmitted Purpose Deny "purpose_not_admitted" "the purpose does not admit this action, principal class, place or time";
    PurposeOutOfScope Purpose Deny "purpose_out_of_scope" "the delegation is bound to other purposes";
    PurposeRequired Purpose Deny "purpose_required" "the delegation is bound to purposes and the request declares none";
    RuleError Rules Deny "rule_error" "an applicable policy could not be evaluated on this request";
    PolicyDenied Rules Deny "policy_denied" "a policy forbids the action";
    ApprovalThresholdBreach Rules RequireApproval "approval_threshold_breach" "a policy requires approval before the action";
    RealityDecoupled Rules Deny "reality_decoupled" "the world has moved from what the authority assumed";
    RealityRevalidationRequired Rules RequireApproval "reality_revalidation_required" "a source of truth that grounds the action must be observed again";
    RealityReviewRequired Rules RequireApproval "reality_review_required" "a person must review the world's drift before the action";
    RiskProhibited Rules Deny "risk_prohibited" "the action's risk tier is never permitted";
    DeclarationRequired Rules Deny "declaration_required" "the tenant requires that request or tool declare effect and risk, and neither does";
    OversightRequired Rules RequireApproval "oversight_required" "the action's effect and risk require people's approval first";
    ObligationUnsupported Decision Deny "obligation_unsupported" "the permission would have an obligation that is not in the request's `supported_obligations`";
    ApprovalDeclined Decision Deny "approval_declined" "people declined this question; it is denied for a while, or until a person reopens it";
    ApprovalLimitReached Decision Deny "approval_limit_reached" "the agent has reached its tenant's limit of open requests for approval";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_read_back() {
        for (place, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(Reason::from_word(reason.word()), Some(*reason));
            assert!(Reason::ALL[..place].iter().all(|other| other.word() != reason.word()));
            assert!(reason.sentence().len() > 10);
        }
    }
}
