//! Rules for endpoints that the proto does not define. They are in the crate `authority-webhook`.

use authority_model::{
    proto::events::{RetryPolicy, WebhookEndpoint},
    validate::Violations,
};
use authority_webhook::{
    destination::{EndpointUrl, UrlRules},
    event_types::{EventType, Selection},
    filter::Filter,
    retry::{self, Schedule, Strategy},
};

/// Checks the URL and normalises it. The proto's rule reports a URL that is not an http URL.
pub(super) fn url(endpoint: &mut WebhookEndpoint, rules: &UrlRules, found: &mut Violations) {
    let scheme = endpoint.url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !scheme.is_some_and(|scheme| ["https", "http"].contains(&scheme.as_str())) {
        return;
    }
    match EndpointUrl::parse(&endpoint.url, rules) {
        Ok(url) => url.as_str().clone_into(&mut endpoint.url),
        Err(fault) => found.add("url", fault.to_string()),
    }
}

/// Checks the event types, and the filter on events of these types.
pub(super) fn events(endpoint: &WebhookEndpoint, found: &mut Violations) {
    let selection = Selection::of_record(&endpoint.event_types);
    let types: Vec<_> = match &selection {
        Ok(selection) => selection.families().map(EventType::members).collect(),
        // With invalid event types, the filter is checked against all event types.
        Err(_) => EventType::families().map(EventType::members).collect(),
    };
    if let Err(fault) = selection {
        found.add("event_types", fault.to_string());
    }
    if let Some(filter) = &endpoint.filter
        && let Err(fault) = Filter::parse(filter, &types)
    {
        found.add("filter", fault.to_string());
    }
}

pub(super) fn retry_policy(endpoint: &WebhookEndpoint, found: &mut Violations) {
    let policy = endpoint.retry_policy.as_ref().map(policy).unwrap_or_default();
    if let Err(fault) = Schedule::try_from(&policy) {
        found.add(&format!("retry_policy.{}", fault.member()), fault.to_string());
    }
}

/// Converts the policy. A number below zero becomes 0, which is never valid.
fn policy(given: &RetryPolicy) -> retry::RetryPolicy {
    let positive = |number: i32| u32::try_from(number).unwrap_or_default();
    let delays = Some(&given.schedule_seconds).filter(|delays| !delays.is_empty());
    retry::RetryPolicy {
        strategy: match given.strategy.as_deref() {
            Some("exponential") => Some(Strategy::Exponential),
            _ => Some(Strategy::Schedule),
        },
        schedule_seconds: delays.map(|delays| delays.iter().copied().map(positive).collect()),
        base_seconds: given.base_seconds.map(positive),
        factor: given.factor,
        max_delay_seconds: given.max_delay_seconds.map(positive),
        max_attempts: given.max_attempts.map(positive),
        jitter: given.jitter,
    }
}
