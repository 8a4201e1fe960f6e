//! Whether a domain is its tenant's.

use serde_json::{Value, json};

use super::{World, dns::DnsServer, id, is, record};
use crate::support::Wishes;

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
    is(&world.post(&verify, json!({})).await, 409, "domain_not_verified");
    dns.set("_svc-challenge.acme.example", &["svc-verify=other", &token(&made)[1..]]);
    is(&world.post(&verify, json!({})).await, 409, "domain_not_verified");
    dns.set("acme.example", &[token(&made)]);
    is(&world.post(&verify, json!({})).await, 409, "domain_not_verified");
    dns.set("_svc-challenge.acme.example", &["v=other", token(&made)]);
    let (status, verified) = world.post(&verify, json!({})).await;
    assert!(status == 200 && record(&verified)["verified_at"].is_string(), "{verified:#}");
    assert_eq!(world.post("/domains/svc:ent:acme:domain:none/verify", json!({})).await.0, 404);

    let (_, renamed) = world.patch(&path, json!({"fqdn": "other.example"})).await;
    assert_eq!(record(&renamed)["fqdn"], "other.example");
    let renamed = record(&world.get(&path).await.1);
    assert!(renamed["verified_at"].is_null(), "{renamed:#}");
    assert_ne!(token(&renamed), token(&made));
    dns.set("_svc-challenge.other.example", &[token(&made)]);
    is(&world.post(&verify, json!({})).await, 409, "domain_not_verified");
}
