//! The recipes of docs/operations/sign-in.md: with the settings of each recipe, a token in the form of
//! the provider has the role and the tenant that the page describes.

use std::{fs, path::Path};

use authority_config::{Config, Sources};
use serde_json::{Value, json};

use crate::support::{AGENT, Members, TestApp, Wishes, issuer::TestIssuer, nothing, only};

const PAGE: &str = "docs/operations/sign-in.md";

/// The claims of a provider's token, besides `iss`, `aud` and `exp`.
struct Shape {
    /// The heading of the recipe.
    provider: &'static str,
    /// The `idp_org_id` of the tenant; `None` for the issuer's URL.
    org: Option<&'static str>,
    /// The claims that each user has.
    user: Value,
    /// The claims of a user with a role, and the role.
    roles: Vec<(Value, &'static str)>,
    /// The claims of users whom the service must not take for people of the tenant.
    strangers: Vec<Value>,
}

fn shapes() -> [Shape; 6] {
    [keycloak(), entra(), okta(), auth0(), zitadel(), google()]
}

fn keycloak() -> Shape {
    Shape {
        provider: "Keycloak",
        org: Some("acme"),
        user: json!({
            "typ": "Bearer", "azp": "console", "sub": "f1c4f64e-2c0c-4cda-8c9f-9f3f8f3a2b0e",
            "sid": "4c0a3a8a-3a47-4f2f-8e89-9e5f9b0a0a0a", "acr": "1", "scope": "openid profile email",
            "realm_access": {"roles": ["offline_access", "uma_authorization", "default-roles-acme"]},
            "email": "ann@acme.example", "email_verified": true, "preferred_username": "ann",
            "organization": ["acme"],
        }),
        roles: vec![
            (
                json!({"resource_access": {"authority": {"roles": ["approver"]},
                "account": {"roles": ["manage-account", "view-profile"]}}}),
                "approver",
            ),
            // The roles of another client, or of the realm, are not roles here.
            (
                json!({"resource_access": {"billing": {"roles": ["admin"]}},
                "realm_access": {"roles": ["admin"]}}),
                "",
            ),
            // Keycloak can also write the organizations with their ids.
            (
                json!({"resource_access": {"authority": {"roles": ["viewer", "admin"]}},
                "organization": {"acme": {"id": "42c3e46f-2477-44d7-a85b-d3b43f6b31fa"}}}),
                "admin",
            ),
        ],
        strangers: vec![
            only("organization", ["globex"]),
            only("organization", ["acme", "globex"]),
            only("organization", Value::Null),
        ],
    }
}

fn entra() -> Shape {
    let directory = "9188040d-6c67-4c5b-b112-36a304b66dad";
    Shape {
        provider: "Entra ID",
        org: Some(directory),
        user: json!({
            "tid": directory, "oid": "690222be-ff1a-4d56-abd1-7e4f7d38e474", "ver": "2.0",
            "sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ", "azpacr": "1",
            "name": "Ann", "preferred_username": "ann@acme.example", "scp": "access",
            "uti": "fqiBqXLPj0eQa82S-IYFAA", "rh": "0.AAAA",
        }),
        roles: vec![
            (only("roles", ["approver"]), "approver"),
            (only("groups", ["5581f7d2-cf2f-4bc1-a6d1-6ea1a35b8e5f"]), "auditor"),
            (only("groups", ["00000000-0000-0000-0000-000000000000"]), ""),
            (
                json!({"groups": ["5581f7d2-cf2f-4bc1-a6d1-6ea1a35b8e5f"], "roles": ["admin"]}),
                "admin",
            ),
        ],
        strangers: vec![
            only("tid", "72f988bf-86f1-41af-91ab-2d7cd011db47"),
            // Groups that are left out.
            json!({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint":
                "https://graph.microsoft.com/v1.0/users/690222be/getMemberObjects"}}}),
            only("hasgroups", true),
        ],
    }
}

fn okta() -> Shape {
    Shape {
        provider: "Okta",
        org: None,
        user: json!({
            "ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE", "cid": "0oa1a2b3",
            "uid": "00u1a2b3c4", "sub": "00u1a2b3c4", "scp": ["openid", "email"],
        }),
        roles: vec![
            (only("groups", ["Everyone", "Authority Approvers"]), "approver"),
            (only("groups", ["Authority Approvers", "Authority Admins"]), "admin"),
            (only("groups", ["Everyone"]), ""),
            (nothing(), ""),
        ],
        strangers: Vec::new(),
    }
}

fn auth0() -> Shape {
    Shape {
        provider: "Auth0",
        org: Some("org_9ybsU1dN2dKfDkBi"),
        user: json!({
            "sub": "auth0|507f1f77bcf86cd799439011", "azp": "my_client_id", "scope": "openid profile email",
            "org_id": "org_9ybsU1dN2dKfDkBi", "permissions": [],
        }),
        roles: vec![
            (only("https://acme.example/roles", ["approver"]), "approver"),
            (only("https://acme.example/roles", ["viewer", "admin"]), "admin"),
            (json!({"https://acme.example/roles": []}), ""),
            (json!({"https://globex.example/roles": ["admin"], "roles": ["admin"]}), ""),
        ],
        strangers: vec![only("org_id", "org_other"), only("org_id", Value::Null)],
    }
}

