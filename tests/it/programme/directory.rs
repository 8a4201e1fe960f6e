//! The public directory of consultants.

use serde_json::{Value, json};

use super::{World, record};
use crate::support::{Client, Limits, only};

const PATH: &str = "/v1/directory/consultants";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_is_of_a_certified_listed_consultant_and_any_other_is_the_same_404() {
    let world = World::start().await;
    let anyone = world.app.client("");
    let ada = world.certified("ada").await;
    let consultant = format!("/consultants/{ada}");
    let body = json!({"phone": "+44 1", "legal_name": "Ada Ltd", "notes": "secret", "bio": "b"});
    assert_eq!(world.patch(&consultant, body).await.0, 200);
    let one = format!("{PATH}/{ada}");
    let (status, entry) = anyone.get(&one).await;
    assert_eq!(status, 200, "{entry:#}");
    let mut members: Vec<_> = entry.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "bio",
            "certifications",
            "country",
            "display_name",
            "id",
            "languages",
            "level",
            "sectors",
            "website"
        ]
    );
    let text = entry.to_string();
    for hidden in ["advice.example", "+44", "Ltd", "secret"] {
        assert!(!text.contains(hidden), "{hidden}: {entry:#}");
    }
    let missing = async |client: &Client, id: &str| {
        let (status, mut body) = client.get(&format!("{PATH}/{id}")).await;
        body["request_id"] = Value::Null;
        (status, body.to_string().replace(id, "ID"))
    };
    let unknown = missing(&anyone, "svc:consultant:00000000000000000000000000000000").await;
    assert_eq!(unknown.0, 404);
    for change in [only("listed", false), only("status", "onboarding"), only("status", "suspended")]
    {
        assert_eq!(world.patch(&consultant, change.clone()).await.0, 200);
        assert_eq!(missing(&anyone, &ada).await, unknown, "{change}");
        let back = json!({"listed": true, "status": "certified"});
        assert_eq!(world.patch(&consultant, back).await.0, 200);
        assert_eq!(anyone.get(&one).await.0, 200);
    }
    let (_, all) = world.get("/consultant-certifications").await;
    let certification = all["certifications"][0]["id"].as_str().unwrap();
    let path = format!("/consultant-certifications/{certification}");
    assert_eq!(record(&world.patch(&path, only("revoke", true)).await.1)["id"], certification);
    assert_eq!(missing(&anyone, &ada).await, unknown, "revoked");
    assert_eq!(anyone.get(PATH).await.0, 404, "there is no public list");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_reads_sixty_entries_a_minute() {
    let (world, clock) = World::at_a_fixed_time().await;
    let anyone = world.app.client("");
    let path = format!("{PATH}/svc:consultant:none");
    let get =
        async |from: &str| anyone.call("GET", &path, None, &[("x-forwarded-for", from)]).await;
    for _ in 0..60 {
        assert_eq!(get("192.0.2.1").await.0, 404);
    }
    assert_eq!(get("192.0.2.1").await.0, 429);
    assert_eq!(get("192.0.2.2").await.0, 404);
    clock.advance(chrono::TimeDelta::minutes(1));
    assert_eq!(get("192.0.2.1").await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_and_a_widget_show_the_calls_that_are_left() {
    let (world, clock) = World::at_a_fixed_time().await;
    let ada = world.certified("ada").await;
    let anyone = world.app.client("");
    let entry = format!("{PATH}/{ada}");
    let card = format!("/widgets/consultant-card?consultant={ada}");
    let from = [("x-forwarded-for", "192.0.2.9")];
    let get = async |path: &str| Limits::of_call(&anyone, "GET", path, None, &from).await.0;
    let left =
        |calls: u32, seconds: u32| format!(r#""directory_per_address";r={calls};t={seconds}"#);
    let first = get(&entry).await;
    assert_eq!((first.status, first.left), (200, left(59, 60)));
    assert_eq!(first.policy, r#""directory_per_address";q=60;w=60"#);
    clock.advance(chrono::TimeDelta::seconds(20));
    let page = get(&card).await;
    assert_eq!((page.status, page.left, &page.policy), (200, left(58, 40), &first.policy));
    for _ in 0..58 {
        get("/widgets/enquiry-form").await;
    }
    for path in [&entry, &card] {
        let refused = get(path).await;
        let expected = (429, left(0, 40), &first.policy);
        assert_eq!((refused.status, refused.left, &refused.policy), expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalogue_names_pages_that_exist() {
    let world = World::start().await;
    let anyone = world.app.client("");
    let ada = world.certified("ada").await;
    let (status, body) = anyone.get("/v1/directory/widgets").await;
    assert_eq!(status, 200);
    let widgets = body["widgets"].as_array().unwrap();
    let ids: Vec<_> = widgets.iter().map(|widget| widget["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["consultant-card", "enquiry-form"]);
    for widget in widgets {
        let url = widget["embed_url"].as_str().unwrap();
        let path = url.strip_prefix(world.app.base_url()).unwrap();
        assert_eq!(anyone.text("GET", &format!("{path}?consultant={ada}"), None).await.0, 200);
    }
}
