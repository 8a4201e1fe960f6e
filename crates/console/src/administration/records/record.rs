//! One record: all members, the available operations, and the history.

use prost_reflect::DynamicMessage;

use super::{
    call::read,
    history::{Before, History},
    shown::{Datum, RecordView, name_links, state, titles},
};
use crate::{
    administration::budgets::Budgets,
    kit::{
        kinds::{Kind, Operation, Shape, json, text},
        prelude::*,
        unknown_names::unknown_targets,
    },
};

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage {
    frame: Frame,
    kind: &'static Kind,
    id: String,
    address: String,
    title: String,
    state: String,
    /// The result of the person's last action.
    done: Option<String>,
    /// The record's separate page, with its label.
    own_page: Option<(String, &'static str)>,
    /// The operations that the person may perform.
    verbs: Vec<&'static Operation>,
    /// The operations that another state of the record would permit, each with the reason; empty
    /// if there are none.
    barred: String,
    /// Names in the record that do not exist in the tenant.
    unknown: Vec<String>,
    record: RecordView,
    /// The budgets of a grant.
    budgets: Budgets,
    history: History,
    shows_older: bool,
}

pub(super) async fn show(
    view: View,
    Path((kind, id)): Path<(String, String)>,
    query: Pairs,
) -> Response {
    view.answer(shown(&view, &kind, &id, &query).await)
}

async fn shown(view: &View, kind: &str, id: &str, query: &Pairs) -> Result<Response, Status> {
    let kind = Kind::known(kind)?;
    let record = read(view, kind, id).await?.message;
    let verbs = kind.operations.iter().filter(|operation| {
        matches!(operation.shape, Shape::Edit | Shape::Verb) && view.may(&operation.rpc)
    });
    let (mut offered, mut barred) = (Vec::new(), Vec::new());
    for verb in verbs {
        match kind.barrier(&verb.word, &record) {
            Some(why) => barred.push(t::records::barred(&verb.label, why)),
            None => offered.push(verb),
        }
    }
    let id = text(&record, "id");
    let mut found = RecordView::of(view, &record);
    name_links(view, found.written.iter_mut().map(|shown| &mut shown.datum)).await;
    let history = History::of(view, kind, &id, query.text("older")).await;
    let title = titles(view, std::slice::from_ref(&record)).await.concat();
    let frame = view.frame(title.clone(), Section::Records);
    let shown = RecordPage {
        frame: stopping(frame, kind, &id, &title),
        address: kind.address(&kind.key_of(&record)),
        title,
        unknown: unknown(view, kind, &record).await,
        state: state(&record),
        done: did(kind, done_word(view, &kind.address(&kind.key_of(&record)), query)),
        own_page: own_page(kind, &record, &id),
        verbs: offered,
        barred: barred.join("; "),
        record: found,
        budgets: budgets(view, kind, &record, &id).await,
        history,
        shows_older: query.one("older").is_some(),
        kind,
        id,
    };
    Ok(page(StatusCode::OK, &shown))
}

/// The record's separate page. Only tools of MCP servers have a definition.
fn own_page(kind: &Kind, record: &DynamicMessage, id: &str) -> Option<(String, &'static str)> {
    let is_plain_tool = kind.singular == "tool" && !json(record).contains_key("mcp");
    kind.own_page(id).filter(|_| !is_plain_tool)
}

/// The names in a policy's target that do not exist in the tenant.
async fn unknown(view: &View, kind: &Kind, record: &DynamicMessage) -> Vec<String> {
    if kind.singular != "applies_to" {
        return Vec::new();
    }
    let targets = [text(record, "target_class")];
    unknown_targets(view, &text(record, "tenant_id"), &targets).await
}

/// The budgets of a delegation or a `uses` grant.
async fn budgets(view: &View, kind: &Kind, record: &DynamicMessage, id: &str) -> Budgets {
    let holder = match kind.singular.as_str() {
        "delegation" => text(record, "delegate_id"),
        "uses" => text(record, "agent_id"),
        _ => return Budgets::default(),
    };
    Budgets::read(view, holder.into(), id).await
}

/// Makes the header's Stop button lead to the page that stops the record, if it can be stopped.
fn stopping(frame: Frame, kind: &Kind, id: &str, title: &str) -> Frame {
    match kind.singular.as_str() {
        "principal" => frame.stopping("subject", id, called(id, title)),
        "delegation" => frame.stopping("delegation", id, t::agents::THIS_DELEGATION),
        "tool" => frame.stopping("tool", id, title),
        _ => frame,
    }
}

fn did(kind: &Kind, word: &str) -> Option<String> {
    let operation = kind.verb(word).or_else(|| kind.maker(word))?;
    Some(operation.done.clone())
}
