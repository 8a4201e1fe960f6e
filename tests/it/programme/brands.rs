//! White-label configurations.

use serde_json::{Value, json};

use super::{World, dns::DnsServer, id, is, is_about, record};
use crate::support::{Members, Plain, Wishes, nothing, only};

pub(super) const PATH: &str = "/white-label-configs";

/// Creates and verifies a domain of the tenant.
pub(super) async fn verified(world: &World, dns: &DnsServer, tenant: &str, fqdn: &str) -> String {
    let made = world.make("/domains", json!({"tenant_id": tenant, "fqdn": fqdn})).await;
    dns.set(&format!("_svc-challenge.{fqdn}"), &[made["verification_token"].as_str().unwrap()]);
    assert_eq!(world.post(&format!("/domains/{}/verify", id(&made)), nothing()).await.0, 200);
    id(&made)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_active_brand_needs_a_tenant_and_an_active_link_and_is_its_only_one() {
    let world = World::start().await;
    let (tenant, ada) = (world.tenant("acme").await, world.consultant("ada").await);
    let bob = world.consultant("bob").await;
    let body = |consultant: &str| json!({"consultant_id": consultant, "brand_name": "B"});
    let none = world.make(PATH, body(&ada)).await;
    assert_eq!(none["status"], "draft");
    let active = only("status", "active");
    is(&world.patch(&format!("{PATH}/{}", id(&none)), active.clone()).await, 409, "not_linked");
    let of = |consultant: &str| body(consultant).with("tenant_id", &tenant);
    let path = format!("{PATH}/{}", id(&world.make(PATH, of(&ada)).await));
    is(&world.patch(&path, active.clone()).await, 409, "not_linked");
    let link = world.link(&ada, &tenant, "invited").await;
    is(&world.patch(&path, active.clone()).await, 409, "not_linked");
    let accept = only("accept", true);
    assert_eq!(world.patch(&format!("/consultant-tenant-links/{link}"), accept).await.0, 200);
    assert_eq!(world.patch(&path, active.clone()).await.0, 200);
    world.link(&bob, &tenant, "active").await;
    let second = of(&bob).with("status", "active");
    is(&world.post(PATH, second).await, 409, "brand_active_exists");
    let draft = only("status", "draft");
    assert_eq!(world.patch(&path, draft.clone()).await.0, 200);
    assert_eq!(world.patch(&path, only("status", "archived")).await.0, 200);
    is(&world.patch(&path, draft).await, 409, "record_is_final");
    is_about(&world.patch(&path, only("tenant_id", Value::Null)).await, "tenant_id");
    assert_eq!(world.delete(&path).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_brands_of_a_tenant_do_not_become_active_together() {
    let world = World::start().await;
    let tenant = world.tenant("acme").await;
    let mut paths = Vec::new();
    for name in ["ada", "bob", "cyd"] {
        let consultant = world.consultant(name).await;
        world.link(&consultant, &tenant, "active").await;
        let body = json!({"consultant_id": consultant, "brand_name": "B", "tenant_id": tenant});
        paths.push(format!("{PATH}/{}", id(&world.make(PATH, body).await)));
    }
    let activate = paths.iter().map(|path| world.patch(path, only("status", "active")));
    let answers = futures_util::future::join_all(activate).await;
    assert_eq!(answers.iter().filter(|(status, _)| *status == 200).count(), 1, "{answers:?}");
    for refused in answers.iter().filter(|(status, _)| *status != 200) {
        is(refused, 409, "brand_active_exists");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colours_can_be_read_and_texts_show_what_they_say() {
    let world = World::start().await;
    let ada = world.consultant("ada").await;
    let body = |members: Value| json!({"consultant_id": ada, "brand_name": "B"}).and(&members);
    let grey = json!({"primary_colour_hex": "#FFFFFF", "secondary_colour_hex": "#777777"});
    let refused = world.post(PATH, body(grey)).await;
    is_about(&refused, "secondary_colour_hex");
    assert!(refused.1["details"][0]["problem"].as_str().unwrap().contains("4.47"), "{}", refused.1);
    let grey = json!({"primary_colour_hex": "#FFFFFF", "secondary_colour_hex": "#767676"});
    world.make(PATH, body(grey)).await;
    world.make(PATH, body(only("secondary_colour_hex", "#777777"))).await;
    for (member, bad) in [
        ("primary_colour_hex", "red"),
        ("primary_colour_hex", "#FFF"),
        ("brand_name", "a\u{202e}b"),
        ("brand_name", "a\nb"),
        ("legal_footer", "a\u{2066}b"),
        ("support_email", "nobody"),
    ] {
        is_about(&world.post(PATH, body(json!({member: bad}))).await, member);
    }
    is_about(&world.post(PATH, body(only("brand_name", "x".repeat(81)))).await, "brand_name");
    let long = only("legal_footer", "x".repeat(1001));
    is_about(&world.post(PATH, body(long)).await, "legal_footer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_brand_is_on_a_verified_domain_of_its_tenant() {
    let (dns, address) = DnsServer::start().await;
    let world = World::wished(Wishes { dns: vec![address], ..Wishes::default() }).await;
    let (tenant, other) = (world.tenant("acme").await, world.tenant("other").await);
    let ada = world.consultant("ada").await;
    world.link(&ada, &tenant, "active").await;
    world.make("/domains", json!({"tenant_id": other, "fqdn": "other.example"})).await;
    let own = world.make("/domains", json!({"tenant_id": tenant, "fqdn": "acme.example"})).await;
    let body = |domain: &str, logo: Value| {
        json!({"consultant_id": ada, "brand_name": "B", "tenant_id": tenant, "domain": domain,
               "logo_url": logo})
    };
    for domain in ["other.example", "notacme.example", "example"] {
        let refused = world.post(PATH, body(domain, Value::Null)).await;
        is_about(&refused, "domain");
    }
    for logo in ["https://acme.example/l.png", "https://help.acme.example:444/l.png"] {
        let refused = world.post(PATH, body("help.acme.example", json!(logo))).await;
        is_about(&refused, "logo_url");
    }
    let logo = json!("https://help.acme.example/l.png");
    let made = world.make(PATH, body("help.acme.example", logo)).await;
    let twice = world.post(PATH, body("help.acme.example", Value::Null)).await;
    is(&twice, 409, "already_exists");
    let path = format!("{PATH}/{}", id(&made));
    let active = only("status", "active");
    is(&world.patch(&path, active.clone()).await, 409, "domain_not_verified");
    let token = own["verification_token"].as_str().unwrap();
    dns.set("_svc-challenge.acme.example", &[token]);
    let domain = format!("/domains/{}", id(&own));
    assert_eq!(world.post(&format!("{domain}/verify"), nothing()).await.0, 200);
    let (status, body) = world.patch(&path, active).await;
    assert_eq!((status, record(&body)["status"].text()), (200, "active"), "{body:#}");
    // While the brand uses the domain, the tenant can neither delete nor change it.
    is(&world.delete(&domain).await, 409, "in_use");
    is(&world.patch(&domain, only("fqdn", "new.example")).await, 409, "in_use");
    assert_eq!(world.patch(&path, only("status", "archived")).await.0, 200);
    assert_eq!(world.delete(&domain).await.0, 200);
}
