//! Tests requests with unknown fields, and measures the cost of the check.

use std::{hint::black_box, time::Instant};

use prost::Message;
use serde_json::json;

use super::*;
use crate::{
    proto::{
        delegation::{CreateDelegationRequest, Delegation, Hours},
        registry::{ActionDeclaration, ActionRiskClassification},
        runtime::{BatchEvaluateRequest, DecisionRequest, EvaluateRequest},
    },
    service::{
        KNOWN_AUTHORITY_DELEGATION_V1_CREATEDELEGATIONREQUEST as CREATE,
        KNOWN_AUTHORITY_RUNTIME_V1_BATCHEVALUATEREQUEST as BATCH,
        KNOWN_AUTHORITY_RUNTIME_V1_EVALUATEREQUEST as EVALUATE,
    },
    wire::Json,
};

/// A request of the usual size.
fn evaluate() -> EvaluateRequest {
    let context = json!({
        "amount": 1200.5, "currency": "EUR", "jurisdiction": "DE", "invoice": "2026-117",
        "payee": {"name": "ACME", "iban": "DE02120300000000202051"}, "lines": [1, 2.5, null, true],
    });
    EvaluateRequest {
        subject: "svc:agent:acme:invoice-bot".to_owned(),
        action: "payment.execute".to_owned(),
        purpose: "invoice-settlement".to_owned(),
        context: Some(Json(context.as_object().unwrap().clone())),
        delegation_id: Some("svc:del:acme:0198a3c0ffee70008000000000000001".to_owned()),
        action_declaration: Some(ActionDeclaration::default()),
        action_risk_classification: Some(ActionRiskClassification::default()),
        at_least_revision: Some(70_000),
        ..EvaluateRequest::default()
    }
}

/// The varint field 1999 with the value 1.
const STRANGE: [u8; 3] = [0xf8, 0x7c, 1];

fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    [&[number << 3 | 2, length], value].concat()
}

#[track_caller]
fn refused(known: &Known, bytes: &[u8], place: &str, what: &str) {
    let status = known.check(bytes).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let message = status.message();
    assert!(message.contains(place) && message.contains(what), "{place} {what}: {message}");
}

#[test]
fn what_this_version_knows_passes() {
    assert!(EVALUATE.check(&evaluate().encode_to_vec()).is_ok());
    assert!(EVALUATE.check(&[]).is_ok());
    let hours = Hours { days: vec!["mon".to_owned()], ..Hours::default() };
    let delegation = Delegation {
        hours: Some(hours),
        metadata: Some(Json(json!({"a": {"b": [1]}}).as_object().unwrap().clone())),
        ..Delegation::default()
    };
    let create = CreateDelegationRequest { delegation: Some(delegation) };
    assert!(CREATE.check(&create.encode_to_vec()).is_ok());
}

#[test]
fn an_unknown_field_is_named_by_its_number() {
    let known = evaluate().encode_to_vec();
    for strange in [
        &STRANGE[..],
        &[0xf9, 0x7c, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0xfa, 0x7c, 1, b'x'],
        &[0xfa, 0x7c, 0],
        &[0xfd, 0x7c, 1, 2, 3, 4],
        // A group, with and without content.
        &[0xfb, 0x7c, 0x08, 1, 0xfc, 0x7c],
        &[0xfb, 0x7c, 0xfc, 0x7c],
    ] {
        for bytes in [[&known, strange].concat(), [strange, &known].concat()] {
            assert!(EvaluateRequest::decode(&*bytes).is_ok(), "protobuf drops it: {strange:?}");
            refused(&EVALUATE, &bytes, "it has", "field 1999");
        }
    }
}

#[test]
fn so_is_one_within_a_message() {
    // The second item of a repeated message, and one message split in two parts, which prost
    // merges.
    let parts = [field(11, &[]), field(11, &STRANGE)].concat();
    refused(&EVALUATE, &parts, "`action_declaration` has", "field 1999");
    let requests = [DecisionRequest::default().encode_to_vec(), STRANGE.to_vec()];
    let batch = requests.map(|request| field(1, &request)).concat();
    assert_eq!(BatchEvaluateRequest::decode(&*batch).unwrap().requests.len(), 2);
    refused(&BATCH, &batch, "`requests` has", "field 1999");
    // hours = 16
    let hours = [&[0x82, 0x01, 3], &STRANGE[..]].concat();
    refused(&CREATE, &field(1, &hours), "`delegation.hours` has", "field 1999");
}

#[test]
fn so_is_one_within_a_free_form_member() {
    // context = 4: Struct {fields = 1: {key = 1, value = 2: Value}}.
    let of = |entry: Vec<u8>| field(4, &field(1, &entry));
    let value = |value: &[u8]| of([field(1, b"a"), field(2, value)].concat());
    let list = |item: &[u8]| value(&field(6, &field(1, item)));
    refused(&EVALUATE, &field(4, &STRANGE), "`context` has", "field 1999");
    refused(
        &EVALUATE,
        &of([field(1, b"a"), STRANGE.to_vec()].concat()),
        "`context.fields` has",
        "1999",
    );
    refused(&EVALUATE, &value(&STRANGE), "`context.fields.value` has", "1999");
    refused(&EVALUATE, &list(&STRANGE), "list_value.values` has", "1999");
    assert!(EVALUATE.check(&list(&[8, 0])).is_ok(), "null");
    refused(&EVALUATE, &list(&[8, 7]), "null_value` has", "number 7");
}

#[test]
fn nothing_is_read_beyond_what_prost_reads() {
    let mut deep = Vec::new();
    while deep.len() < 5_000 {
        let mut value = Vec::new();
        prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut value);
        prost::encoding::encode_varint(deep.len() as u64, &mut value);
        value.extend_from_slice(&deep);
        deep.clear();
        prost::encoding::encode_key(6, prost::encoding::WireType::LengthDelimited, &mut deep);
        prost::encoding::encode_varint(value.len() as u64, &mut deep);
        deep.extend(value);
    }
    for bytes in [&[0x12, 0x80][..], &[0x12, 2, b'x'], &[0x70], &[0x13], &[0x80; 11]] {
        refused(&EVALUATE, bytes, "", "is malformed");
    }
    let scanned = crate::service::KNOWN_GOOGLE_PROTOBUF_VALUE.scan(&deep, DEPTH);
    assert_eq!(scanned.unwrap_err().what, What::Malformed);
}

#[test]
#[ignore = "a measurement"]
fn it_costs_little() {
    let bytes = evaluate().encode_to_vec();
    let rounds = 1_000_000_u32;
    let measured = |work: &dyn Fn()| {
        let begun = Instant::now();
        (0..rounds).for_each(|_| work());
        begun.elapsed() / rounds
    };
    let looked = measured(&|| EVALUATE.check(black_box(&bytes)).unwrap());
    let decoded = measured(&|| drop(black_box(EvaluateRequest::decode(black_box(&*bytes)))));
    println!("{} bytes: looked at in {looked:?}, decoded in {decoded:?}", bytes.len());
}
