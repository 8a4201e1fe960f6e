//! Ordered enums with words: risk tiers, effect classes, reversibility, oversight, access, states.
//!
//! Each enum is declared in rising order: `max` is the riskier value, and comparisons read as in
//! docs/reference/decision.md.

use serde::{Deserialize, Serialize};

/// Declares an enum with one word for each variant.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant),* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// Parses a word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str(self.word())
            }
        }
    };
}
pub(super) use words;

words! {
    /// The risk of an action.
    RiskTier {
        Minimal "minimal",
        Limited "limited",
        High "high",
        Unacceptable "unacceptable",
        Prohibited "prohibited",
    }
}

words! {
    /// The kind of effect of an action.
    EffectClass {
        Informational "informational",
        DigitalStateChange "digital_state_change",
        Financial "financial",
        PhysicalActuation "physical_actuation",
        SafetyCritical "safety_critical",
    }
}

words! {
    /// Whether an action can be undone.
    Reversibility {
        Reversible "reversible",
        Compensatable "compensatable",
        Irreversible "irreversible",
    }
}

words! {
    /// The values of `required_oversight_mode` in a request or tool.
    OversightMode {
        Auto "auto",
        None "none",
        Delegated "delegated",
        SingleApprover "single_approver",
        TwoPerson "two_person",
        TwoPersonWithLegal "two_person_with_legal",
    }
}

words! {
    /// The minimum oversight that the gate requires.
    Oversight {
        None "none",
        SingleApprover "single_approver",
        TwoPerson "two_person",
        TwoPersonWithLegal "two_person_with_legal",
        Prohibited "prohibited",
    }
}

words! {
    /// The access level of a grant on a resource.
    AccessLevel {
        Read "read",
        Write "write",
        Execute "execute",
        Admin "admin",
        Owner "owner",
    }
}

words! {
    /// The kind of a principal.
    PrincipalClass {
        Human "human",
        Agent "agent",
        System "system",
        ExternalApp "external_app",
    }
}

words! {
    /// The effect of drift on an action; rising.
    RuntimeEffect {
        Continue "continue",
        ContinueWithWarning "continue_with_warning",
        RequireRevalidation "require_revalidation",
        RequireHumanReview "require_human_review",
        Quarantine "quarantine",
        Deny "deny",
    }
}

words! {
    /// The state of a delegation. An unknown stored state is read as revoked.
    DelegationState {
        Active "active",
        Suspended "suspended",
        Revoked "revoked",
    }
}

words! {
    /// The state of an approval.
    ApprovalState {
        Pending "pending",
        Approved "approved",
        Used "used",
        Declined "declined",
        Expired "expired",
        Void "void",
    }
}

words! {
    /// The decision. The strongest comes last.
    Decision {
        Allow "allow",
        AllowWithConstraints "allow_with_constraints",
        RequireApproval "require_approval",
        Deny "deny",
    }
}

impl Decision {
    /// Converts the decision for the evaluate endpoint, which returns a plain `allow` and its
    /// constraints separately.
    #[must_use]
    pub const fn folded(self) -> Self {
        match self {
            Self::AllowWithConstraints => Self::Allow,
            other => other,
        }
    }

    pub const fn permits(self) -> bool {
        matches!(self, Self::Allow | Self::AllowWithConstraints)
    }
}
