//! The deliveries of a webhook endpoint: the events, the responses, and the deliveries that can be
//! sent again.

use authority_model::proto::events::{
    GetWebhookEndpointRequest, ListWebhookDeliveriesRequest, RedriveWebhookDeliveryRequest,
    TestWebhookEndpointRequest, WebhookDelivery, WebhookEndpoint,
};
use authority_webhook::retry::ErrorClass;
use axum::routing::post;

use crate::kit::{
    lists::{ListAddress, ListLink, Pages},
    prelude::*,
};

/// The number of deliveries on a page.
const PAGE: i32 = 50;
const STATES: [(&str, &str); 5] = [
    ("", t::ALL),
    ("open", t::administration::TO_BE_SENT),
    ("delivered", t::administration::DELIVERED),
    ("dead", t::administration::GAVE_UP),
    ("cancelled", t::administration::DELIVERY_CANCELLED),
];

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/webhooks/{id}", get(show))
        .route("/console/webhooks/{id}/test", post(test))
        .route("/console/webhooks/{id}/redrive", post(redrive))
}

struct Delivery {
    delivery: WebhookDelivery,
    /// The state in words.
    label: &'static str,
    attempts: Vec<Attempt>,
}

struct Attempt {
    number: i32,
    at: Option<Moment>,
    /// `503 after 120 ms`, or the error if there was no answer.
    outcome: String,
    answer: Option<Argument>,
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    frame: Frame,
    endpoint: WebhookEndpoint,
    /// The end of the time in which only probes are sent, and the reason.
    held: Option<(Moment, &'static str)>,
    address: String,
    /// The deliveries by state.
    links: Vec<ListLink>,
    deliveries: Vec<Delivery>,
    pages: Pages,
    /// The result of the person's last action.
    done: Option<String>,
    failed: Option<Argument>,
    may_test: bool,
    may_redrive: bool,
    key: String,
}

async fn show(view: View, Path(id): Path<String>, query: Pairs) -> Response {
    view.answer(shown(&view, &id, &query, None, None).await)
}

async fn shown(
    view: &View,
    id: &str,
    query: &Pairs,
    done: Option<String>,
    failed: Option<Argument>,
) -> Result<Response, Status> {
    let request =
        GetWebhookEndpointRequest { id: id.to_owned(), ..GetWebhookEndpointRequest::default() };
    let endpoint = view.calls.call(&request).await?;
    let state = query.text("state");
    let request = ListWebhookDeliveriesRequest {
        id: id.to_owned(),
        state: (!state.is_empty()).then(|| state.to_owned()),
        limit: Some(PAGE),
        page_token: query.text("page").to_owned(),
        ..ListWebhookDeliveriesRequest::default()
    };
    let listed = view.calls.call(&request).await?;
    let address = format!("/console/webhooks/{}", encoded(id));
    let list = ListAddress::of(&*address, [("state", state)]);
    let is_redriven = done_word(view, &address, query) == "redrive";
    let done = done.or_else(|| is_redriven.then(|| t::administration::WILL_BE_SENT.to_owned()));
    let frame = view.frame(t::administration::deliveries_to(&endpoint.url), Section::Records);
    let problem = failed.as_ref().map(|failed| format!("{}.", failed.path));
    let shown = WebhookPage {
        frame: frame.failed_if(t::administration::NOT_DELIVERED, problem, None),
        deliveries: listed.deliveries.into_iter().map(|one| delivery(view, one)).collect(),
        links: STATES.map(|(word, label)| list.link(label, "state", word)).into(),
        pages: list.pages(query, listed.next_page_token.as_deref()),
        held: held(view, &endpoint),
        endpoint,
        address,
        done,
        failed,
        may_test: view.may(rpc::TEST_WEBHOOK_ENDPOINT),
        may_redrive: view.may(rpc::REDRIVE_WEBHOOK_DELIVERY),
        key: idempotency_key()?,
    };
    Ok(page(StatusCode::OK, &shown))
}

fn held(view: &View, endpoint: &WebhookEndpoint) -> Option<(Moment, &'static str)> {
    let until = Moment::of_time(endpoint.held_until, view.now).filter(|until| !until.past)?;
    let why = match endpoint.held_by.as_deref() {
        Some("retry_after") => t::administration::BY_RETRY_AFTER,
        _ => t::administration::AFTER_FAILURES,
    };
    Some((until, why))
}

fn delivery(view: &View, mut delivery: WebhookDelivery) -> Delivery {
    let attempts = std::mem::take(&mut delivery.attempts).into_iter().map(|attempt| Attempt {
        number: attempt.attempt,
        at: Moment::of_time(attempt.at, view.now),
        outcome: outcome(attempt.status, attempt.error_class.as_deref(), attempt.latency_ms),
        answer: attempt.body_start.map(|body| Argument::new("", body)),
    });
    let state = STATES.iter().find(|(state, _)| *state == delivery.state);
    let label = state.map_or(t::overview::UNKNOWN, |(_, label)| *label);
    Delivery { attempts: attempts.collect(), label, delivery }
}

fn outcome(status: Option<i32>, error: Option<&str>, latency: Option<i32>) -> String {
    let what = match (status, error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => {
            return ErrorClass::named(error).map_or_else(|| error.to_owned(), |c| c.to_string());
        }
        (None, None) => t::administration::NO_ANSWER.to_owned(),
    };
    match latency {
        Some(latency) => t::administration::after(what, latency),
        None => what,
    }
}

/// Sends a test event to the endpoint, and shows its response.
async fn test(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    let tested = async {
        let request = TestWebhookEndpointRequest { id: id.clone() };
        let answer = view.calls.call_once(&request, form.one("key")).await?;
        let outcome = outcome(answer.status, answer.error_class.as_deref(), answer.latency_ms);
        let none = Pairs::default();
        if answer.delivered {
            let done = Some(t::administration::test_delivered(outcome));
            shown(&view, &id, &none, done, None).await
        } else {
            let start = answer.body_start.unwrap_or_default();
            let failed = Argument::new(outcome, start);
            shown(&view, &id, &none, None, Some(failed)).await
        }
    };
    view.answer_act(t::administration::TEST_NOT_SENT, tested.await)
}

/// Sends one delivery again.
async fn redrive(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    let redriven = async {
        let request = RedriveWebhookDeliveryRequest { id: form.text("delivery").to_owned() };
        let sent = view.calls.call_once(&request, form.one("key"));
        let _: WebhookDelivery = sent.await?;
        Ok(see_done(&view, &format!("/console/webhooks/{}", encoded(&id)), "redrive"))
    };
    view.answer_act(t::administration::NOT_SENT_AGAIN, redriven.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_without_an_answer_says_what_happened() {
        let none = outcome(None, Some("connect"), Some(0));
        assert!(none.starts_with("no connection: nothing listens there"), "{none}");
        assert_eq!(outcome(Some(503), Some("http"), Some(120)), "503 after 120 ms");
        assert_eq!(outcome(None, None, None), "no answer");
    }
}
