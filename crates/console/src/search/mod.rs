//! The search over ids, names and declared facts, with its results in groups.

mod results;

use authority_ids::{DecisionId, IdParts};
use authority_model::proto::runtime::{SearchRequest, SearchResponse};
use results::{Group, groups, page_of_id};

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new().route("/console/search", get(search))
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    /// The text, as it was typed.
    sought: String,
    groups: Vec<Group>,
    /// The reason why the search did not run.
    problem: Option<String>,
    /// Whether facts are not searched, because no tenant is chosen.
    needs_tenant: bool,
    /// The time before which decisions are found by their facts.
    indexed_until: Option<Moment>,
}

async fn search(view: View, query: Pairs) -> Response {
    let sought = query.text("q").trim();
    if let Some(path) = of_id(&view, sought) {
        return see(&path);
    }
    view.answer(found(&view, sought).await)
}

/// The page of the decision or the approval request with this id. It may be in the archive, which is
/// not searched.
fn of_id(view: &View, text: &str) -> Option<String> {
    if IdParts::is(text, "approval") && view.may(rpc::GET_APPROVAL) {
        return Some(format!("/console/approvals/{}", encoded(text)));
    }
    let id = format!("{}{}", DecisionId::PREFIX, short(text));
    let is_decision = DecisionId::check(&id).is_ok() && view.may(rpc::INSPECT_DECISION);
    is_decision.then(|| format!("/console/decisions/{id}"))
}

async fn found(view: &View, sought: &str) -> Result<Response, Status> {
    if !view.may(rpc::SEARCH) {
        return Err(refused(view, rpc::SEARCH));
    }
    let request =
        SearchRequest { q: sought.to_owned(), tenant_id: view.shown_tenant().map(String::from) };
    let answer = match sought {
        "" => Ok(SearchResponse::default()),
        _ => view.calls.call(&request).await,
    };
    let (answer, problem) = match answer {
        Ok(answer) => (answer, None),
        Err(status) if is_of_search(&status) => {
            (SearchResponse::default(), Some(Problem::of(&status).in_words()))
        }
        Err(status) => return Err(status),
    };
    if let Some(path) = page_of_id(sought, &answer) {
        return Ok(see(&path));
    }
    let title =
        if sought.is_empty() { t::SEARCH.to_owned() } else { t::overview::search_of(sought) };
    let shown = SearchPage {
        frame: view.frame(title, Section::None),
        indexed_until: Moment::of_time(answer.indexed_until, view.now),
        groups: groups(view, sought, answer),
        needs_tenant: view.tenant().is_none(),
        problem,
        sought: sought.to_owned(),
    };
    Ok(page(StatusCode::OK, &shown))
}
