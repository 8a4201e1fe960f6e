//! Downloads: the API's own documents, read with the session's credential.

use super::filter::Filter;
use crate::kit::prelude::*;

/// `GET /console/decisions/export`: the decisions of a filter with their signed records, a line each, as the API's
/// export has them. With `format=csv`, as rows without the records.
pub(super) async fn export(view: View, query: Pairs) -> Response {
    let filter = Filter::of(&query);
    let is_csv = query.one("format") == Some("csv");
    // The export has no pages and no facts, and `id` is a parameter of the list's page.
    let own = ["page", "id", "fact"];
    let own = own.into_iter().filter(|name| query.all(name).any(|one| !one.is_empty()));
    let others = filter.ignored.iter().filter(|one| !(is_csv && *one == "format=csv")).cloned();
    let ignored: Vec<_> = own.map(str::to_owned).chain(others).collect();
    if !ignored.is_empty() {
        // A file cannot show that a filter was ignored.
        let text = t::decisions::export_ignores(ignored.join(", "));
        return view.answer(Err(Status::invalid_argument(text)));
    }
    let request = filter.request(&view);
    let since = request.since.map(|since| since.to_string());
    let until = request.until.map(|until| until.to_string());
    let members = [
        ("tenant_id", request.tenant_id),
        ("subject", request.subject),
        ("action", request.action),
        ("decision", request.decision),
        ("reason_code", request.reason_code),
        ("since", since),
        ("until", until),
        // The amounts of the rows are a part of the contexts.
        ("context", is_csv.then(|| "true".to_owned())),
    ];
    let given = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    let (accept, name) = if is_csv {
        ("text/csv", "decisions.csv")
    } else {
        ("application/x-ndjson", "decisions.ndjson")
    };
    let path = format!("{}?{query}", view.path("decisions:export"));
    let answered = view.calls.get(&path, accept).await;
    view.answer(answered.map(|answer| saved(answer, name)))
}

/// Makes browsers save the document as a file with this name.
pub(super) fn saved(mut answer: Response, name: &str) -> Response {
    let headers = answer.headers_mut();
    let disposition = format!("attachment; filename=\"{name}\"");
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
