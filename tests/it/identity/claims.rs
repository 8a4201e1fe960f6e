//! Roles, groups and tenants at the places that the settings name.

use authority_api::identity::{
    Caller, CallerKind, ClaimPath, ClaimRules, Error, Issuer, KeySource, Role,
};
use authority_keys::Keys;
use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::{AUDIENCE, MEMBER, World};
use crate::support::issuer::TestIssuer;
use crate::support::{Members, nothing, only};

const ISS: &str = "https://id.example.org";
/// The roles in the order in which one of several counts.
const ORDER: [&str; 7] = ["owner", "admin", "legal", "approver", "auditor", "member", "viewer"];

fn path(text: &str) -> ClaimPath {
    ClaimPath::parse(text).unwrap()
}

/// Rules with the tenant in `tenant`, roles in `roles`, and a group for each role of a tenant.
fn rules() -> ClaimRules {
    let mut rules =
        ClaimRules::new(Some(path("roles")), Some(path("tenant")), Some(path("groups")));
    for role in &ORDER[1..] {
        rules.map(&format!("g-{role}"), role).unwrap();
    }
    rules
}

struct Party {
    world: World,
    issuer: TestIssuer,
}

impl Party {
    fn new(rules: ClaimRules) -> Self {
        let issuer = TestIssuer::rs256(ISS);
        let published = issuer.published.clone();
        let keys = KeySource::local(move || published.lock().1.as_str().into());
        let world = World::of(Keys::ephemeral(Clock::default()).unwrap(), |_| {
            let mut trusted = Issuer::new(ISS, vec![AUDIENCE.to_owned()], keys);
            trusted.claims = rules;
            vec![trusted]
        });
        Self { world, issuer }
    }

    async fn call(&self, claims: Value) -> Result<Caller, Error> {
        let all = json!({"aud": AUDIENCE, "sub": "user_1",
                             "exp": self.world.clock.now().timestamp() + 600})
        .and(&claims);
        self.world.call(MEMBER, &self.issuer.token(&all)).await
    }

    /// Returns the role of a caller that is a person of acme.
    async fn role(&self, claims: Value) -> Role {
        let shown = claims.to_string();
        match self.call(claims).await.unwrap().kind {
            CallerKind::Member { tenant_id, role, .. } => {
                assert_eq!(tenant_id.slug(), "acme", "{shown}");
                role
            }
            CallerKind::Owner { .. } => Role::Owner,
            other => panic!("{shown}: {other:?}"),
        }
    }
}

/// A role, groups and a tenant.
fn of(roles: &Value, groups: &Value) -> Value {
    json!({"tenant": "svc:tenant:acme", "roles": roles, "groups": groups})
}

#[tokio::test]
async fn of_several_roles_the_first_in_the_order_counts() {
    let party = Party::new(rules());
    for (place, strong) in ORDER.iter().enumerate() {
        for weak in &ORDER[place..] {
            for pair in [[strong, weak], [weak, strong]] {
                let role = party.role(of(&json!(pair), &json!([]))).await;
                assert_eq!(role.as_str(), *strong, "{pair:?}");
                if *strong != "owner" {
                    let groups = pair.map(|role| format!("g-{role}"));
                    let role = party.role(of(&json!([]), &json!(groups))).await;
                    assert_eq!(role.as_str(), *strong, "{groups:?}");
                }
            }
        }
    }
    // A role and a group together.
    assert_eq!(party.role(of(&json!("viewer"), &json!(["g-admin"]))).await, Role::Admin);
    assert_eq!(party.role(of(&json!(["legal"]), &json!(["g-viewer"]))).await, Role::Legal);
}

