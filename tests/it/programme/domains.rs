//! Verification of the domains of a tenant.

use serde_json::{Value, json};

use super::{World, dns::DnsServer, id, is, record};
use crate::support::{Wishes, nothing, only};

async fn world() -> (World, DnsServer) {
    let (dns, address) = DnsServer::start().await;
    (World::wished(Wishes { dns: vec![address], ..Wishes::default() }).await, dns)
}

fn token(domain: &Value) -> &str {
    domain["verification_token"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_is_verified_by_the_txt_record_of_its_token() {
    let (world, dns) = world().await;
    let tenant = world.tenant("acme").await;
    let made = world.make("/domains", json!({"tenant_id": tenant, "fqdn": "acme.example"})).await;
    assert!(made["verified_at"].is_null() && !token(&made).is_empty());
    let path = format!("/domains/{}", id(&made));
    let verify = format!("{path}/verify");
    is(&world.post(&verify, nothing()).await, 409, "domain_not_verified");
    dns.set("_svc-challenge.acme.example", &["svc-verify=other", &token(&made)[1..]]);
    is(&world.post(&verify, nothing()).await, 409, "domain_not_verified");
    dns.set("acme.example", &[token(&made)]);
    is(&world.post(&verify, nothing()).await, 409, "domain_not_verified");
    dns.set("_svc-challenge.acme.example", &["v=other", token(&made)]);
    let (status, verified) = world.post(&verify, nothing()).await;
    assert!(status == 200 && record(&verified)["verified_at"].is_string(), "{verified:#}");
    assert_eq!(world.post("/domains/svc:ent:acme:domain:none/verify", nothing()).await.0, 404);

    let (_, renamed) = world.patch(&path, only("fqdn", "other.example")).await;
    assert_eq!(record(&renamed)["fqdn"], "other.example");
    let renamed = record(&world.get(&path).await.1);
    assert!(renamed["verified_at"].is_null(), "{renamed:#}");
    assert_ne!(token(&renamed), token(&made));
    dns.set("_svc-challenge.other.example", &[token(&made)]);
    is(&world.post(&verify, nothing()).await, 409, "domain_not_verified");
}

/// The last part of a name may be in another script, in its form of letters, digits and hyphens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_may_be_internationalised() {
    let (world, _dns) = world().await;
    let tenant = world.tenant("acme").await;
    for fqdn in ["xn--e1afmkfd.xn--p1ai", "shop.xn--fiqs8s", "xn--bcher-kva.example"] {
        let made = world.make("/domains", json!({"tenant_id": tenant, "fqdn": fqdn})).await;
        assert_eq!(made["fqdn"], fqdn);
    }
    for fqdn in ["acme.xn--", "acme.xn--p1ai-", "acme.p1ai", "xn--p1ai", "acme.1", "пример.рф"]
    {
        let body = json!({"tenant_id": tenant, "fqdn": fqdn});
        is(&world.post("/domains", body).await, 400, "invalid_request");
    }
}

/// A missing record and unreachable DNS servers cause different errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_is_not_a_record_that_is_missing() {
    let (world, dns) = world().await;
    let tenant = world.tenant("acme").await;
    let made = world.make("/domains", json!({"tenant_id": tenant, "fqdn": "acme.example"})).await;
    let verify = format!("/domains/{}/verify", id(&made));
    let told = async || {
        let refused = world.post(&verify, nothing()).await;
        is(&refused, 409, "domain_not_verified");
        refused.1["message"].as_str().unwrap().to_owned()
    };
    assert!(told().await.starts_with("no TXT record was found at `_svc-challenge.acme.example`"));
    dns.set("_svc-challenge.acme.example", &["svc-verify=other"]);
    assert!(told().await.starts_with("no TXT record at `_svc-challenge.acme.example` is"));
    dns.break_down();
    let broken = told().await;
    assert!(
        broken.starts_with("no DNS server answered") && broken.contains("try again"),
        "{broken}"
    );
    let wishes = Wishes { dns: vec!["127.0.0.1:9".parse().unwrap()], ..Wishes::default() };
    let elsewhere = world.app.beside(wishes).await;
    let (_, down) = elsewhere.owner().post(&format!("/api/v1{verify}"), nothing()).await;
    let down = down["message"].as_str().unwrap();
    assert!(down.starts_with("no DNS server answered"), "{down}");
}
