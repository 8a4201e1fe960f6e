//! The shape of each kind of file: its fields and the forms of their values.

use authority_ids::{DecisionId, EvidenceId, RecordId};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    fault::{Fault, need, need_field},
    read::under,
};
use crate::is_hex;

/// The form of a value.
pub(super) enum Shape {
    Any,
    Text,
    /// An integer from 0.
    Count,
    Object,
    List,
    /// A text that equals an item of this list.
    Word(&'static [&'static str]),
    /// This prefix, followed by this many lower-case hexadecimal digits.
    Hex(&'static str, usize),
    /// Canonical base64 of this many bytes.
    Base64(usize),
    Maybe(&'static Shape),
    /// A field that may be missing.
    IfThere(&'static Shape),
    Each(&'static Shape),
    /// An object with exactly these fields.
    Exactly(&'static [(&'static str, Shape)]),
    /// An object with at least these fields.
    Among(&'static [(&'static str, Shape)]),
}

use Shape::{
    Among, Any, Base64, Count, Each, Exactly, Hex, IfThere, List, Maybe, Object, Text, Word,
};

pub(super) const DIGEST: Shape = Hex("sha256:", 64);
const DECISION: Shape = Hex(DecisionId::PREFIX, 64);
const EVIDENCE: Shape = Hex(EvidenceId::PREFIX, 64);

const SIGNATURE: Shape = Exactly(&[
    ("alg", Word(&["Ed25519"])),
    ("canonicalization", Word(&["RFC8785"])),
    ("kid", Text),
    ("value", Base64(64)),
]);

const RECORD: Shape = Among(&[
    ("kind", Word(&["svc.decision.record.v1"])),
    ("evaluated_at", Text),
    ("facts_digest", DIGEST),
    ("request", Among(&[("context_digest", DIGEST)])),
]);

/// A line of an export.
pub(super) const EXPORT_LINE: Shape = Exactly(&[
    (
        "decision",
        Exactly(&[
            ("decision_id", DECISION),
            ("tenant_id", Text),
            ("subject", Text),
            ("action", Text),
            ("decision", Text),
            ("reason_code", Text),
            ("evaluated_at", Text),
            ("approval_id", IfThere(&Maybe(&Text))),
            ("verify_url", Text),
            ("amount", IfThere(&Maybe(&Text))),
            ("currency", IfThere(&Maybe(&Text))),
        ]),
    ),
    ("end", IfThere(&Any)),
    ("record", RECORD),
    ("evidence_pack", Exactly(&[("record_digest", DIGEST), ("signature", SIGNATURE)])),
    ("context", IfThere(&Maybe(&Exactly(&[("salt", Base64(16)), ("value", Object)])))),
    ("next", IfThere(&Any)),
    ("count", IfThere(&Any)),
]);

/// The last line of an export.
pub(super) const EXPORT_END: Shape = Exactly(&[
    ("decision", IfThere(&Any)),
    ("end", Any),
    ("record", IfThere(&Any)),
    ("evidence_pack", IfThere(&Any)),
    ("context", IfThere(&Any)),
    ("next", IfThere(&Maybe(&Text))),
    ("count", Count),
]);

pub(super) const PACK: Shape = Exactly(&[
    ("kind", Word(&["svc.evidence.pack.v1"])),
    ("id", EVIDENCE),
    ("decision_id", DECISION),
    ("record", RECORD),
    ("record_digest", DIGEST),
    ("sealed_at", Text),
    ("issuer", Text),
    ("signature", SIGNATURE),
    ("log", Exactly(&[("origin", Text), ("index", Count), ("leaf_hash", DIGEST), ("proof", Text)])),
]);

const KEY: Shape = Exactly(&[
    ("alg", Word(&["EdDSA"])),
    ("crv", Word(&["Ed25519"])),
    ("kid", Text),
    ("kty", Word(&["OKP"])),
    ("use", Word(&["sig"])),
    ("x", Text),
]);

const FACTS: Shape = Exactly(&[
    ("approval", Maybe(&Object)),
    ("declined", IfThere(&Object)),
    ("gathered", DIGEST),
    ("open_requests", IfThere(&Object)),
    ("reality", Maybe(&DIGEST)),
    ("spent", List),
    ("zones", IfThere(&List)),
]);

pub(super) const BUNDLE: Shape = Exactly(&[
    ("kind", Text),
    ("pack", PACK),
    ("context", Exactly(&[("salt", Base64(16)), ("value", Object)])),
    ("facts", Exactly(&[("salt", Base64(16)), ("value", FACTS)])),
    ("blobs", Each(&Object)),
    ("keys", Each(&KEY)),
    ("log_key", Text),
    ("bundle_digest", DIGEST),
]);

