//! Consultants.

use std::time::{Duration, Instant};

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{World, id, is, is_about, record};
use crate::support::wire::encoded;
use crate::support::{Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_email_is_unique_among_live_ones_whatever_the_case() {
    let world = World::start().await;
    let body = |email: &str| json!({"display_name": "Ada", "email": email});
    let made = world.make("/consultants", body("ada@advice.example")).await;
    assert_eq!(
        (made["status"].text(), made["listed"].as_bool()),
        ("applied", Some(true)),
        "{made:#}"
    );
    let path = format!("/consultants/{}", id(&made));
    let twice = world.post("/consultants", body("Ada@Advice.example")).await;
    is(&twice, 409, "already_exists");
    assert_eq!(twice.1["details"][0]["field"], "email");
    is_about(&world.patch(&path, only("email", "b@advice.example")).await, "email");
    let (status, gone) = world.delete(&path).await;
    assert!(status == 200 && record(&gone)["deleted_at"].is_string(), "{gone:#}");
    assert_eq!(world.get(&path).await.0, 404);
    assert_eq!(world.get(&format!("{path}?deleted=true")).await.0, 200);
    assert_eq!(world.ids("/consultants").await, [""; 0]);
    assert_eq!(world.ids("/consultants?deleted=true").await.len(), 1);
    world.make("/consultants", body("ADA@advice.example")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_have_their_forms() {
    let world = World::start().await;
    let many: Vec<_> = (0..33).map(|n| format!("s{n}")).collect();
    for (member, bad) in [
        ("website", json!("http://advice.example")),
        ("website", json!("https://user@advice.example/")),
        ("linkedin", json!("https://user:secret@advice.example")),
        ("country", json!("gb")),
        ("country", json!("GBR")),
        ("sectors", json!(many)),
        ("sectors[0]", json!(["Finance"])),
        ("languages[0]", json!(["e"])),
        ("bio", json!("x".repeat(4001))),
        ("display_name", json!("x".repeat(201))),
        ("certification_level", json!("grand")),
        ("status", json!("")),
    ] {
        let name = member.trim_end_matches("[0]");
        let mut body = json!({"display_name": "Ada", "email": "ada@advice.example"});
        body[name] = bad;
        is_about(&world.post("/consultants", body).await, member);
    }
    let whole = json!({
        "display_name": "Ada", "email": "ada@advice.example", "country": "GB",
        "sectors": ["banking"], "languages": ["en", "de-CH", "zh-Hant-TW"],
        "website": "https://advice.example/ada?x=1", "listed": false, "phone": "+44 1",
    });
    let made = world.make("/consultants", whole.clone()).await;
    for (member, value) in whole.as_object().unwrap() {
        assert_eq!(&made[member], value, "{member}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_moves_freely_until_retired() {
    let world = World::start().await;
    let path = format!("/consultants/{}", world.consultant("ada").await);
    for status in ["certified", "applied", "suspended", "onboarding"] {
        let (code, body) = world.patch(&path, only("status", status)).await;
        assert_eq!((code, &record(&body)["status"]), (200, &json!(status)));
        let since = &record(&world.get(&path).await.1)["suspended_at"];
        assert_eq!(since.is_string(), status == "suspended", "{status}: {since}");
    }
    is_about(&world.patch(&path, only("status", Value::Null)).await, "status");
    let suspend = format!("{path}/suspend");
    is_about(&world.post(&suspend, nothing()).await, "reason");
    let (code, body) = world.post(&suspend, only("reason", "a complaint")).await;
    let suspended = record(&body);
    assert_eq!((code, suspended["status"].text()), (200, "suspended"));
    assert!(suspended["suspended_at"].is_string() && suspended["suspend_reason"] == "a complaint");
    assert_eq!(world.patch(&path, only("status", "retired")).await.0, 200);
    is(&world.patch(&path, only("bio", "x")).await, 409, "record_is_final");
    is(&world.post(&suspend, only("reason", "x")).await, 409, "record_is_final");
    assert_eq!(world.delete(&path).await.0, 200);
    let retired =
        json!({"display_name": "Bob", "email": "bob@advice.example", "status": "retired"});
    let made = world.post("/consultants", retired).await;
    assert_eq!((made.0, made.1["consultant"]["status"].text()), (201, "retired"), "{:#}", made.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_consultant_revokes_links_and_archives_brands() {
    let world = World::start().await;
    let tenant = world.tenant("acme").await;
    let ada = world.consultant("ada").await;
    let link = world.link(&ada, &tenant, "active").await;
    let brand = json!({"consultant_id": ada, "brand_name": "Ada", "tenant_id": tenant});
    let brand = id(&world.make("/white-label-configs", brand).await);
    assert_eq!(world.delete(&format!("/consultants/{ada}")).await.0, 200);
    let link = record(&world.get(&format!("/consultant-tenant-links/{link}")).await.1);
    assert!(link["status"] == "revoked" && link["revoked_at"].is_string(), "{link:#}");
    let brand = record(&world.get(&format!("/white-label-configs/{brand}")).await.1);
    assert_eq!(brand["status"], "archived");
    let again = json!({"consultant_id": ada, "tenant_id": tenant});
    is_about(&world.post("/consultant-tenant-links", again).await, "consultant_id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_finds_a_text_whatever_its_case_and_takes_no_wildcards() {
    let world = World::start().await;
    let made = async |name: &str, legal: Value, email: &str| {
        let body = json!({"display_name": name, "legal_name": legal, "email": email});
        id(&world.make("/consultants", body).await)
    };
    let apples = made("ÄPFEL 100%", Value::Null, "one@advice.example").await;
    let under = made("Some_one", json!(r"Back\slash Ltd"), "two@advice.example").await;
    for (text, found) in [
        ("äpfel", vec![&apples]),
        ("Ä", vec![&apples]),
        ("%", vec![&apples]),
        ("_", vec![&under]),
        (r"\", vec![&under]),
        ("BACK", vec![&under]),
        ("two@", vec![&under]),
        ("advice.EXAMPLE", vec![&apples, &under]),
        ("nobody", vec![]),
    ] {
        let path = format!("/consultants?q={}", encoded(text));
        assert_eq!(world.ids(&path).await.iter().collect::<Vec<_>>(), found, "{text}");
    }
    is_about(&world.get("/consultants?q=").await, "q");
    is_about(&world.get(&format!("/consultants?q={}", "a".repeat(101))).await, "q");
    let (_, counted) = world.get("/consultants?q=advice&count=true&limit=1").await;
    assert_eq!(counted["total"], 2);
    assert!(counted["next_page_token"].is_string(), "{counted:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_takes_a_second_at_most() {
    let world = World::start().await;
    let mut db = world.app.database.owner().await;
    db.batch_execute("BEGIN; LOCK TABLE consultants IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let begin = Instant::now();
    is(&world.get("/consultants?q=x").await, 503, "unavailable");
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    db.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(world.get("/consultants?q=x").await.0, 200);
}
