//! Lists of approvals: their order, the filter by action, and the requests that a person may decide.

use serde_json::{Value, json};

use super::{
    demo,
    questions::{TENANT, approver, held},
};
use crate::support::{Answered, Client, Members, Plain, asking, new_policy, new_principal, only};

const BOT: &str = "svc:agent:acme:invoice-bot";

/// Returns the ids on all pages, two a page.
async fn ids(client: &Client, query: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/app/approvals?limit=2&{query}&page_token={token}");
        let page = client.get(&path).await.assert_status(200);
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
        let body = only("approval_ttl_seconds", 36_000 - 3600 * number);
        assert_eq!(app.owner().update_tenant(TENANT, body).await.0, 200);
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
    let (_, page) = ann.list_approvals("state=pending&order=expiry&limit=2").await;
    let token = page["next_page_token"].as_str().unwrap();
    assert_eq!(ann.decline_approval(&reversed[0], "no").await.0, 200);
    let (_, page) =
        ann.list_approvals(&format!("state=pending&order=expiry&limit=2&page_token={token}")).await;
    assert_eq!(page["approvals"][0]["id"], reversed[2], "{page:#}");
    // A token is only valid for the order that returned it.
    for query in ["state=pending", "state=pending&order=newest"] {
        let (status, refused) = ann.list_approvals(&format!("{query}&page_token={token}")).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, "page_token"));
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
        let answer = ann.list_approvals(query).await;
        assert_eq!(at_fault(answer), "order", "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_amount_is_first() {
    let (app, client, _) = demo().await;
    let ann = approver(&app);
    let mut opened = Vec::new();
    for amount in [12_000.5, 30_000.0, 12_000.0, 25_000.0] {
        opened.push(held(&client, &asking(amount, "DE")).await);
    }
    let expected = [1, 3, 0, 2].map(|at: usize| opened[at].clone());
    assert_eq!(ids(&ann, "state=pending&order=amount").await, expected);
    // A request that was decided since does not shift the next page.
    let (_, page) = ann.list_approvals("state=pending&order=amount&limit=2&count=true").await;
    assert_eq!(page["total"], 4, "{page:#}");
    assert_eq!(ann.decline_approval(&expected[1], "no").await.0, 200);
    let token = page["next_page_token"].as_str().unwrap();
    let (_, page) = ann
        .list_approvals(&format!(
            "state=pending&order=amount&limit=2&count=true&page_token={token}"
        ))
        .await;
    assert_eq!(page["approvals"][0]["id"], expected[2], "{page:#}");
    let (status, refused) = ann.list_approvals(&format!("state=pending&page_token={token}")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "page_token"));
}

