//! For tests: permissions as the service signs them, and a server's record.

use authority_crypto::{Signer, hex, jwk, random, sha256, sha256_of};
use authority_evidence::{digest_text, verify::KeySet};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::mcp::{
    decision::{Decision, Permit},
    permit,
    record::ServerRecord,
};

pub(crate) const TENANT: &str = "svc:tenant:acme";
pub(crate) const AGENT: &str = "svc:agent:acme:dev";
const MILLIS: u64 = 1_790_000_000_000;
const DECIDED_AT: &str = "2026-09-21T14:13:20Z";
const VALID_UNTIL: &str = "2026-09-21T14:13:50Z";

/// A key that signs decisions.
pub(crate) struct Signing(Signer);

impl Signing {
    pub(crate) fn new() -> Self {
        let seed = random::<32>().unwrap();
        let public = jwk::ed25519(Signer::from_seed("", &seed).unwrap().public_key());
        let kid = jwk::kid("evidence", 2026, &public).unwrap();
        Self(Signer::from_seed(&kid, &seed).unwrap())
    }

    pub(crate) fn jwks(&self) -> Value {
        let mut key = jwk::ed25519(self.0.public_key());
        key["kid"] = json!(self.0.kid());
        key["alg"] = json!("EdDSA");
        json!({ "keys": [key] })
    }

    pub(crate) fn keys(&self) -> KeySet {
        permit::keys(&self.jwks()).unwrap()
    }

    /// The body of a permission of this question.
    pub(crate) fn allow(&self, question: &Value) -> Value {
        self.allow_with(question, |_| {})
    }

    /// The body of a permission, with a changed record.
    pub(crate) fn allow_with(&self, question: &Value, change: impl FnOnce(&mut Value)) -> Value {
        let salt = [5; 16];
        let context = serde_json_canonicalizer::to_vec(&question["context"]).unwrap();
        let mut request = question.clone();
        let members = request.as_object_mut().unwrap();
        members.remove("context");
        members.remove("include_record");
        members.insert(
            "context_digest".to_owned(),
            json!(digest_text(&sha256_of(&[&salt, &context]))),
        );
        let mut record = json!({"kind": "svc.decision.record.v1", "tenant_id": TENANT, "evaluated_at": DECIDED_AT,
            "valid_until": VALID_UNTIL, "nonce": hex(&random::<16>().unwrap()), "request": request,
            "verdict": {"decision": "allow", "obligations": ["audit.emit"], "reason_code": "permission_granted"}});
        change(&mut record);
        let text = serde_json_canonicalizer::to_string(&record).unwrap();
        let digest = sha256(text.as_bytes());
        let id = format!("svc:decision:{MILLIS:012x}{}", &hex(&digest)[..52]);
        let signature = json!({"alg": "Ed25519", "canonicalization": "RFC8785", "kid": self.0.kid(),
            "value": STANDARD.encode(self.0.sign(text.as_bytes()))});
        json!({"decision": "allow", "reason_code": "permission_granted", "decision_id": id,
            "obligations": ["audit.emit"], "evaluated_at": DECIDED_AT, "valid_until": VALID_UNTIL,
            "record": text, "context_salt": STANDARD.encode(salt),
            "evidence_pack": {"record_digest": digest_text(&digest), "signature": signature}})
    }

    pub(crate) fn permit(&self, question: &Value) -> Permit {
        self.permit_with(question, |_| {})
    }

    pub(crate) fn permit_with(&self, question: &Value, change: impl FnOnce(&mut Value)) -> Permit {
        let body = self.allow_with(question, change).to_string();
        let Ok(Decision::Permitted(permit)) = Decision::read(&body) else { panic!("{body}") };
        permit
    }
}

/// A question with this nonce.
pub(crate) fn question(nonce: &str) -> Value {
    json!({"subject": AGENT, "action": "mcp.files.touch", "purpose": "work", "tool_id": "svc:ent:acme:tool:touch",
        "tool_definition_digest": "sha256:1", "client_nonce": nonce, "supported_obligations": [],
        "context": {"arguments": {"path": "a", "part": 0.5}, "mcp": {"server": "files", "tool": "touch"}},
        "include_record": true, "explain": true})
}

/// A tool of the scripted server.
pub(crate) fn definition(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}."), "inputSchema": {"type": "object"}})
}

/// The service's record of a server whose tools are pinned.
pub(crate) fn record(names: &[&str]) -> Value {
    let tools = names.iter().map(|name| {
        let value = definition(name);
        let digest = digest_text(&sha256(&serde_json_canonicalizer::to_vec(&value).unwrap()));
        json!({"id": format!("svc:ent:acme:tool:{name}"), "actions": [format!("mcp.files.{name}")],
            "mcp": {"server_id": "svc:ent:acme:external_app:1", "name": name, "definition": value,
                "definition_digest": digest, "seen_digest": digest, "pin": "pinned"}})
    });
    let tools: Vec<_> = tools.collect();
    json!({"id": "svc:ent:acme:external_app:1", "state": "active", "mcp": {"slug": "files"}, "tools": tools})
}

pub(crate) fn server_record(value: &Value) -> Box<ServerRecord> {
    Box::new(serde_json::from_value(value.clone()).unwrap())
}