fn zitadel() -> Shape {
    let of = |roles: Value| {
        json!({"urn:zitadel:iam:org:project:roles": roles,
        "urn:zitadel:iam:org:project:69234237810729019:roles": roles})
    };
    let granted = only("69234230193872955", "acme.zitadel.cloud");
    let elsewhere = only("70669144072186707", "globex.zitadel.cloud");
    Shape {
        provider: "Zitadel",
        org: Some("69234230193872955"),
        user: json!({
            "sub": "170848145649959169", "client_id": "170086363054473473@authority", "jti": "V2_1-at_2",
            "urn:zitadel:iam:user:resourceowner:id": "69234230193872955",
            "urn:zitadel:iam:user:resourceowner:name": "Acme",
            "urn:zitadel:iam:user:resourceowner:primary_domain": "acme.zitadel.cloud",
        }),
        roles: vec![
            (of(only("approver", &granted)), "approver"),
            (of(json!({"viewer": granted, "admin": granted})), "admin"),
            // Another organization grants a role to a user of this one.
            (of(json!({"viewer": granted, "admin": elsewhere})), "viewer"),
            (of(only("admin", &elsewhere)), ""),
            (nothing(), ""),
        ],
        strangers: vec![
            only("urn:zitadel:iam:user:resourceowner:id", "70669144072186707"),
            only("urn:zitadel:iam:user:resourceowner:id", Value::Null),
        ],
    }
}

fn google() -> Shape {
    Shape {
        provider: "Google",
        org: Some("acme.example"),
        user: json!({
            "azp": "407408718192-v1n2m3.apps.googleusercontent.com", "sub": "110169484474386276334",
            "email": "ann@acme.example", "email_verified": true, "hd": "acme.example",
            "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q", "name": "Ann",
        }),
        roles: vec![(nothing(), "admin"), (only("sub", "110169484474386276335"), "")],
        strangers: vec![
            only("hd", "globex.example"),
            // A private account, with an address of its own choice.
            json!({"hd": null, "email": "ann@acme.example"}),
        ],
    }
}

/// Returns the settings of each recipe, by its heading.
fn recipes() -> Vec<(String, Config)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(path).unwrap();
    let (_, recipes) = page.split_once("\n## Recipes\n").unwrap();
    let recipes = recipes.split("\n## ").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let read = |recipe: &str| {
        let (heading, text) = recipe.split_once('\n').unwrap();
        let (_, toml) = text.split_once("```toml\n").unwrap();
        let file = folder.path().join("authority.toml");
        fs::write(&file, toml.split("```").next().unwrap()).unwrap();
        let config = Config::load(&Sources { file: Some(file), ..Sources::default() }).unwrap();
        config.validate().unwrap();
        (heading.to_owned(), config)
    };
    recipes.split("\n### ").skip(1).map(read).collect()
}

fn merged(claims: &[&Value]) -> Value {
    let mut all = nothing();
    for claims in claims {
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    }
    all
}

/// The statuses of three reads: by any user of the tenant, by its approvers and by its auditors.
fn expected(role: &str) -> [u16; 3] {
    match role {
        "admin" => [200, 200, 200],
        "approver" => [200, 200, 403],
        "auditor" => [200, 403, 200],
        _ => [200, 403, 403],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_each_provider_has_its_role_and_tenant() {
    let seeded = TestApp::seeded().await;
    let (recipes, shapes) = (recipes(), shapes());
    let headings: Vec<_> = recipes.iter().map(|(heading, _)| heading.as_str()).collect();
    assert_eq!(headings, shapes.iter().map(|shape| shape.provider).collect::<Vec<_>>());
    for ((provider, config), shape) in recipes.into_iter().zip(shapes) {
        let iss = config.identity.issuer.clone().unwrap();
        let audience = config.identity.audience.clone();
        let issuer = TestIssuer::rs256(&iss);
        let mut identity = config.identity;
        (identity.jwks_url, identity.dev_provider) = (Some(issuer.serve().await), Some(true));
        let org = only("idp_org_id", shape.org.unwrap_or(&iss));
        let (status, answer) = seeded.owner().update_tenant("acme", org).await;
        assert_eq!(status, 200, "{provider}: {answer:#}");
        let app = seeded.beside(Wishes { identity, ..Wishes::default() }).await;
        app.app.graph.catch_up().await;
        let base = json!({"aud": audience, "exp": 4_102_444_800_i64});
        let statuses = async |claims: &Value| {
            let client = app.client(&issuer.token(claims));
            let authority = format!("/v1/authority/{AGENT}");
            let mut found = [0; 3];
            let paths =
                [authority.as_str(), "/api/v1/app/message-channels", "/api/v1/app/policies"];
            for (status, path) in found.iter_mut().zip(paths) {
                *status = client.get(path).await.0;
            }
            found
        };
        for (claims, role) in &shape.roles {
            let claims = merged(&[&base, &shape.user, claims]);
            assert_eq!(statuses(&claims).await, expected(role), "{provider}: {claims:#}");
        }
        for claims in &shape.strangers {
            let claims = merged(&[&base, &shape.user, claims]);
            assert_eq!(statuses(&claims).await, [403; 3], "{provider}: {claims:#}");
        }
        let other =
            merged(&[&base, &shape.user, &shape.roles[0].0]).with("aud", "another-application");
        assert_eq!(statuses(&other).await, [401; 3], "{provider}: {other:#}");
    }
}