/// The ids, the total, and the reasons for which the person may not decide each request.
async fn mine(person: &Client, query: &str) -> (Vec<String>, Value, Vec<Value>) {
    let page = person
        .list_approvals(&format!("state=pending&count=true&{query}"))
        .await
        .assert_status(200);
    let all = page["approvals"].as_array().unwrap();
    let ids = all.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let reasons = all.iter().map(|one| one["ineligibility"]["reason"].clone()).collect();
    (ids, page["total"].clone(), reasons)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_lists_exactly_what_they_may_decide() {
    let (app, client, _) = demo().await;
    let person = |role: &str, name: &str| app.person(TENANT, role, &format!("{name}@acme.example"));
    let (ann, ben) = (person("approver", "ann"), person("admin", "ben"));
    // The demonstration's head of finance owns the agent.
    let (owning, auditor) = (person("approver", "owner"), person("auditor", "aud"));
    let cedar = "@id(\"two\") @decision(\"require_approval\") @approvals(\"2\")\n\
                 forbid (principal, action, resource);";
    assert_eq!(app.owner().create_policy(new_policy("internal", cedar)).await.0, 201);
    let one = held(&client, &asking(12_000.0, "DE")).await;
    let two = held(&client, &asking(25_000.0, "DE")).await;
    // This key's maker is on the requesting side.
    let body = json!({"label": "ben's", "scopes": ["runtime:read", "runtime:write"]});
    let made = ben.create_api_key(body).await.assert_status(201);
    let his = app.client(made["secret"].as_str().unwrap());
    let third = held(&his, &asking(13_000.0, "DE")).await;
    let all = vec![one.clone(), two.clone(), third.clone()];
    let null = Value::Null;
    let (listed, total, reasons) = mine(&ann, "").await;
    assert_eq!((&listed, total, reasons), (&all, json!(3), vec![null.clone(); 3]));
    assert_eq!(mine(&ann, "for_me=true").await.0, all);
    let (_, _, reasons) = mine(&ben, "").await;
    assert_eq!(reasons, [null.clone(), null.clone(), json!("key_maker")]);
    let (listed, total, reasons) = mine(&ben, "for_me=true").await;
    assert_eq!((listed, total, reasons), (all[..2].to_vec(), json!(2), vec![null.clone(); 2]));
    let (_, _, reasons) = mine(&owning, "").await;
    assert_eq!(reasons, vec![json!("owner"); 3]);
    assert_eq!(mine(&owning, "for_me=true").await.0, Vec::<String>::new());
    let (_, _, reasons) = mine(&auditor, "").await;
    assert_eq!(reasons, vec![json!("role"); 3]);
    assert_eq!(mine(&auditor, "for_me=true").await.1, 0);
    // After the own approval, the request waits for another person.
    assert_eq!(ann.approve_approval(&two).await.0, 200);
    let (listed, total, _) = mine(&ann, "for_me=true").await;
    assert_eq!((listed, total), (vec![one.clone(), third.clone()], json!(2)));
    assert_eq!(mine(&ann, "").await.2[1], "acted_already");
    // The list has the same answer as each request.
    for client in [&ann, &ben, &owning, &auditor] {
        let (listed, _, reasons) = mine(client, "").await;
        for (id, reason) in listed.iter().zip(reasons) {
            let (_, read) = client.get(&format!("/api/v1/app/approvals/{id}")).await;
            assert_eq!(read["approval"]["ineligibility"]["reason"], reason, "{read:#}");
        }
    }
    let (_, page) = ann.list_approvals("").await;
    assert!(page["approvals"].as_array().unwrap().iter().all(|a| a["ineligibility"].is_null()));
    for query in ["for_me=true", "state=approved&for_me=true"] {
        let (status, refused) = ann.list_approvals(query).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, "for_me"), "{query}");
    }
}

/// A delegation that the held decision did not use also counts, if the request would use it now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegator_of_the_present_authority_may_not_decide() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let body = new_principal("human", "Zoe").with("email", "zoe@acme.example");
    let made = owner.create_principal(body).await.assert_status(201);
    let zoe = made["principal"]["id"].clone();
    let id = held(&client, &asking(25_000.0, "DE")).await;
    let approver = app.person(TENANT, "approver", "zoe@acme.example");
    assert_eq!(mine(&approver, "for_me=true").await.0, std::slice::from_ref(&id));
    let body = json!({"tenant_id": TENANT, "delegator_id": zoe, "delegate_id": BOT, "actions": ["payment.*"],
                      "purposes": ["invoice-settlement"], "jurisdictions": ["DE"],
                      "max_amount": "50000", "currency": "EUR"});
    owner.create_delegation(body).await.assert_status(201);
    // The request would still use the first delegation.
    assert_eq!(mine(&approver, "for_me=true").await.0, std::slice::from_ref(&id));
    let first = app.demo().await.delegation_id;
    owner.revoke_delegation(&first, Some("a test")).await.assert_status(200);
    let (listed, _, reasons) = mine(&approver, "").await;
    assert_eq!((listed, reasons), (vec![id.clone()], vec![json!("delegator")]));
    assert_eq!(mine(&approver, "for_me=true").await.0, Vec::<String>::new());
    let (_, read) = approver.get_approval(&id).await;
    assert_eq!(read["approval"]["ineligibility"]["reason"], "delegator", "{read:#}");
}
