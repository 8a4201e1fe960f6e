//! The purposes of the service's keys.

/// The kind of data that a key signs. The service has one signing key for each purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Decision records and evidence packs.
    Evidence,
    /// Checkpoints of the transparency logs.
    Log,
    /// Replay proofs.
    Replay,
    /// Webhook envelopes.
    Webhook,
}

impl Purpose {
    pub const ALL: [Self; 4] = [Self::Evidence, Self::Log, Self::Replay, Self::Webhook];

    pub fn slug(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Log => "log",
            Self::Replay => "replay",
            Self::Webhook => "webhook",
        }
    }
}

/// The purpose of the key that signs certifications of consultants. The key is created on first
/// use.
pub(super) const PROGRAMME: &str = "programme";
/// The purpose of the key that signs the development identity provider's tokens.
pub(super) const TOKENS: &str = "dev-idp";
