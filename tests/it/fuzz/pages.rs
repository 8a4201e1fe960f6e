//! Lists are read page by page while records are created. Each record that existed before must
//! appear once.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    ground::{Ground, Side, bytes, is_create},
    routes::{Route, message},
    values::sample,
};
use crate::support::wire::{Caller, encoded};

/// The number of records that are created while a list is read.
const MEANWHILE: usize = 5;

/// Returns whether the route is a list with pages.
pub(super) fn is_paged(route: &Route) -> bool {
    let has = |name| route.input.get_field_by_name(name).is_some();
    route.verb == "GET" && route.variables().is_empty() && has("limit") && has("page_token")
}

/// Returns the fault in the list's pages, if any.
pub(super) async fn try_pages(
    owner: &Caller,
    ground: &Ground,
    routes: &[Route],
    list: &Route,
) -> Option<String> {
    let complaint = |what: String| Some(format!("GET {}: {what}", list.path));
    let (status, body) = owner.rest("GET", &format!("{}?limit=500", list.path), None).await;
    if status == 400 {
        return None; // a list with a required filter
    }
    let Some(before) = records(&body) else { return complaint(format!("no list: {body}")) };
    let create = routes.iter().find(|route| is_create(route) && route.path == list.path);
    let (mut seen, mut token, mut pages) = (BTreeMap::new(), String::new(), 0);
    loop {
        if let Some(create) = create.filter(|_| pages < MEANWHILE) {
            plant(owner, ground, create).await;
        }
        let page = format!("{}?limit=1&page_token={}", list.path, encoded(&token));
        let (status, body) = owner.rest("GET", &page, None).await;
        let Some(found) = records(&body).filter(|_| status == 200) else {
            return complaint(format!("page {pages}: {status} {body}"));
        };
        if found.len() > 1 {
            return complaint(format!("a page of {} records for a limit of 1", found.len()));
        }
        for record in found {
            *seen.entry(record).or_insert(0) += 1;
        }
        pages += 1;
        match body["next_page_token"].as_str() {
            Some(next) if pages < 1000 => next.clone_into(&mut token),
            Some(_) => return complaint("its pages never end".to_owned()),
            None => break,
        }
    }
    if let Some((twice, _)) = seen.iter().find(|(_, times)| **times > 1) {
        return complaint(format!("shows twice: {twice}"));
    }
    let lost = before.iter().find(|record| !seen.contains_key(*record));
    lost.and_then(|lost| complaint(format!("leaves out: {lost}")))
}

/// Returns the list's records as text, without the volatile fields.
fn records(body: &Value) -> Option<Vec<String>> {
    let mut list = body.as_object()?.values().find(|member| member.is_array())?.clone();
    super::ground::still(&mut list);
    list.as_array().map(|list| list.iter().map(Value::to_string).collect())
}

/// Creates another record, if the sample permits a second one.
async fn plant(owner: &Caller, ground: &Ground, create: &Route) {
    let field = create.input.get_field_by_name(&create.body);
    let Some(of) = field.and_then(|field| message(&field)) else { return };
    for whole in [false, true] {
        let body = Value::Object(sample(&of, whole, &Side(ground, 0)));
        if owner.rest("POST", &create.path, Some(bytes(&body))).await.0 == 201 {
            return;
        }
    }
}
