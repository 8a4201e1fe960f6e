//! Lists of approvals: their order, and the filter by action.

use serde_json::{Value, json};

use super::{
    demo,
    questions::{TENANT, approver, held},
};
use crate::support::{Client, asking};

/// Returns the ids on all pages, two a page.
async fn ids(client: &Client, query: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/app/approvals?limit=2&{query}&page_token={token}");
        let (status, page) = client.get(&path).await;
        assert_eq!(status, 200, "{page:#}");
        let page_ids = page["approvals"].as_array().unwrap().iter();
        found.extend(page_ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_page_token"].as_str() else { return found };
        next.clone_into(&mut token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_by_opening_or_by_expiry() {
    let (app, client, _) = demo().await;
    let ann = approver(&app);
    // Each approval expires before the earlier ones.
    let mut opened = Vec::new();
    for number in 0..5 {
        let body = json!({"approval_ttl_seconds": 36_000 - 3600 * number});
        assert_eq!(app.owner().patch(&format!("/api/v1/tenants/{TENANT}"), body).await.0, 200);
        opened.push(held(&client, &asking(25_000.0 + f64::from(number), "DE")).await);
    }
    let reversed: Vec<String> = opened.iter().rev().cloned().collect();
    for (query, expected) in [
        ("state=pending", &opened),
        ("order=oldest", &opened),
        ("order=newest", &reversed),
        ("state=pending&order=newest", &reversed),
        ("state=pending&order=expiry", &reversed),
        ("state=pending&order=expiry&action=payment.execute", &reversed),
        ("state=pending&order=expiry&action=payment", &Vec::new()),
        ("state=approved&order=expiry", &Vec::new()),
    ] {
        assert_eq!(&ids(&ann, query).await, expected, "{query}");
    }
    // Declining an approval of the first page does not shift the second page.
    let first = "/api/v1/app/approvals?state=pending&order=expiry&limit=2";
    let (_, page) = ann.get(first).await;
    let token = page["next_page_token"].as_str().unwrap();
    let decline = format!("/api/v1/app/approvals/{}/decline", reversed[0]);
    assert_eq!(ann.post(&decline, json!({"reason": "no"})).await.0, 200);
    let (_, page) = ann.get(&format!("{first}&page_token={token}")).await;
    assert_eq!(page["approvals"][0]["id"], reversed[2], "{page:#}");
    // A token is only valid for the order that returned it.
    for query in ["state=pending", "state=pending&order=newest"] {
        let path = format!("/api/v1/app/approvals?{query}&page_token={token}");
        let (status, refused) = ann.get(&path).await;
        assert_eq!((status, &refused["details"][0]["field"]), (400, &json!("page_token")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_expires_is_listed_by_expiry() {
    let (app, _, _) = demo().await;
    let ann = approver(&app);
    let at_fault = |(status, refused): (u16, Value)| {
        assert_eq!(status, 400, "{refused:#}");
        refused["details"][0]["field"].clone()
    };
    for query in ["order=expiry", "state=used&order=expiry", "order=amount"] {
        let answer = ann.get(&format!("/api/v1/app/approvals?{query}")).await;
        assert_eq!(at_fault(answer), "order", "{query}");
    }
}
