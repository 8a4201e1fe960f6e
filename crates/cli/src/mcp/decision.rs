//! The service's response to a decision request.

use std::time::Duration;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::{json::object, text::Shown};

/// A decision.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    Permitted(Permit),
    Held(Hold),
    Denied(Denial),
}

/// A permission to act. Its record was verified.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit {
    pub(crate) decision_id: String,
    /// How long after the question the action may begin.
    pub(crate) valid_for: Duration,
    pub(crate) obligations: Vec<String>,
    /// Whether its record has an approval. False until the record is verified.
    pub(crate) is_approved: bool,
    /// The record, its signature and the salt of its context, for the tool.
    pub(crate) proof: Value,
}

/// A decision that waits for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hold {
    pub(crate) decision_id: String,
    pub(crate) reason_code: String,
    /// Null if no approval helps.
    pub(crate) approval_id: Option<String>,
    /// The approval that only has to be cited.
    pub(crate) ready_approval_id: Option<String>,
    pub(crate) verify_url: String,
    /// Whether a registered person could approve it.
    pub(crate) nobody_is_eligible: bool,
}

/// A refusal, as one sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) reason_code: String,
    pub(crate) sentence: String,
}

/// The obligations without a duty for the gateway.
const SUPPORTED: [&str; 3] = ["audit.emit", "reality.warn", "reality.overridden"];

#[derive(Deserialize)]
struct Answer {
    decision: String,
    reason_code: String,
    decision_id: String,
    #[serde(default)]
    obligations: Vec<String>,
    #[serde(default)]
    stages: Vec<Stage>,
    approval_id: Option<String>,
    ready_approval_id: Option<String>,
    eligible: Option<String>,
    #[serde(default)]
    verify_url: String,
    evaluated_at: Option<String>,
    valid_until: Option<String>,
    smallest_change: Option<Change>,
    record: Option<String>,
    context_salt: Option<String>,
    evidence_pack: Option<Value>,
}

#[derive(Deserialize)]
struct Stage {
    #[serde(default)]
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    #[serde(default)]
    exceeded: Vec<Exceeded>,
}

#[derive(Deserialize)]
struct Exceeded {
    #[serde(default)]
    bound: String,
    #[serde(default)]
    limit: String,
    currency: Option<String>,
    asked: Option<String>,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    sentence: String,
    #[serde(default)]
    further: Vec<Change>,
}

impl Decision {
    /// Reads the response to a decision request. The record of a permission is not verified here.
    ///
    /// # Errors
    /// The response is not a decision. No action is permitted.
    pub(crate) fn read(body: &str) -> Result<Self, String> {
        let answer: Answer = object(body)?;
        match answer.decision.as_str() {
            "allow" | "allow_with_constraints" => answer.permit().map(Self::Permitted),
            "require_approval" => Ok(Self::Held(answer.hold())),
            "deny" => Ok(Self::Denied(answer.denial())),
            other => Err(format!("unknown decision `{}`", Shown(other))),
        }
    }
}

impl Answer {
    fn permit(self) -> Result<Permit, String> {
        if let Some(other) = self.obligations.iter().find(|one| !SUPPORTED.contains(&one.as_str()))
        {
            return Err(format!("the obligation `{}` is not supported", Shown(other)));
        }
        let time = |text: &Option<String>| {
            let text = text.as_deref().ok_or("the permission has no time")?;
            DateTime::parse_from_rfc3339(text).map_err(|_| "the permission has an unreadable time")
        };
        let (from, until) = (time(&self.evaluated_at)?, time(&self.valid_until)?);
        let valid_for = (until - from).to_std().map_err(|_| "the permission is over")?;
        let (Some(record), Some(pack)) = (self.record, self.evidence_pack) else {
            return Err("the permission has no record".to_owned());
        };
        let proof = json!({"record": record, "record_digest": pack["record_digest"],
            "signature": pack["signature"], "salt": self.context_salt});
        let Self { decision_id, obligations, .. } = self;
        Ok(Permit { decision_id, valid_for, obligations, is_approved: false, proof })
    }

