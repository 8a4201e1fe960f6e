//! Tests the forms of ids: the parser accepts every id that the service creates, and rejects other
//! texts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use authority_ids::{
    ApiKey, ApiKeyId, Approval, ApprovalId, Decision, DecisionId, Delegation, DelegationId, Entity,
    EntityId, Evidence, EvidenceId, Id, IdParts, Kind, Principal, PrincipalId, PrincipalRef,
    Record, RecordId, Tenant, TenantId, Unique,
};
use proptest::{prelude::*, string::string_regex};

const HASH: &str = "0193a1b2c3d4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const UNIQUE: &str = "0193a1b2c3d47e8f9a0b1c2d3e4f5a6b";

fn unique() -> Unique {
    Unique::from(0x0193_a1b2_c3d4_7e8f_9a0b_1c2d_3e4f_5a6b)
}

/// Generates texts in the forms of the kind.
fn texts<K: Kind>(part: &'static str) -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(string_regex(part).unwrap(), 3);
    (proptest::sample::select(K::FORMS), parts).prop_map(|(form, parts)| {
        let mut parts = parts.into_iter();
        let text = |wanted: &str| {
            if wanted.starts_with('<') { parts.next().unwrap() } else { wanted.to_owned() }
        };
        form.split(':').map(text).collect::<Vec<_>>().join(":")
    })
}

fn reads<K: Kind>(text: &str) {
    let id = Id::<K>::parse(text).unwrap();
    assert_eq!((id.as_str(), id.to_string(), String::from(&id)), (text, text.into(), text.into()));
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, format!("\"{text}\""));
    assert!(serde_json::from_str::<Id<K>>(&json).unwrap() == id);
    assert_eq!(HashMap::from([(id, 1)]).get(text), Some(&1));
}

#[test]
fn a_reference_is_its_text_in_any_form() {
    for text in ["svc:agent:acme:bot", "nowhere", ""] {
        let named = PrincipalRef::from(text);
        assert_eq!((named.as_str(), String::from(&named)), (text, text.to_owned()));
        let json = serde_json::to_string(&named).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<PrincipalRef>(&json).unwrap(), named);
        assert_eq!(HashMap::from([(named, 1)]).get(text), Some(&1));
    }
    let id = PrincipalId::parse("svc:agent:acme:bot").unwrap();
    let (named, other) = (PrincipalRef::from(&id), PrincipalRef::from("svc:agent:acme:other"));
    assert!(named == id && other != id);
}

const WORD: &str = "[A-Za-z0-9._-]{1,40}";
const HEX: &str = "[0-9a-f]{64}";

proptest! {
    #[test]
    fn what_has_a_form_is_read_and_written_as_it_is(
        tenant in texts::<Tenant>(WORD),
        principal in texts::<Principal>(WORD),
        entity in texts::<Entity>(WORD),
        delegation in texts::<Delegation>(WORD),
        decision in texts::<Decision>(HEX),
        evidence in texts::<Evidence>(HEX),
        approval in texts::<Approval>(WORD),
        api_key in texts::<ApiKey>(WORD),
        record in texts::<Record>(WORD),
    ) {
        reads::<Tenant>(&tenant);
        reads::<Principal>(&principal);
        reads::<Entity>(&entity);
        reads::<Delegation>(&delegation);
        reads::<Decision>(&decision);
        reads::<Evidence>(&evidence);
        reads::<Approval>(&approval);
        reads::<ApiKey>(&api_key);
        reads::<Record>(&record);
    }

    #[test]
    fn ids_sort_as_their_texts(one in texts::<Tenant>(WORD), other in texts::<Tenant>(WORD)) {
        let ids = (TenantId::parse(&one).unwrap(), TenantId::parse(&other).unwrap());
        prop_assert_eq!(ids.0.cmp(&ids.1), one.cmp(&other));
        prop_assert_eq!(ids.0 == ids.1, one == other);
    }

    #[test]
    fn a_principal_is_of_the_tenant_in_its_text(text in "svc(:[a-z]{0,6}){0,5}") {
        if let Ok(principal) = PrincipalId::parse(&text) {
            let tenant = TenantId::of(&principal);
            prop_assert_eq!(TenantId::parse(tenant.as_str()).unwrap(), tenant.clone());
            prop_assert_eq!(IdParts::of(&text).unwrap().tenant_slug, Some(tenant.slug()));
        }
    }

    #[test]
    fn no_text_makes_reading_panic(text in "(svc:)?\\PC{0,80}") {
        let _ = (TenantId::check(&text), PrincipalId::check(&text), DecisionId::check(&text));
        let _ = (IdParts::of(&text), TenantId::complete(&text), ApiKeyId::check(&text));
    }
}

#[test]
fn bad_forms_are_refused() {
    for text in [
        "",
        "acme",
        "svc:tenant",
        "svc:tenant:",
        "svc:tenant:acme:",
        "svc:tenant:acme:x",
        "svc:tenant:a cme",
        "svc:tenant:a/cme",
        "svc:tenant:ac\u{e9}me",
        "svc:tenant:acme\0",
        "svc:tenant:acme\n",
        " svc:tenant:acme",
        "SVC:tenant:acme",
        "svc:Tenant:acme",
        "svc:agent:acme",
        "svc:<slug>:acme",
    ] {
        assert!(TenantId::parse(text).is_err(), "{text:?}");
    }
    for text in [
        "svc:agent:t:",
        "svc:agent::a",
        "svc:agent:t:a:b",
        "svc:ent:t:team:x",
        "svc:ent:t:principal",
        "svc:ent:t:principal:",
        "svc:del:t:a",
        "svc:tenant:t",
    ] {
        assert!(PrincipalId::parse(text).is_err(), "{text:?}");
    }
    let upper = HASH.to_uppercase();
    for hash in ["", "0", &HASH[1..], &upper, &format!("{HASH}0"), &format!("{HASH}:0")] {
        assert!(DecisionId::parse(&format!("svc:decision:{hash}")).is_err(), "{hash}");
        assert!(EvidenceId::parse(&format!("svc:evidence:{hash}")).is_err(), "{hash}");
    }
    assert!(DecisionId::parse(&format!("svc:evidence:{HASH}")).is_err());
    assert!(DelegationId::parse("svc:del:acme").is_err());
    assert!(ApprovalId::parse("svc:api_key:0").is_err());
    for slug in ["", "a:b", "a b", "svc:tenant:acme", "../x"] {
        assert!(TenantId::from_slug(slug).is_err(), "{slug}");
        assert_eq!(TenantId::complete(slug), slug);
        assert!(PrincipalId::agent(slug, "bot").is_err(), "{slug}");
        assert!(EntityId::new(slug, "tool", unique()).is_err(), "{slug}");
    }
}

