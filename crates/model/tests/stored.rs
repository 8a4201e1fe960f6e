//! Checks that the JSON form of stored and digested messages does not change.
//!
//! `stored.json` has rows as they were first written: for each message, a row with all fields and a
//! row without any field.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, fmt::Debug};

use authority_model::{
    proto::{
        approval::{
            ApprovalAct, ApprovalAuthority, ApprovalPolicy, ApprovalReality, Asker, DriftedAnchor,
        },
        delegation::{AmountLimit, Delegation, Hours, UseLimit},
        registry::{ActionDeclaration, ActionRiskClassification, Gate, LegalHold, Retention},
        states::{LibraryMachine, StateEvent, StateRule},
    },
    wire::Time,
};
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_value, json, to_value};

/// The rows by the message's full name.
struct Rows(BTreeMap<String, Vec<Value>>);

impl Rows {
    /// Checks that each row can be read, survives protobuf, and is written unchanged.
    #[track_caller]
    fn check<M>(&mut self, name: &str)
    where
        M: Message + Default + PartialEq + Debug + Serialize + DeserializeOwned,
    {
        let rows = self.0.remove(name).unwrap();
        for row in &rows {
            let read: M = from_value(row.clone()).unwrap();
            assert_eq!(M::decode(&*read.encode_to_vec()).unwrap(), read, "{name}");
            assert_eq!(to_value(&read).unwrap(), *row, "{name}");
        }
        let empty: M = from_value(rows[1].clone()).unwrap();
        assert_eq!(empty, M::default(), "{name}");
    }
}

#[test]
fn rows_are_read_and_written_as_ever() {
    let mut rows = Rows(serde_json::from_str(include_str!("stored.json")).unwrap());
    rows.check::<ApprovalAct>("authority.approval.v1.ApprovalAct");
    rows.check::<ApprovalAuthority>("authority.approval.v1.ApprovalAuthority");
    rows.check::<ApprovalPolicy>("authority.approval.v1.ApprovalPolicy");
    rows.check::<ApprovalReality>("authority.approval.v1.ApprovalReality");
    rows.check::<DriftedAnchor>("authority.approval.v1.DriftedAnchor");
    rows.check::<Asker>("authority.approval.v1.Asker");
    rows.check::<AmountLimit>("authority.delegation.v1.AmountLimit");
    rows.check::<Delegation>("authority.delegation.v1.Delegation");
    rows.check::<Hours>("authority.delegation.v1.Hours");
    rows.check::<UseLimit>("authority.delegation.v1.UseLimit");
    rows.check::<ActionDeclaration>("authority.registry.v1.ActionDeclaration");
    rows.check::<ActionRiskClassification>("authority.registry.v1.ActionRiskClassification");
    rows.check::<Gate>("authority.registry.v1.Gate");
    rows.check::<LegalHold>("authority.registry.v1.LegalHold");
    rows.check::<Retention>("authority.registry.v1.Retention");
    rows.check::<LibraryMachine>("authority.states.v1.LibraryMachine");
    rows.check::<StateEvent>("authority.states.v1.StateEvent");
    rows.check::<StateRule>("authority.states.v1.StateRule");
    assert!(rows.0.is_empty(), "{:?}", rows.0.keys());
}

#[test]
fn an_absent_member_is_empty_and_another_one_fails() {
    let limit = UseLimit { count: 3, window_seconds: 0 };
    assert_eq!(from_value::<UseLimit>(json!({"count": 3})).unwrap(), limit);
    for row in [
        json!({"count": 3, "window": 60}),
        json!({"count": "3"}),
        json!({"count": 3.5}),
        json!({"count": i64::MAX}),
        json!(null),
    ] {
        assert!(from_value::<UseLimit>(row.clone()).is_err(), "{row}");
    }
}

#[test]
fn a_time_is_a_text_of_rfc_3339() {
    let time: Time = from_value(json!("2026-03-04T06:06:07.000089+01:00")).unwrap();
    assert_eq!(to_value(time).unwrap(), json!("2026-03-04T05:06:07.000089Z"));
    for text in ["", "2026-03-04", "2026-02-30T00:00:00Z", "0000-12-31T23:59:59Z"] {
        assert!(from_value::<Time>(json!(text)).is_err(), "{text}");
    }
    let never = Time::decode(&*prost_types::Timestamp { seconds: 0, nanos: -1 }.encode_to_vec());
    assert!(to_value(never.unwrap()).is_err());
}