    fn hold(self) -> Hold {
        Hold {
            decision_id: self.decision_id,
            reason_code: self.reason_code,
            approval_id: self.approval_id,
            ready_approval_id: self.ready_approval_id,
            verify_url: self.verify_url,
            nobody_is_eligible: self.eligible.as_deref() == Some("none"),
        }
    }

    fn denial(self) -> Denial {
        let exceeded = self.stages.iter().flat_map(|stage| &stage.findings);
        let exceeded: Vec<_> =
            exceeded.flat_map(|finding| &finding.exceeded).map(Exceeded::text).collect();
        let mut sentence = format!("Denied ({})", Shown(&self.reason_code));
        if !exceeded.is_empty() {
            sentence.push_str(": ");
            sentence.push_str(&exceeded.join("; "));
        }
        if let Some(change) = &self.smallest_change {
            let parts = std::iter::once(change).chain(&change.further);
            let parts: Vec<_> = parts.map(|part| Shown(&part.sentence).to_string()).collect();
            sentence.push_str("; to change this, ");
            sentence.push_str(&parts.join(", and "));
        }
        sentence.push('.');
        Denial { reason_code: self.reason_code, sentence }
    }
}

impl Exceeded {
    fn text(&self) -> String {
        let currency = self.currency.as_deref().map(|code| format!(" {code}")).unwrap_or_default();
        let asked =
            self.asked.as_deref().map(|asked| format!(", the request has {asked}{currency}"));
        let text =
            format!("{} is {}{currency}{}", self.bound, self.limit, asked.unwrap_or_default());
        Shown(&text).to_string()
    }
}

impl Permit {
    /// The obligations that the client should see.
    pub(crate) fn shown_obligations(&self) -> Vec<&str> {
        let shown = self.obligations.iter().map(String::as_str);
        shown.filter(|name| *name != "audit.emit").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted() -> Value {
        json!({"decision": "allow", "reason_code": "permission_granted", "decision_id": "d",
            "obligations": ["audit.emit"], "evaluated_at": "2026-11-30T10:00:00.000Z",
            "valid_until": "2026-11-30T10:00:30Z", "record": "{}", "context_salt": "AA==",
            "evidence_pack": {"record_digest": "sha256:0", "signature": {"kid": "k"}}})
    }

    #[test]
    fn a_permission_has_its_time_and_its_record() {
        let Ok(Decision::Permitted(permit)) = Decision::read(&permitted().to_string()) else {
            panic!()
        };
        assert_eq!(permit.valid_for, Duration::from_secs(30));
        assert_eq!(permit.proof["signature"]["kid"], "k");
    }

    #[test]
    fn anything_else_permits_nothing() {
        for (member, value) in [
            ("decision", json!("permit")),
            ("decision", json!(null)),
            ("obligations", json!(["mask.pii"])),
            ("valid_until", json!(null)),
            ("valid_until", json!("soon")),
            ("valid_until", json!("2026-11-30T09:59:59Z")),
            ("evaluated_at", json!(null)),
            ("record", json!(null)),
            ("evidence_pack", json!(null)),
            ("decision_id", json!(null)),
        ] {
            let mut answer = permitted();
            answer[member] = value.clone();
            assert!(Decision::read(&answer.to_string()).is_err(), "{member}: {value}");
        }
        for body in ["", "null", "[]", "{", "<html>", "{\"decision\": \"allow\"}"] {
            assert!(Decision::read(body).is_err(), "{body}");
        }
    }

    #[test]
    fn a_denial_is_one_sentence() {
        let answer = json!({"decision": "deny", "reason_code": "constraint_exceeded", "decision_id": "d",
            "stages": [{"stage": "authority", "findings": [{"check": "bounds", "exceeded": [
                {"bound": "max_amount", "limit": "50000.00", "currency": "EUR", "asked": "60000.00"}]}]}],
            "smallest_change": {"kind": "amount", "sentence": "ask for 50000 at most",
                "further": [{"kind": "purpose", "sentence": "name a purpose"}]}});
        let Ok(Decision::Denied(denial)) = Decision::read(&answer.to_string()) else { panic!() };
        assert_eq!(
            denial.sentence,
            "Denied (constraint_exceeded): max_amount is 50000.00 EUR, the request has 60000.00 EUR; to change \
             this, ask for 50000 at most, and name a purpose."
        );
    }
}
