//! Tests with parts of real decisions: writing, reading back, and detecting damage.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, fs};

use authority_archive::format::{
    entry::{ENTRY_KIND, Entry},
    month::Month,
    part::{Part, PartWriter, Read},
};
use authority_ids::{DecisionId, DecisionRef, TenantRef};
use serde_json::{Value, value::RawValue};

/// Returns the tenant and month with the most bundles in `tests/golden`, and these bundles by id.
fn golden() -> (TenantRef, Month, BTreeMap<DecisionRef, String>) {
    let mut found: BTreeMap<(TenantRef, Month), BTreeMap<DecisionRef, String>> = BTreeMap::new();
    for file in fs::read_dir("../../tests/golden").unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let Ok(bundle) = serde_json::from_str::<Value>(&text) else { continue };
        let Some(id) = bundle["pack"]["decision_id"].as_str() else { continue };
        let tenant = bundle["pack"]["record"]["tenant_id"].as_str().unwrap().into();
        let month = Month::of_decision(&DecisionId::parse(id).unwrap()).unwrap();
        found.entry((tenant, month)).or_default().insert(id.into(), text.trim().to_owned());
    }
    let most = found.into_iter().max_by_key(|(_, bundles)| bundles.len()).unwrap();
    let ((tenant, month), bundles) = most;
    assert!(bundles.len() > 3);
    (tenant, month, bundles)
}

fn line(id: &DecisionRef, bundle: &str) -> Vec<u8> {
    let bundle: &RawValue = serde_json::from_str(bundle).unwrap();
    let entry = Entry {
        approval_id: None,
        bundle: Some(bundle),
        decision_id: id.clone(),
        kind: ENTRY_KIND.to_owned(),
        pack: None,
        remains: None,
        replays: Vec::new(),
        report: None,
    };
    entry.write().unwrap()
}

fn part(tenant: &TenantRef, bundles: &BTreeMap<DecisionRef, String>) -> Part {
    let mut writer = PartWriter::new(tenant.clone(), 1000).unwrap();
    bundles.iter().for_each(|(id, bundle)| writer.add(&line(id, bundle)).unwrap());
    assert_eq!(writer.room(), 1000 - bundles.len());
    writer.finish(1).unwrap().unwrap()
}

fn read<'p>(tenant_id: &'p TenantRef, month: Month, part: &'p Part) -> Read<'p> {
    Read {
        tenant_id,
        month,
        name: &part.decisions.name,
        decisions: &part.decisions.bytes,
        index: part.index.bytes.clone().into(),
    }
}

#[test]
fn a_part_is_read_back_bundle_by_bundle() {
    let (tenant, month, bundles) = golden();
    let part = part(&tenant, &bundles);
    let mut found = BTreeMap::new();
    let rows = read(&tenant, month, &part).check(|row, line| {
        let entry = Entry::read(line)?;
        // The entry contains the exact bytes of the golden bundle.
        found.insert(entry.decision_id.clone(), entry.bundle.unwrap().get().to_owned());
        let record: Value = serde_json::from_str(entry.summary()?.record).unwrap();
        assert_eq!(record["request"]["subject"], *row.about.subject);
        assert_eq!(row.about.reason_code, record["verdict"]["reason_code"]);
        let pack: Value = serde_json::from_str(entry.pack_text()?).unwrap();
        assert_eq!(pack["decision_id"], *entry.decision_id);
        Ok(())
    });
    assert_eq!(rows.unwrap(), part.rows);
    assert_eq!(found, bundles);
}

#[test]
fn any_other_byte_index_tenant_or_month_is_an_error() {
    let (tenant, month, bundles) = golden();
    let whole = part(&tenant, &bundles);
    let nothing = |_: &_, _: &[u8]| Ok(());
    assert!(read(&"svc:tenant:other".into(), month, &whole).check(nothing).is_err());
    assert!(read(&tenant, month.next(), &whole).check(nothing).is_err());
    let fewer: BTreeMap<_, _> = bundles.clone().into_iter().skip(1).collect();
    let other = part(&tenant, &fewer);
    let mixed = Read { index: other.index.bytes.clone().into(), ..read(&tenant, month, &whole) };
    assert!(mixed.check(nothing).is_err(), "the index of another part");
    let step = whole.decisions.bytes.len() / 97 + 1;
    for at in (0..whole.decisions.bytes.len()).step_by(step) {
        let mut damaged = whole.decisions.bytes.clone();
        damaged[at] ^= 1;
        let read = Read { decisions: &damaged, ..read(&tenant, month, &whole) };
        assert!(read.check(nothing).is_err(), "byte {at}");
    }
    let mut longer = whole.decisions.bytes.clone();
    longer.extend(&whole.decisions.bytes);
    let read = Read { decisions: &longer, ..read(&tenant, month, &whole) };
    assert!(read.check(nothing).is_err(), "more than the index names");
}

#[test]
fn an_entry_has_one_pack_and_no_unknown_members() {
    let (_, _, bundles) = golden();
    let (id, bundle) = bundles.iter().next().unwrap();
    let text = String::from_utf8(line(id, bundle)).unwrap();
    assert!(Entry::read(text.as_bytes()).is_ok());
    for bad in [
        text.replace("svc.archive.entry.v1", "svc.archive.entry.v2"),
        text.replace("\"replays\":[]", "\"replays\":[],\"more\":1"),
        text.replacen("\"bundle\":", "\"pack\":{},\"bundle\":", 1),
        text.replacen(&format!("\"bundle\":{bundle},"), "", 1),
    ] {
        assert_ne!(bad, text);
        assert!(Entry::read(bad.as_bytes()).is_err(), "{bad}");
    }
}
