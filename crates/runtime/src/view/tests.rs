//! Tests that each type of caller sees the fields that `crates/model/tests/visibility.txt` lists. If a
//! record's own operation refuses people, they see only that the record exists.

use std::{collections::BTreeMap, sync::Arc};

use authority_api::identity::{Role, SecretCode};
use authority_ids::{ApiKeyId, TenantId};

use super::*;

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:invoice-bot";
const OTHER: &str = "svc:agent:acme:support-bot";

/// The columns of each table, with the callers that see them.
fn tables() -> BTreeMap<&'static str, Vec<(&'static str, Vec<&'static str>)>> {
    let mut tables = BTreeMap::<_, Vec<_>>::new();
    for line in include_str!("../../../model/tests/visibility.txt").lines() {
        let (path, callers) = line.split_once(' ').unwrap();
        let (table, column) = path.split_once('.').unwrap();
        tables.entry(table).or_default().push((column, callers.split(' ').collect()));
    }
    tables
}

/// Returns the roles that read a record of this table at `/api/v1/app`. `None` if such records have no
/// path there.
fn readers(table: &str) -> Option<&'static [&'static str]> {
    Some(match table {
        "approvals"
        | "delegations"
        | "policies"
        | "principals"
        | "reality_anchors"
        | "reality_coupling_checks"
        | "reality_snapshots"
        | "resources"
        | "stable_drift_events"
        | "teams" => &["admin", "auditor", "approver", "legal"],
        "external_apps" | "purposes" | "quarantines" | "stop_signals" | "tools" => {
            &["admin", "auditor"]
        }
        "api_keys" | "webhook_endpoints" => &["admin"],
        _ => return None,
    })
}

fn member(role: &str) -> Caller {
    let kind = CallerKind::Member {
        tenant_id: TenantId::parse(TENANT).unwrap(),
        role: Role::from(role),
        issuer: "https://idp.acme.example".to_owned(),
        subject: "nora".to_owned(),
        email: None,
    };
    Caller { kind, ..Caller::anonymous() }
}

fn key(principals: &[&str]) -> Caller {
    let kind = CallerKind::Key {
        tenant_id: TenantId::parse(TENANT).unwrap(),
        key_id: ApiKeyId::parse("svc:api_key:k1").unwrap(),
        scopes: Arc::from(["runtime:read".to_owned()]),
        principal_ids: principals.iter().map(|id| (*id).into()).collect(),
        secret: SecretCode([0; 32]),
        peer: None,
    };
    Caller { kind, ..Caller::anonymous() }
}

fn owner() -> Caller {
    let (issuer, subject) = ("https://idp.example".to_owned(), "root".to_owned());
    let kind = CallerKind::Owner { issuer, subject, email: None };
    Caller { kind, ..Caller::anonymous() }
}

/// Returns a record with every listed column and an unlisted one. It is about [`AGENT`].
fn record(columns: &[(&str, Vec<&str>)], class: &str) -> Map<String, Value> {
    let value = |column: &str| if column == "principal_class" { class } else { AGENT };
    let listed = columns.iter().map(|(column, _)| *column);
    listed.chain(["new_column"]).map(|column| (column.to_owned(), value(column).into())).collect()
}

#[test]
fn each_caller_sees_the_listed_fields() {
    let callers = [
        ("viewer", member("viewer")),
        ("approver", member("approver")),
        ("legal", member("legal")),
        ("auditor", member("auditor")),
        ("admin", member("admin")),
        // No tenant can give its users this role: they are not the installation's owner.
        ("owner of a tenant", member("owner")),
        ("key", key(&[])),
        ("bound key", key(&[AGENT])),
    ];
    let tables = tables();
    assert!(tables.len() > 30, "{}", tables.len());
    for (table, columns) in &tables {
        for class in ["human", "agent"] {
            let stored = record(columns, class);
            assert_eq!(of(table, stored.clone(), &owner()), Some(stored.clone()), "{table}");
            for (name, caller) in &callers {
                let seen = of(table, stored.clone(), caller).unwrap();
                let seen: Vec<_> = seen.keys().map(String::as_str).collect();
                let is_listed = |words: &[&str]| {
                    words.contains(&"tenant")
                        || words.contains(&"tenant_unless_human") && class != "human"
                        || words.contains(name)
                };
                // API keys have no roles.
                let is_key = matches!(caller.kind, CallerKind::Key { .. });
                let opens = |readers: &[&str]| is_key || readers.contains(name);
                let is_open = readers(table).is_none_or(opens);
                let is_shown =
                    |column: &str| is_open || ["id", "state", "status"].contains(&column);
                let wanted =
                    columns.iter().filter(|(column, words)| is_listed(words) && is_shown(column));
                let wanted: Vec<_> = wanted.map(|(column, _)| *column).collect();
                assert_eq!(seen, wanted, "{table} by {name}, {class}");
            }
        }
    }
}

#[test]
fn a_key_bound_to_other_principals_sees_no_record_about_a_principal() {
    let mut about = 0;
    for (table, columns) in &tables() {
        let is_about = columns.iter().any(|(_, words)| words.contains(&"about"));
        about += usize::from(is_about);
        let seen = of(table, record(columns, "agent"), &key(&[OTHER]));
        assert_eq!(seen.is_none(), is_about, "{table}");
    }
    assert!(about > 8, "{about}");
}

#[test]
fn only_the_id_and_state_of_an_unknown_table_are_visible() {
    let stored = record(&[("id", vec![]), ("state", vec![]), ("name", vec![])], "agent");
    let seen = of("unknown", stored, &member("admin")).unwrap();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["id", "state"]);
}