pub(super) const GATHERED: Shape = Among(&[
    ("policies", Each(&Among(&[("sha256", Hex("", 64))]))),
    ("observing", IfThere(&Each(&Among(&[("sha256", Hex("", 64))])))),
    ("schemas", IfThere(&Each(&Exactly(&[("sha256", Hex("", 64))])))),
]);

const POLICY: Shape = Exactly(&[("id", Text), ("version", Count), ("sha256", DIGEST)]);

pub(super) const PROOF: Shape = Exactly(&[
    ("kind", Text),
    ("id", Hex(RecordId::REPLAY, 32)),
    ("evidence_id", EVIDENCE),
    ("decision_id", DECISION),
    ("mode", Word(&["historical_state_snapshot", "current_state", "policy_pin"])),
    ("semantics", Text),
    ("policy", Maybe(&POLICY)),
    ("result", Word(&["match", "mismatch", "indeterminate"])),
    ("recomputed_decision_id", Maybe(&DECISION)),
    ("diff", Each(&Exactly(&[("member", Text), ("sealed", Any), ("recomputed", Any)]))),
    ("detail", Maybe(&Text)),
    ("replayed_at", Text),
    ("issuer", Text),
    ("signature", SIGNATURE),
]);

const OBJECT: Shape = Exactly(&[
    ("bytes", Count),
    ("content", Word(&["decisions", "index", "versions", "changes"])),
    ("entries", Count),
    ("first_id", Maybe(&DECISION)),
    ("last_id", Maybe(&DECISION)),
    ("name", Text),
    ("part", Count),
    ("sha256", DIGEST),
]);

pub(super) const MANIFEST: Shape = Exactly(&[
    ("archived_at", Text),
    ("changes", Count),
    ("checkpoint", Maybe(&Text)),
    ("decisions", Count),
    ("first_id", Maybe(&DECISION)),
    ("issuer", Text),
    ("key", KEY),
    ("kind", Text),
    ("last_id", Maybe(&DECISION)),
    ("month", Text),
    ("objects", Each(&OBJECT)),
    ("signature", SIGNATURE),
    ("tenant_id", Text),
    ("versions", Count),
]);

/// Checks a value against a shape.
///
/// # Errors
/// The first field with the wrong shape.
pub(super) fn fit(value: &Value, shape: &Shape, path: &str) -> Result<(), Fault> {
    let text = |holds: &dyn Fn(&str) -> bool| value.as_str().is_some_and(holds);
    match shape {
        Any => Ok(()),
        Text => need(value.is_string(), path, "must be text"),
        Count => need(value.is_u64(), path, "must be an integer from 0"),
        Object => need(value.is_object(), path, "must be an object"),
        List => need(value.is_array(), path, "must be an array"),
        Word(words) => {
            let holds = text(&|text| words.contains(&text));
            need(holds, path, &format!("must be {}", words.join(" or ")))
        }
        Hex(prefix, digits) => {
            let holds =
                text(&|text| text.strip_prefix(prefix).is_some_and(|hex| is_hex(hex, *digits)));
            need(holds, path, &format!("must be `{prefix}` and {digits} lower-case hex digits"))
        }
        Base64(bytes) => {
            // `STANDARD` refuses text without padding or with nonzero trailing bits.
            let holds = text(&|text| STANDARD.decode(text).is_ok_and(|read| read.len() == *bytes));
            need(holds, path, &format!("must be canonical base64 of {bytes} bytes"))
        }
        Maybe(inner) if value.is_null() => {
            let _ = inner;
            Ok(())
        }
        Maybe(inner) | IfThere(inner) => fit(value, inner, path),
        Each(inner) => {
            need(value.is_array(), path, "must be an array")?;
            let mut items = value.as_array().into_iter().flatten().enumerate();
            items.try_for_each(|(place, item)| fit(item, inner, &format!("{path}[{place}]")))
        }
        Exactly(members) => {
            need(value.is_object(), path, "must be an object")?;
            let names = value.as_object().into_iter().flat_map(serde_json::Map::keys);
            let mut unknown: Vec<&String> =
                names.filter(|name| members.iter().all(|(known, _)| known != name)).collect();
            unknown.sort();
            match unknown.first() {
                Some(name) => need_field(false, &under(path, name), "is unknown"),
                None => fit(value, &Among(members), path),
            }
        }
        Among(members) => {
            need(value.is_object(), path, "must be an object")?;
            members.iter().try_for_each(|(name, inner)| {
                let below = under(path, name);
                let member = value.get(name);
                if member.is_none() && matches!(inner, IfThere(_)) {
                    return Ok(());
                }
                need_field(member.is_some(), &below, "is missing")?;
                fit(member.unwrap_or(&Value::Null), inner, &below)
            })
        }
    }
}
