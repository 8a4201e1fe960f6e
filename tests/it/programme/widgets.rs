//! The widgets: their behaviour, and the sites that may embed them.

use reqwest::Response;
use serde_json::json;

use super::{World, brands, dns::DnsServer, id};
use crate::support::{Limits, Plain, Wishes, only};

const CARD: &str = "/widgets/consultant-card";
const FORM: &str = "/widgets/enquiry-form";

async fn get(world: &World, path: &str) -> Response {
    world.owner.http.get(format!("{}{path}", world.owner.base)).send().await.unwrap()
}

#[track_caller]
fn policy(response: &Response) -> String {
    response.headers()["content-security-policy"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_has_a_strict_policy_and_may_be_framed_by_its_own_service_alone() {
    let world = World::start().await;
    let ada = world.certified("ada").await;
    for path in [format!("{CARD}?consultant={ada}"), FORM.to_owned()] {
        let response = get(&world, &path).await;
        let headers = response.headers().clone();
        assert_eq!(response.status(), 200, "{path}");
        let policy = policy(&response);
        let text = response.text().await.unwrap();
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert_eq!(
            policy,
            format!(
                "default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; \
                 base-uri 'none'; frame-ancestors 'self'"
            )
        );
        assert!(nonce.len() == 32 && text.contains(&format!("<style nonce=\"{nonce}\">")));
        assert!(!text.contains("<script") && !text.contains(" style="), "{text}");
        assert!(!headers.contains_key("x-frame-options") && !headers.contains_key("set-cookie"));
        assert_eq!(headers["cross-origin-resource-policy"], "cross-origin");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_ne!(self::policy(&get(&world, &path).await), policy, "a nonce is used once");
    }
    let other = get(&world, "/health").await;
    assert_eq!(other.headers()["x-frame-options"], "DENY");
    for path in [CARD.to_owned(), format!("{CARD}?consultant=none"), format!("{FORM}?brand=none")] {
        assert_eq!(get(&world, &path).await.status(), 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_active_brand_is_framed_by_its_domain() {
    let (dns, address) = DnsServer::start().await;
    let world = World::wished(Wishes { dns: vec![address], ..Wishes::default() }).await;
    let (tenant, ada) = (world.tenant("acme").await, world.certified("ada").await);
    world.link(&ada, &tenant, "active").await;
    brands::verified(&world, &dns, &tenant, "acme.example").await;
    let body = json!({
        "consultant_id": ada, "tenant_id": tenant, "brand_name": "<b>Ada</b>",
        "domain": "help.acme.example", "logo_url": "https://help.acme.example/l.png?a=1&b=2",
        "primary_colour_hex": "#112233", "legal_footer": "a \"quote\"",
    });
    let brand = id(&world.make(brands::PATH, body).await);
    let path = format!("{FORM}?brand={brand}");
    assert_eq!(get(&world, &path).await.status(), 404, "a draft");
    let config = format!("{}/{brand}", brands::PATH);
    assert_eq!(world.patch(&config, only("status", "active")).await.0, 200);
    let response = get(&world, &path).await;
    let policy = policy(&response);
    assert!(policy.ends_with("frame-ancestors https://help.acme.example"), "{policy}");
    assert!(policy.contains("img-src https://help.acme.example;"), "{policy}");
    // An enquiry from the form stores the brand and the brand's consultant.
    let sent = world.owner.http.post(format!("{}{path}", world.owner.base));
    let sent = sent
        .header("content-type", "application/x-www-form-urlencoded")
        .body("email=lee%40globex.example&message=hello");
    assert_eq!(sent.send().await.unwrap().status(), 200);
    let (_, all) = world.get("/consultant-leads").await;
    assert_eq!(
        (all["leads"][0]["assigned_consultant_id"].text(), &all["leads"][0]["source"]),
        (ada.as_str(), &json!(format!("widget:{brand}"))),
        "{all:#}"
    );
    let text = response.text().await.unwrap();
    assert!(text.contains("background: #112233; color: #ffffff"), "{text}");
    assert!(!text.contains("<b>") && text.contains("help.acme.example/l.png?a=1"), "{text}");
    let tenant = format!("/tenants/{tenant}");
    assert_eq!(world.patch(&tenant, only("state", "suspended")).await.0, 200);
    assert_eq!(get(&world, &path).await.status(), 404, "its tenant is suspended");
    assert_eq!(world.patch(&tenant, only("state", "active")).await.0, 200);
    assert_eq!(get(&world, &path).await.status(), 200);
    assert_eq!(world.patch(&config, only("status", "archived")).await.0, 200);
    assert_eq!(get(&world, &path).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_sends_an_enquiry_with_the_limits_of_one() {
    let (world, _clock) = World::at_a_fixed_time().await;
    let send = async |body: &'static str, kind: &str| {
        let request = world.owner.http.post(format!("{}{FORM}", world.owner.base));
        let request = request.header("content-type", kind).body(body);
        request.send().await.unwrap()
    };
    let form = "application/x-www-form-urlencoded";
    let filled =
        "email=lee%40globex.example&name=Lee+M&message=hello&organisation=&consent_marketing=true";
    let first = send(filled, form).await;
    assert_eq!(first.status(), 200);
    assert_eq!(Limits::of(&first).left, r#""leads_per_address";r=4;t=600"#);
    assert!(!first.headers().contains_key("x-frame-options"));
    let (_, all) = world.get("/consultant-leads").await;
    let lead = &all["leads"][0];
    assert_eq!((lead["submitter_name"].text(), lead["source"].text()), ("Lee M", "widget"));
    assert!(lead["assigned_consultant_id"].is_null(), "{lead:#}");
    assert!(lead["organisation"].is_null() && lead["consent_at"].is_string(), "{lead:#}");
    assert_eq!(send(filled, "text/plain").await.status(), 415);
    assert_eq!(send("email=x&unknown=1", form).await.status(), 400);
    for _ in 0..4 {
        assert_eq!(send("email=none", form).await.status(), 400);
    }
    let limited = send(filled, form).await;
    assert_eq!(limited.status(), 429);
    assert!(limited.headers().contains_key("retry-after"));
    let shown = Limits::of(&limited);
    assert_eq!(shown.left, r#""leads_per_address";r=0;t=600"#);
    assert_eq!(shown.policy, r#""leads_per_address";q=5;w=600"#);
}