#[test]
fn an_error_says_the_forms() {
    let text = |why: authority_ids::InvalidId| why.to_string();
    assert_eq!(TenantId::parse("acme").map_err(text).unwrap_err(), "must be `svc:tenant:<slug>`");
    assert_eq!(
        PrincipalId::parse("acme").map_err(text).unwrap_err(),
        "must be `svc:agent:<tenant>:<name>` or `svc:ent:<tenant>:principal:<id>`",
    );
    let json = serde_json::from_str::<TenantId>("\"acme\"").unwrap_err().to_string();
    assert!(json.starts_with("`acme` must be `svc:tenant:<slug>`"), "{json}");
}

#[test]
fn new_ids_have_their_forms() {
    let made = [
        (TenantId::from_slug("acme").unwrap().into(), "svc:tenant:acme".to_owned()),
        (TenantId::complete("acme").into(), "svc:tenant:acme".to_owned()),
        (TenantId::complete("svc:tenant:acme").into(), "svc:tenant:acme".to_owned()),
        (PrincipalId::agent("acme", "bot").unwrap().into(), "svc:agent:acme:bot".to_owned()),
        (
            PrincipalId::new("acme", unique()).unwrap().into(),
            format!("svc:ent:acme:principal:{UNIQUE}"),
        ),
        (
            EntityId::new("acme", "tool", unique()).unwrap().into(),
            format!("svc:ent:acme:tool:{UNIQUE}"),
        ),
        (DelegationId::new("acme", unique()).unwrap().into(), format!("svc:del:acme:{UNIQUE}")),
        (ApprovalId::new(unique()).into(), format!("svc:approval:{UNIQUE}")),
        (ApiKeyId::new(unique()).into(), format!("svc:api_key:{UNIQUE}")),
        (RecordId::new("replay", unique()).into(), format!("svc:replay:{UNIQUE}")),
        (Unique::from(1).to_string(), "00000000000000000000000000000001".to_owned()),
    ];
    for (made, expected) in made {
        assert_eq!(made, expected);
    }
    ApprovalId::parse(ApprovalId::ASSUMED).unwrap();
    assert_eq!(ApiKeyId::new(unique()).public_id(), UNIQUE);
    let agent = PrincipalId::agent("acme", "bot").unwrap();
    assert_eq!(TenantId::of(&agent), TenantId::from_slug("acme").unwrap());
    let other = PrincipalId::new("acme", unique()).unwrap();
    assert_eq!(TenantId::of(&other).slug(), "acme");
}

#[test]
fn a_decision_is_named_by_its_time_and_its_record() {
    let id = DecisionId::new(0x0193_a1b2_c3d4, &[0xaa; 32]);
    assert_eq!(id.as_str(), format!("svc:decision:{HASH}"));
    assert_eq!(DecisionId::parse(id.as_str()), Ok(id.clone()));
    assert_eq!(DecisionId::first(0x0193_a1b2_c3d4), "svc:decision:0193a1b2c3d4");
    assert_eq!(DecisionId::first(0), "svc:decision:000000000000");
    let evidence = EvidenceId::of(&id);
    assert_eq!(evidence.as_str(), format!("svc:evidence:{HASH}"));
    assert_eq!(evidence.decision(), id);
}

#[test]
fn any_id_says_its_kind_and_its_tenant() {
    let parts = |kind, tenant_slug| Some(IdParts { kind, tenant_slug });
    for (id, expected) in [
        ("svc:tenant:acme", parts("tenant", Some("acme"))),
        ("svc:agent:acme:bot", parts("agent", Some("acme"))),
        ("svc:agent:acme", parts("agent", Some("acme"))),
        ("svc:del:acme:1", parts("delegation", Some("acme"))),
        ("svc:ent:acme:tool:1", parts("tool", Some("acme"))),
        ("svc:ent:acme", parts("", Some("acme"))),
        ("svc:ent:", parts("", Some(""))),
        ("svc:approval:1", parts("approval", None)),
        ("svc:approval", None),
        ("ticket-7", None),
        ("", None),
    ] {
        assert_eq!(IdParts::of(id), expected, "{id}");
    }
    for (id, kind, expected) in [
        ("svc:agent:acme:a", "agent", true),
        ("svc:ent:acme:principal:1", "agent", false),
        ("svc:del:acme:1", "delegation", true),
        ("svc:approval:1", "approval", true),
        ("agent", "agent", false),
    ] {
        assert_eq!(IdParts::is(id, kind), expected, "{id}");
    }
    assert!(IdParts::begins("svc:x") && !IdParts::begins("svc") && !IdParts::begins("a svc:x"));
    assert_eq!(IdParts::id_in("approval:svc:approval:1"), Some("svc:approval:1"));
    assert_eq!(IdParts::id_in("ticket:7"), None);
}
