//! The programme as a tenant's users see it.

use std::slice;

use authority_ids::TenantId;
use authority_store::{Db, Error, RunQueryDsl, Scope};
use chrono::TimeDelta;
use diesel::{QueryableByName, sql_types::BigInt};
use serde_json::{Value, json};

use super::{World, brands::PATH as BRANDS, id, is, record};
use crate::support::{Answered, Client, Plain, only};

const CONSULTANTS: &str = "/api/v1/app/consultants";
const LINKS: &str = "/api/v1/app/consultant-tenant-links";

fn member(world: &World, tenant: &str) -> Client {
    world.app.person(tenant, "viewer", "vic@tenant.example")
}

async fn seen(client: &Client, path: &str) -> Vec<String> {
    let body = client.get(path).await.assert_status(200);
    body.as_object().unwrap().values().find_map(Value::as_array).unwrap().iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_sees_the_certified_consultants_that_are_linked_to_it() {
    let world = World::start().await;
    let (acme, other) = (world.tenant("acme").await, world.tenant("other").await);
    let ada = world.certified("ada").await;
    let body = json!({"phone": "+44 1", "legal_name": "Ada Ltd", "notes": "secret",
                      "sectors": ["banking"], "bio": "about"});
    assert_eq!(world.patch(&format!("/consultants/{ada}"), body).await.0, 200);
    let bob = world.consultant("bob").await;
    let cyd = world.certified("cyd").await;
    let link = world.link(&ada, &acme, "active").await;
    world.link(&bob, &acme, "active").await;
    let invited = world.link(&cyd, &acme, "invited").await;
    let theirs = world.link(&cyd, &other, "active").await;
    let (here, there) = (member(&world, &acme), member(&world, &other));
    assert_eq!(seen(&here, CONSULTANTS).await, slice::from_ref(&ada));
    assert_eq!(seen(&there, CONSULTANTS).await, slice::from_ref(&cyd));
    let one = format!("{CONSULTANTS}/{ada}");
    let (status, shown) = here.get(&one).await;
    let shown = record(&shown);
    let mut members: Vec<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "bio",
            "certifications",
            "country",
            "display_name",
            "email",
            "id",
            "languages",
            "level",
            "scope",
            "sectors",
            "website"
        ]
    );
    assert_eq!((status, shown["email"].text()), (200, "ada@advice.example"));
    assert_eq!((shown["scope"].text(), shown["level"].text()), ("view_only", "master"));
    assert_eq!(shown["certifications"].as_array().unwrap().len(), 1);
    for hidden in [&bob, &cyd] {
        is(&here.get(&format!("{CONSULTANTS}/{hidden}")).await, 404, "not_found");
    }
    is(&there.get(&one).await, 404, "not_found");
    assert_eq!(seen(&here, &format!("{CONSULTANTS}?level=associate")).await, [""; 0]);
    assert_eq!(
        seen(&here, &format!("{CONSULTANTS}?sector=banking&level=master")).await,
        slice::from_ref(&ada)
    );
    assert_eq!(seen(&here, &format!("{CONSULTANTS}?sector=energy")).await, [""; 0]);

    // The list has all links of the tenant, whatever their status.
    assert_eq!(seen(&here, LINKS).await.len(), 3);
    assert_eq!(seen(&here, &format!("{LINKS}?status=invited")).await, [invited]);
    assert_eq!(seen(&there, LINKS).await, slice::from_ref(&theirs));
    is(&here.get(&format!("{LINKS}/{theirs}")).await, 404, "not_found");
    let revoke = format!("/consultant-tenant-links/{link}/revoke");
    assert_eq!(world.post(&revoke, only("reason", "secret")).await.0, 200);
    let (_, shown) = here.get(&format!("{LINKS}/{link}")).await;
    assert_eq!(record(&shown)["status"], "revoked");
    assert!(!shown.to_string().contains("secret"), "{shown:#}");
    assert!(record(&shown)["created_by"].is_null());
    assert_eq!(seen(&here, CONSULTANTS).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certification_holds_for_its_time_and_its_consultant() {
    let (world, clock) = World::at_a_fixed_time().await;
    let acme = world.tenant("acme").await;
    let ada = world.consultant("ada").await;
    world.link(&ada, &acme, "active").await;
    let here = member(&world, &acme);
    let at = |minutes: i64| (clock.now() + TimeDelta::minutes(minutes)).to_rfc3339();
    let body = json!({"consultant_id": ada, "level": "master", "not_before": at(5),
                      "not_after": at(10)});
    let path = format!(
        "/consultant-certifications/{}",
        id(&world.make("/consultant-certifications", body).await)
    );
    assert_eq!(seen(&here, CONSULTANTS).await, [""; 0], "too early");
    clock.advance(TimeDelta::minutes(5));
    assert_eq!(seen(&here, CONSULTANTS).await, slice::from_ref(&ada));
    let consultant = format!("/consultants/{ada}");
    assert_eq!(world.patch(&consultant, only("status", "suspended")).await.0, 200);
    assert_eq!(seen(&here, CONSULTANTS).await, [""; 0], "a suspended consultant is not shown");
    assert_eq!(world.patch(&consultant, only("status", "certified")).await.0, 200);
    clock.advance(TimeDelta::minutes(5));
    assert_eq!(seen(&here, CONSULTANTS).await, [""; 0], "the end is exclusive");
    assert_eq!(world.patch(&path, only("not_after", Value::Null)).await.0, 200);
    assert_eq!(seen(&here, CONSULTANTS).await, slice::from_ref(&ada));
    assert_eq!(world.patch(&path, only("revoke", true)).await.0, 200);
    assert_eq!(seen(&here, CONSULTANTS).await, [""; 0], "revoked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_sees_its_active_brand_while_link_and_consultant_hold() {
    let world = World::start().await;
    let (acme, other) = (world.tenant("acme").await, world.tenant("other").await);
    let ada = world.consultant("ada").await;
    let here = member(&world, &acme);
    is(&here.get_tenant_brand().await, 404, "not_found");
    let link = world.link(&ada, &acme, "active").await;
    let body = json!({"consultant_id": ada, "brand_name": "Ada", "tenant_id": acme,
                      "notes": "secret", "status": "active"});
    let brand = id(&world.make(BRANDS, body).await);
    let (status, shown) = here.get_tenant_brand().await;
    assert_eq!((status, shown["white_label_config"]["id"].text()), (200, brand.as_str()));
    assert!(!shown.to_string().contains("secret"), "{shown:#}");
    is(&member(&world, &other).get_tenant_brand().await, 404, "not_found");
    let consultant = format!("/consultants/{ada}");
    assert_eq!(world.patch(&consultant, only("status", "suspended")).await.0, 200);
    is(&here.get_tenant_brand().await, 404, "not_found");
    assert_eq!(world.patch(&consultant, only("status", "applied")).await.0, 200);
    assert_eq!(here.get_tenant_brand().await.0, 200);
    let revoke = format!("/consultant-tenant-links/{link}/revoke");
    assert_eq!(world.post(&revoke, only("reason", "r")).await.0, 200);
    is(&here.get_tenant_brand().await, 404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_pages_completely() {
    let world = World::start().await;
    let acme = world.tenant("acme").await;
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        let consultant = world.certified(name).await;
        world.link(&consultant, &acme, "active").await;
        all.push(consultant);
    }
    let here = member(&world, &acme);
    for path in [CONSULTANTS, LINKS] {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let page = here.get(&format!("{path}?limit=2{token}")).await.assert_status(200);
            let rows = page.as_object().unwrap().values().find_map(Value::as_array).unwrap();
            found.extend(rows.iter().map(id));
            let Some(next) = page["next_page_token"].as_str() else { break };
            token = format!("&page_token={next}");
        }
        assert_eq!(found.len(), 3, "{path}");
        assert_eq!(here.get(&format!("{path}?page_token=x")).await.0, 400);
    }
    assert_eq!(seen(&here, CONSULTANTS).await, all);
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// Counts rows in a transaction that has the tenant's rights.
async fn counted(world: &World, tenant: &str, sql: &'static str) -> Result<i64, Error> {
    let tenant = Some(TenantId::parse(tenant).unwrap());
    let scope = Scope { tenant, ..Scope::service() };
    let store = &world.app.app.store;
    let read = store.read_tx(&scope, async move |db: &mut Db| {
        let count: Count = diesel::sql_query(sql).get_result(db).await?;
        Ok::<_, Error>(count.count)
    });
    read.await
}

/// In any query, the database itself hides the rows and columns that a tenant may not see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_and_rights_show_a_tenant_no_other_rows_and_members() {
    let world = World::start().await;
    let (acme, other) = (world.tenant("acme").await, world.tenant("other").await);
    let ada = world.certified("ada").await;
    let bob = world.certified("bob").await;
    world.link(&ada, &acme, "active").await;
    world.link(&bob, &other, "active").await;
    world.link(&bob, &acme, "invited").await;
    for tenant in [&acme, &other] {
        for (sql, count) in [
            ("SELECT count(id) FROM consultants", 1),
            ("SELECT count(id) FROM certifications", 1),
            ("SELECT count(id) FROM white_label_configs", 0),
        ] {
            assert_eq!(counted(&world, tenant, sql).await.unwrap(), count, "{sql}");
        }
    }
    let links = "SELECT count(id) FROM consultant_links";
    assert_eq!(counted(&world, &acme, links).await.unwrap(), 2);
    assert_eq!(counted(&world, &other, links).await.unwrap(), 1);
    for sql in [
        "SELECT count(phone) FROM consultants",
        "SELECT count(legal_name) FROM consultants",
        "SELECT count(notes) FROM consultants",
        "SELECT count(suspend_reason) FROM consultants",
        "SELECT count(created_by) FROM consultants",
        "SELECT count(revoke_reason) FROM certifications",
        "SELECT count(revoke_reason) FROM consultant_links",
        "SELECT count(created_by) FROM consultant_links",
        "SELECT count(notes) FROM white_label_configs",
        "SELECT count(id) FROM leads",
        "SELECT count(*) FROM anonymous_calls",
        "SELECT count(*) FROM address_keys",
        "SELECT count(*) FROM lead_repeats",
    ] {
        let refused = counted(&world, &acme, sql).await.unwrap_err().to_string();
        assert!(refused.contains("permission denied"), "{sql}: {refused}");
    }
    let history = "SELECT count(*) FROM record_versions WHERE table_name IN \
                   ('consultants', 'certifications', 'leads')";
    assert_eq!(counted(&world, &acme, history).await.unwrap(), 0);
}
