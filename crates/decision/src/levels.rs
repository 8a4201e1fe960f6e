//! The ordered words: risk tiers, effect classes, reversibility, oversight, access, states.
//!
//! Each enum is declared in rising order, so that `max` is "the riskier" and a comparison reads
//! as docs/decision.md says it.

use serde::{Deserialize, Serialize};

/// Declares an enum with one word a variant.
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

            /// The variant that the word names, if any.
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
    /// How risky an action is.
    RiskTier {
        Minimal "minimal",
        Limited "limited",
        High "high",
        Unacceptable "unacceptable",
        Prohibited "prohibited",
    }
}

words! {
    /// What an action touches.
    EffectClass {
        Informational "informational",
        DigitalStateChange "digital_state_change",
        Financial "financial",
        PhysicalActuation "physical_actuation",
        SafetyCritical "safety_critical",
    }
}

words! {
    /// Whether an action can be taken back.
    Reversibility {
        Reversible "reversible",
        Compensatable "compensatable",
        Irreversible "irreversible",
    }
}

words! {
    /// What a request or tool may ask for as `required_oversight_mode`.
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
    /// The least oversight that the gate asks for.
    Oversight {
        None "none",
        SingleApprover "single_approver",
        TwoPerson "two_person",
        TwoPersonWithLegal "two_person_with_legal",
        Prohibited "prohibited",
    }
}

words! {
    /// How far a grant on a resource reaches.
    AccessLevel {
        Read "read",
        Write "write",
        Execute "execute",
        Admin "admin",
        Owner "owner",
    }
}

words! {
    /// What kind of actor a principal is.
    PrincipalClass {
        Human "human",
        Agent "agent",
        System "system",
        ExternalApp "external_app",
    }
}

words! {
    /// What the world's drift does to an action; rising.
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
    /// Where a delegation stands. Whatever else is stored reads as revoked.
    DelegationState {
        Active "active",
        Suspended "suspended",
        Revoked "revoked",
    }
}

words! {
    /// Where an approval stands.
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
    /// What was decided; the strongest last.
    Decision {
        Allow "allow",
        AllowWithConstraints "allow_with_constraints",
        RequireApproval "require_approval",
        Deny "deny",
    }
}

impl Decision {
    /// As the evaluate endpoint says it: constraints stand beside a plain `allow`.
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
