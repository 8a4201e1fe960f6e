//! `requestState`: the state of a call between two requests of a client, sealed.

use std::time::Duration;

use authority_crypto::{Error, KeyRing, sha256};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How long a state is accepted.
pub(crate) const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Binds the seal to its use.
const USE: &[u8] = b"agent-authority mcp requestState v1";

/// The state of a call between two requests of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallState {
    pub(crate) kind: StateKind,
    /// Random: a state with decisions is accepted once. Empty if there are none.
    pub(crate) nonce: String,
    /// The agent.
    pub(crate) principal: String,
    /// The digest of the call.
    pub(crate) call: String,
    pub(crate) round: u8,
    /// When it ends, on the relay's own clock.
    pub(crate) ends_at: Duration,
    /// The decisions that this call has had so far, and that are not reported.
    pub(crate) decisions: Vec<String>,
    /// The server's own state.
    pub(crate) upstream: Option<Value>,
    /// The client's input, while a later round waits for people.
    pub(crate) input: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StateKind {
    /// Waits for people.
    Hold { decision_id: String, approval_id: String, verify_url: String, began_at: Duration },
    /// Waits for the client's input to a permitted call.
    Round,
}

/// Seals states with a key of this process.
pub(crate) struct StateSeal(KeyRing);

impl StateSeal {
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self(KeyRing::parse(&KeyRing::generate()?)?))
    }

    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn seal(&self, state: &CallState) -> Result<String, Error> {
        let plain = serde_json::to_vec(state).map_err(|_| Error::Sealed)?;
        Ok(URL_SAFE_NO_PAD.encode(self.0.seal(USE, &plain)?))
    }

    /// Opens a state that came from the client; `None` if this process did not seal it.
    pub(crate) fn open(&self, text: &str) -> Option<CallState> {
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        serde_json::from_slice(&self.0.open(USE, &sealed).ok()?).ok()
    }
}

/// Returns the digest of a call: its tool and its arguments.
pub(crate) fn call_digest(params: &Map<String, Value>) -> String {
    let call = json!({"name": params.get("name"), "arguments": params.get("arguments")});
    let bytes = serde_json_canonicalizer::to_vec(&call).unwrap_or_default();
    authority_crypto::hex(&sha256(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> CallState {
        CallState {
            kind: StateKind::Round,
            nonce: "n".to_owned(),
            principal: "svc:agent:acme:dev".to_owned(),
            call: "c".to_owned(),
            round: 1,
            ends_at: LIFETIME,
            decisions: vec!["d".to_owned()],
            upstream: Some(json!("theirs")),
            input: Some(json!({"amount": 1})),
        }
    }

    #[test]
    fn only_its_own_process_opens_a_state() {
        let (seal, other) = (StateSeal::new().unwrap(), StateSeal::new().unwrap());
        let sealed = seal.seal(&state()).unwrap();
        assert_eq!(seal.open(&sealed), Some(state()));
        assert_eq!(other.open(&sealed), None);
        assert!(!sealed.contains("theirs"));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let seal = StateSeal::new().unwrap();
        let sealed = URL_SAFE_NO_PAD.decode(seal.seal(&state()).unwrap()).unwrap();
        for place in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[place] ^= 1;
            assert_eq!(seal.open(&URL_SAFE_NO_PAD.encode(forged)), None, "{place}");
        }
        for text in ["", "AAAA", "not base64!", &"A".repeat(200)] {
            assert_eq!(seal.open(text), None, "{text}");
        }
    }
}
