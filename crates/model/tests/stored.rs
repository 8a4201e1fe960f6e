//! Checks that the JSON form of stored and digested messages does not change.
//!
//! `stored.json` has rows as they are written: for each message, a row with all fields and a row
//! without any field. `script/check` also has the rows of the first release read.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, env, fmt::Debug, fs};

use authority_model::{
    proto::{
        approval::{
            ApprovalAct, ApprovalAuthority, ApprovalPolicy, ApprovalReality, Asker, DriftedAnchor,
        },
        delegation::{AmountLimit, Delegation, Hours, UseLimit},
        events::QuietHours,
        registry::{
            ActionDeclaration, ActionRiskClassification, Gate, LegalHold, MessageDefaults,
            Retention,
        },
        states::{LibraryMachine, StateEvent, StateRule},
    },
    wire::Time,
};
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_value, json, to_value};

/// Removes members that the row does not have, at any depth.
fn narrow(written: &mut Value, row: &Value) {
    match (written, row) {
        (Value::Object(written), Value::Object(row)) => {
            written.retain(|member, _| row.contains_key(member));
            written.iter_mut().for_each(|(member, value)| narrow(value, &row[member]));
        }
        (Value::Array(written), Value::Array(row)) => {
            written.iter_mut().zip(row).for_each(|(value, row)| narrow(value, row));
        }
        _ => {}
    }
}

/// The rows by the message's full name.
struct Rows {
    rows: BTreeMap<String, Vec<Value>>,
    /// Whether each row is written with the same members. Later releases add members.
    complete: bool,
}

impl Rows {
    /// Checks that each row can be read, survives protobuf, and is written with the same values.
    #[track_caller]
    fn check<M>(&mut self, name: &str)
    where
        M: Message + Default + PartialEq + Debug + Serialize + DeserializeOwned,
    {
        let rows = self.rows.remove(name).unwrap();
        for row in &rows {
            let read: M = from_value(row.clone()).unwrap();
            assert_eq!(M::decode(&*read.encode_to_vec()).unwrap(), read, "{name}");
            let mut written = to_value(&read).unwrap();
            if !self.complete {
                narrow(&mut written, row);
            }
            assert_eq!(written, *row, "{name}");
        }
        let empty: M = from_value(rows[1].clone()).unwrap();
        assert_eq!(empty, M::default(), "{name}");
    }
}

#[track_caller]
fn check_rows(text: &str, complete: bool) {
    let mut rows = Rows { rows: serde_json::from_str(text).unwrap(), complete };
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
    rows.check::<QuietHours>("authority.events.v1.QuietHours");
    rows.check::<ActionDeclaration>("authority.registry.v1.ActionDeclaration");
    rows.check::<ActionRiskClassification>("authority.registry.v1.ActionRiskClassification");
    rows.check::<Gate>("authority.registry.v1.Gate");
    rows.check::<LegalHold>("authority.registry.v1.LegalHold");
    rows.check::<MessageDefaults>("authority.registry.v1.MessageDefaults");
    rows.check::<Retention>("authority.registry.v1.Retention");
    rows.check::<LibraryMachine>("authority.states.v1.LibraryMachine");
    rows.check::<StateEvent>("authority.states.v1.StateEvent");
    rows.check::<StateRule>("authority.states.v1.StateRule");
    assert!(rows.rows.is_empty(), "{:?}", rows.rows.keys());
}

#[test]
fn rows_are_read_and_written_as_ever() {
    check_rows(include_str!("stored.json"), true);
}

/// Before the first release, these are the present rows.
#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
fn rows_of_the_first_release_are_read_and_keep_their_values() {
    let released =
        env::var_os("AUTHORITY_RELEASED_ROWS").map(|path| fs::read_to_string(path).unwrap());
    check_rows(released.as_deref().unwrap_or(include_str!("stored.json")), false);
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