/// Declaring less never permits more: without one of its groups, a token has the same role or a
/// later one in the order.
#[tokio::test]
async fn leaving_a_group_never_moves_a_person_up() {
    let party = Party::new(rules());
    let groups = ["g-admin", "g-legal", "g-auditor", "g-viewer", "unknown"];
    let rank = |role: &Role| {
        let known = ORDER.iter().position(|one| *one == role.as_str());
        known.unwrap_or(ORDER.len())
    };
    for set in 0_u32..1 << groups.len() {
        let within = |left_out: Option<usize>| {
            let kept = |place: &usize| set & (1 << place) != 0 && Some(*place) != left_out;
            (0..groups.len()).filter(kept).map(|place| groups[place]).collect::<Vec<_>>()
        };
        let whole = party.role(of(&json!([]), &json!(within(None)))).await;
        for place in 0..groups.len() {
            let less = party.role(of(&json!([]), &json!(within(Some(place))))).await;
            assert!(rank(&less) >= rank(&whole), "{:?}: {whole}, {less}", within(None));
        }
    }
}

#[tokio::test]
async fn unknown_groups_give_no_role() {
    let party = Party::new(rules());
    for groups in [
        json!(null),
        json!([]),
        json!("unknown"),
        json!(["unknown", "G-ADMIN", "g-admin ", " g-admin", "g-adm", "/g-admin", "admin"]),
        json!([1, null, {"g-admin": true}, ["g-admin"]]),
        only("g-admin", true),
        json!(true),
        // A group that has the name of a role is only a group.
        json!(["owner", "admin"]),
    ] {
        let role = party.role(of(&json!(null), &groups)).await;
        assert_eq!(role, Role::Other(String::new()), "{groups}");
    }
    // A text is one group.
    assert_eq!(party.role(of(&json!(null), &json!("g-legal"))).await, Role::Legal);
}

#[tokio::test]
async fn no_group_gives_the_role_owner() {
    let mut rules = rules();
    for role in ["owner", "Admin", "", "superuser"] {
        assert!(rules.map("g", role).is_err(), "{role}");
    }
    let party = Party::new(rules);
    for groups in [json!("owner"), json!(["owner"]), json!(["g-owner", "g"])] {
        let role = party.role(of(&json!(null), &groups)).await;
        assert_eq!(role, Role::Other(String::new()), "{groups}");
    }
}

#[tokio::test]
async fn a_role_claim_has_a_text_or_a_list() {
    let party = Party::new(rules());
    for (roles, role) in [
        (json!("admin"), "admin"),
        // As in `public_metadata.role`: an unknown text is shown and gives no permission.
        (json!("clerk"), "clerk"),
        (json!("Admin"), "Admin"),
        (json!(["offline_access", "uma_authorization", "approver"]), "approver"),
        (json!(["clerk"]), ""),
        (json!([["admin"]]), ""),
        (only("admin", true), ""),
        (json!(1), ""),
        (json!(null), ""),
    ] {
        assert_eq!(party.role(of(&roles, &json!([]))).await.as_str(), role, "{roles}");
    }
    // The default places don't count besides the role claim.
    let claims = of(&json!(null), &json!([]))
        .with("public_metadata", json!({"role": "admin", "tenant_id": "svc:tenant:globex"}))
        .with("org_id", "org_globex")
        .with("o", only("id", "org_globex"));
    assert_eq!(party.role(claims).await.as_str(), "");
}

/// The managers of an organisation at Zitadel can grant a project's role to people of other
/// organisations.
#[tokio::test]
async fn a_role_that_another_organisation_granted_does_not_count() {
    let party = Party::new(rules());
    let of = |roles: Value| json!({"tenant": "org_acme", "roles": roles});
    let acme = only("org_acme", "acme.example.org");
    let globex = only("org_globex", "globex.example.org");
    for (roles, role) in [
        (only("admin", &acme), "admin"),
        (json!({"viewer": acme, "admin": globex}), "viewer"),
        (only("admin", &globex), ""),
        (only("owner", &globex), ""),
        (json!({"admin": {}}), ""),
        (only("admin", "org_acme"), ""),
        (only("admin", ["org_acme"]), ""),
        (only("clerk", &acme), ""),
    ] {
        assert_eq!(party.role(of(roles.clone())).await.as_str(), role, "{roles}");
    }
    let no_tenant = party.call(json!({"roles": {"admin": {"": "x"}}, "tenant": ""})).await;
    assert!(matches!(no_tenant, Err(Error::Forbidden(_))), "{no_tenant:?}");
}

