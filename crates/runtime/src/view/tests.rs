//! Tests that each column of each table is visible to a role or listed here.

use super::*;

/// Columns that only the installation's owner can read.
const OWNERS: [(&str, &[&str]); 6] = [
    ("tenants", &["legal_hold"]),
    ("models", &["warnings"]),
    ("tools", &["warnings"]),
    ("domains", &["verification_token"]),
    (
        "webhook_endpoints",
        &["person_subject", "person_email", "secret", "previous_secret", "sealed_headers"],
    ),
    (
        "api_keys",
        &[
            "secret_code",
            "previous_code",
            "previous_until",
            "rotated_by",
            "people",
            "people_emails",
        ],
    ),
];

#[test]
fn each_column_of_a_shown_record_is_listed_or_named_as_the_owners() {
    let schema = include_str!("../../../model/src/schema.rs");
    let mut seen = 0;
    for table in schema.split("diesel::table! {").skip(1) {
        let mut lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
        let name = lines.next().and_then(|line| line.split(' ').next()).unwrap_or_default();
        let Some(view) = view(name) else { continue };
        seen += 1;
        let owners = OWNERS.iter().find(|(table, _)| *table == name).map_or(&[][..], |row| row.1);
        let lists = [&ALWAYS[..], &TIMES, &KEPT, view.all, view.kept, owners];
        for line in lines {
            let Some((column, _)) = line.split_once(" -> ") else { continue };
            assert!(lists.iter().any(|list| list.contains(&column)), "{name}.{column}");
        }
    }
    assert!(seen > 20, "{seen}");
}
