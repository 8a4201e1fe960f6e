//! Leads, as the owner manages them.

use std::slice;

use serde_json::{Value, json};

use super::{World, id, is_about, record};
use crate::support::wire::encoded;
use crate::support::{Plain, nothing, only};

const PATH: &str = "/consultant-leads";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_moves_freely_and_converts_to_a_tenant_that_exists() {
    let world = World::start().await;
    let tenant = world.tenant("acme").await;
    let body = json!({"submitter_email": "lee@globex.example", "consent_marketing": true});
    let made = world.make(PATH, body).await;
    assert_eq!(made["status"], "captured");
    assert!(made["consent_at"].is_string(), "{made:#}");
    assert_eq!(made["consent_source"], "owner@example.org");
    let path = format!("{PATH}/{}", id(&made));
    for status in ["rejected", "converted", "captured", "qualified"] {
        let (code, body) = world.patch(&path, only("status", status)).await;
        assert_eq!((code, &record(&body)["status"]), (200, &json!(status)));
    }
    for bad in [json!(""), json!("lost"), Value::Null] {
        is_about(&world.patch(&path, only("status", &bad)).await, "status");
    }
    is_about(&world.patch(&path, only("submitter_name", "x")).await, "submitter_name");
    let convert = format!("{path}/convert");
    is_about(&world.post(&convert, nothing()).await, "converted_tenant_id");
    let unknown = only("converted_tenant_id", "svc:tenant:none");
    is_about(&world.post(&convert, unknown).await, "converted_tenant_id");
    let (code, body) = world.post(&convert, only("converted_tenant_id", "acme")).await;
    let converted = record(&body);
    assert_eq!((code, converted["status"].text()), (200, "converted"));
    assert_eq!(converted["converted_tenant_id"], tenant);
    let (code, body) = world.post(&format!("{path}/qualify"), nothing()).await;
    assert_eq!((code, record(&body)["status"].text()), (200, "qualified"));
    assert!(record(&world.delete(&path).await.1)["deleted_at"].is_string());
    assert_eq!(world.get(&path).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_is_assigned_to_a_live_consultant() {
    let world = World::start().await;
    let (ada, bob) = (world.consultant("ada").await, world.consultant("bob").await);
    assert_eq!(world.delete(&format!("/consultants/{bob}")).await.0, 200);
    let made = world.make(PATH, only("submitter_email", "lee@globex.example")).await;
    assert!(made["consent_at"].is_null() && made["consent_source"].is_null());
    let path = format!("{PATH}/{}", id(&made));
    let assign = async |id: &str| world.patch(&path, only("assigned_consultant_id", id)).await;
    is_about(&assign(&bob).await, "assigned_consultant_id");
    assert_eq!(assign(&ada).await.0, 200);
    assert_eq!(world.ids(&format!("{PATH}?assigned_consultant_id={ada}")).await, [id(&made)]);
    assert_eq!(world.ids(&format!("{PATH}?assigned_consultant_id={bob}")).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_parameters_are_few_short_texts() {
    let world = World::start().await;
    let post = async |utm: Value| {
        world.post(PATH, json!({"submitter_email": "lee@globex.example", "utm": utm})).await
    };
    let many = |count: usize| (0..count).map(|n| (format!("p{n}"), json!("x"))).collect();
    assert_eq!(post(Value::Object(many(16))).await.0, 201);
    is_about(&post(Value::Object(many(17))).await, "utm");
    is_about(&post(only("utm_source", 5)).await, "utm.utm_source");
    is_about(&post(only("utm_source", "x".repeat(201))).await, "utm.utm_source");
    for member in ["consent_at", "consent_source", "consent_withdrawn_at", "converted_tenant_id"] {
        let body = json!({"submitter_email": "lee@globex.example", member: "2020-01-01T00:00:00Z"});
        is_about(&world.post(PATH, body).await, member);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_looks_at_who_asks() {
    let world = World::start().await;
    let body = json!({"submitter_email": "lee@globex.example", "submitter_name": "Łukasz",
                      "organisation": "Globex_1", "message": "hidden", "sector": "banking"});
    let made = id(&world.make(PATH, body).await);
    world.make(PATH, only("submitter_email", "other@example.com")).await;
    for text in ["łUK", "GLOBEX_1", "lee@"] {
        assert_eq!(
            world.ids(&format!("{PATH}?q={}", encoded(text))).await,
            slice::from_ref(&made),
            "{text}"
        );
    }
    assert_eq!(world.ids(&format!("{PATH}?q=hidden")).await, [""; 0]);
    assert_eq!(world.ids(&format!("{PATH}?sector=banking&status=captured")).await, [made]);
}