#[tokio::test]
async fn a_tenant_claim_names_one_tenant() {
    let party = Party::new(rules());
    for tenant in [
        json!("org_acme"),
        json!("svc:tenant:acme"),
        json!(["org_acme"]),
        json!({"org_acme": {"id": "42"}}),
    ] {
        let claims = json!({"tenant": tenant, "roles": "viewer"});
        assert_eq!(party.role(claims).await, Role::Viewer, "{tenant}");
    }
    for tenant in [
        json!(null),
        json!(""),
        json!("acme"),
        json!("org_unknown"),
        json!([]),
        // It is uncertain which of them is the person's tenant.
        json!(["org_acme", "org_globex"]),
        json!({"org_acme": {}, "org_globex": {}}),
        json!([{"org_acme": 1}]),
        json!(7),
    ] {
        let claims = json!({"tenant": tenant, "roles": "viewer", "org_id": "org_acme",
            "public_metadata": {"tenant_id": "svc:tenant:acme"}});
        let answer = party.call(claims).await;
        assert!(matches!(answer, Err(Error::Forbidden(_))), "{tenant}: {answer:?}");
    }
}

#[tokio::test]
async fn clerks_organisation_is_in_either_version_of_its_tokens() {
    let party = Party::new(ClaimRules::default());
    let of = |claims: Value| json!({"public_metadata": {"role": "approver"}}).and(&claims);
    for claims in [
        only("org_id", "org_acme"),
        json!({"v": 2, "o": {"id": "org_acme", "slg": "acme", "rol": "admin", "per": "read"}}),
        json!({"org_id": "", "o": {"id": "org_acme"}}),
        json!({"org_id": "org_acme", "o": {"id": "org_globex"}}),
        json!({"org_id": "org_acme", "o": 7}),
    ] {
        assert_eq!(party.role(of(claims.clone())).await, Role::Approver, "{claims}");
    }
    for claims in [
        json!({"o": {"id": "org_unknown"}}),
        json!({"o": {"id": 7}}),
        only("o", "org_acme"),
        only("o", ["org_acme"]),
        json!({"o": {"id": ""}}),
        nothing(),
    ] {
        let answer = party.call(of(claims.clone())).await;
        assert!(matches!(answer, Err(Error::Forbidden(_))), "{claims}: {answer:?}");
    }
}

/// Entra ID leaves out the groups of people with more than 200 groups.
#[tokio::test]
async fn groups_that_are_left_out_are_not_no_groups() {
    let party = Party::new(rules());
    for claims in [
        json!({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://x"}}}),
        only("hasgroups", true),
    ] {
        let mut all = only("tenant", "svc:tenant:acme");
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let answer = party.call(all.clone()).await;
        let Err(Error::Forbidden(told)) = answer else { panic!("{claims}: {answer:?}") };
        assert!(told.contains("too many"), "{told}");
        // A role claim is unaffected.
        all["roles"] = json!(["auditor"]);
        assert_eq!(party.role(all).await, Role::Auditor, "{claims}");
    }
    let other = json!({"tenant": "svc:tenant:acme", "_claim_names": {"other": "src1"}});
    assert_eq!(party.role(other).await.as_str(), "");
}

#[tokio::test]
async fn a_claim_that_is_given_twice_is_refused_at_every_place() {
    let party = Party::new(rules());
    let usual = json!({"iss": ISS, "aud": AUDIENCE, "sub": "u", "tenant": "svc:tenant:acme",
                       "exp": party.world.clock.now().timestamp() + 600});
    let usual = usual.to_string();
    let usual = usual.trim_end_matches('}');
    for (more, is_read) in [
        (r#""roles": ["viewer"]"#, true),
        (r#""roles": ["viewer"], "roles": ["admin"]"#, false),
        (r#""sub": "v""#, false),
        (r#""a": {"b": [{"c": 1, "c": 2}]}"#, false),
    ] {
        let text = format!("{usual}, {more}}}");
        let token = party.issuer.sign_text(&text);
        let answer = party.world.call(MEMBER, &token).await;
        assert_eq!(answer.is_ok(), is_read, "{more}: {answer:?}");
    }
}
