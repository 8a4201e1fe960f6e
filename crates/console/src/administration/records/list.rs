//! The kinds of records, and the records of one kind.

use authority_api::identity::who_may;
use prost_reflect::{DynamicMessage, Value as Proto};

use super::{
    call::{call, invalid},
    field::{Field, SubmittedForm, filters},
    shown::{made, state, titles},
};
use crate::kit::{
    kinds::{KINDS, Kind, Operation, Shape, listed, of_json, set_text, text},
    lists::{ListAddress, Pages},
    menu::Group,
    prelude::*,
};

/// The number of records on a page.
const PAGE: i32 = 50;

#[derive(Template)]
#[template(path = "records.html")]
struct KindsPage {
    frame: Frame,
    groups: Vec<Group>,
    /// The number of kinds that the person may list, and of all kinds.
    listed: usize,
    all: usize,
    /// The kinds of records that only other people create, and these people.
    closed: Vec<Closed>,
}

/// Kinds of records that the person may not create.
struct Closed {
    kinds: Vec<String>,
    /// The people who may create them.
    who: String,
}

pub(super) async fn kinds(view: View) -> Response {
    let frame = view.frame(t::RECORDS, Section::Records);
    let listed = KINDS.iter().filter(|kind| view.may(&kind.list.rpc)).count();
    let (groups, closed) = (view.menu(), closed(&view));
    page(StatusCode::OK, &KindsPage { frame, groups, listed, all: KINDS.len(), closed })
}

/// The kinds of records that this person can't create, grouped by the people who can.
fn closed(view: &View) -> Vec<Closed> {
    let mut found: Vec<Closed> = Vec::new();
    for kind in KINDS.iter() {
        let create = kind.operations.iter().find(|operation| operation.shape == Shape::Create);
        let create = create.filter(|create| !view.may(&create.rpc));
        let Some(who) = create.and_then(|create| who_may(&create.rpc)) else { continue };
        match found.iter_mut().find(|closed| closed.who == who) {
            Some(closed) => closed.kinds.push(kind.many.clone()),
            None => found.push(Closed { kinds: vec![kind.many.clone()], who }),
        }
    }
    found
}

struct Item {
    address: String,
    id: String,
    title: String,
    /// Set if several tenants are shown.
    tenant: Option<String>,
    state: String,
    made: Option<Moment>,
}

#[derive(Template)]
#[template(path = "record_list.html")]
struct ListPage {
    frame: Frame,
    kind: &'static Kind,
    /// The address of the list without filters.
    address: String,
    /// The operations that create a record of this kind.
    makers: Vec<&'static Operation>,
    /// Whether the person may try a request on the policies of the list.
    tries: bool,
    filters: Vec<Field>,
    is_filtered: bool,
    items: Vec<Item>,
    /// The parent of a new record as a field of its form, if the list shows the records of one
    /// parent.
    part: Option<String>,
    /// Parameters of the address that are not filters of this list. They have no effect.
    ignored: Vec<String>,
    /// The filter that the list requires.
    problem: Option<String>,
    /// The result of the person's last action.
    done: Option<String>,
    pages: Pages,
}

pub(super) async fn list(view: View, Path(kind): Path<String>, query: Pairs) -> Response {
    view.answer(records(&view, &kind, &query).await)
}

async fn records(view: &View, kind: &str, query: &Pairs) -> Result<Response, Status> {
    let kind = Kind::known(kind)?;
    let mut filled = SubmittedForm::read(filters(&kind.list.input, &kind.record), query, None);
    let request = request(view, kind, &filled, query.text("page"))?;
    let (answered, problem) = match call(view, &kind.list, &request, &[]).await {
        Ok(answered) => (Some(answered.message), None),
        // If the list requires a filter or a different one, the page requests it.
        Err(status) if status.code() == Code::InvalidArgument && !filled.fields.is_empty() => {
            let problem = Problem::of(&status);
            filled.note(problem.members.clone());
            (None, Some(problem))
        }
        Err(status) => return Err(status),
    };
    let ignored = ignored(query, &filled);
    let records = answered.as_ref().map(listed).unwrap_or_default();
    let titles = titles(view, &records).await;
    let next = answered.map(|answered| text(&answered, "next_page_token")).unwrap_or_default();
    let makers = kind.operations.iter().filter(|operation| {
        matches!(operation.shape, Shape::Create | Shape::Other) && view.may(&operation.rpc)
    });
    let part =
        filled.fields.iter().find(|field| kind.exception.part_of == Some(&field.member.name));
    let part = part.and_then(|field| {
        let whole = Field::asked(&field.member, query)?;
        Some(format!("{}={}", encoded(&field.name), encoded(whole)))
    });
    let is_filtered = !filled.values.is_empty();
    let status = problem.as_ref().filter(|_| is_filtered).map(|problem| problem.status);
    let is_policies = kind.singular == "policy";
    let section = if is_policies { Section::Policies } else { Section::Records };
    let path = format!("/console/records/{}", kind.path);
    let shown = ListPage {
        frame: view.frame(kind.many.clone(), section),
        tries: section == Section::Policies && view.may(rpc::SIMULATE_DECISION),
        makers: makers.collect(),
        items: records
            .iter()
            .zip(titles)
            .map(|(one, title)| item(view, kind, one, title))
            .collect(),
        done: kind.verb(done_word(view, &path, query)).map(|verb| verb.done.clone()),
        address: path,
        pages: address(kind, query).pages(query, Some(next.as_str()).filter(|n| !n.is_empty())),
        is_filtered,
        part,
        ignored,
        problem: problem.map(Problem::in_words),
        filters: filled.fields,
        kind,
    };
    Ok(page(status.unwrap_or(StatusCode::OK), &shown))
}

/// Parameters of the list's page besides its filters.
const OWN: [&str; 3] = ["page", "did", "proof"];

/// The names of parameters that the list does not have, each once.
fn ignored(query: &Pairs, filled: &SubmittedForm) -> Vec<String> {
    let is_known =
        |name: &str| OWN.contains(&name) || filled.fields.iter().any(|field| field.name == name);
    let mut names: Vec<_> =
        query.iter().map(|(name, _)| name.to_owned()).filter(|name| !is_known(name)).collect();
    names.sort();
    names.dedup();
    names
}

fn item(view: &View, kind: &Kind, record: &DynamicMessage, title: String) -> Item {
    Item {
        address: kind.address(&kind.key_of(record)),
        id: text(record, "id"),
        title,
        tenant: view.named_tenant(&text(record, "tenant_id")).filter(|name| !name.is_empty()),
        state: state(record),
        made: made(record, view.now),
    }
}

fn request(
    view: &View,
    kind: &Kind,
    filled: &SubmittedForm,
    token: &str,
) -> Result<DynamicMessage, Status> {
    let mut request = of_json(&kind.list.input, filled.values.clone()).map_err(invalid)?;
    if let Some(tenant) = view.shown_tenant() {
        set_text(&mut request, "tenant_id", tenant.as_str());
    }
    set_text(&mut request, "page_token", token);
    request.set_field_by_name("limit", Proto::I32(PAGE));
    Ok(request)
}

/// The address of the list with its filter.
fn address(kind: &Kind, query: &Pairs) -> ListAddress {
    let filter = query.iter().filter(|(name, _)| name.starts_with("m."));
    ListAddress::of(format!("/console/records/{}", kind.path), filter)
}
