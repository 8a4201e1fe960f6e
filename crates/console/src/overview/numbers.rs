//! The numbers of pending requests, stops, failing endpoints and expiring records. Each has the
//! list that it counts.

use authority_ids::TenantId;
use authority_model::proto::{
    approval::{ListApprovalsRequest, ListApprovalsResponse},
    events::{ListMessageChannelsRequest, MessageChannel},
};
use chrono::{SecondsFormat, TimeDelta};

use crate::{
    administration::records::count,
    kit::{kinds::plain, prelude::*},
};

/// How long before its end a key or a delegation is counted, in days.
const ENDING_DAYS: i64 = 14;

/// A number of the page.
pub(super) struct Number {
    pub(super) label: &'static str,
    /// The number, or the reason why it is unknown.
    pub(super) value: String,
    /// More about it, with an address.
    pub(super) note: Option<(String, String)>,
    /// The list that it counts.
    pub(super) address: String,
    /// Whether somebody should look at it.
    pub(super) calls_for_action: bool,
}

impl Number {
    fn of(label: &'static str, counted: Result<i32, Status>, address: String) -> Self {
        Self {
            label,
            value: counted
                .as_ref()
                .map_or_else(|_| t::overview::UNKNOWN.to_owned(), i32::to_string),
            note: None,
            address,
            calls_for_action: counted.is_ok_and(|count| count > 0),
        }
    }
}

/// The numbers that the person's role may read.
pub(super) async fn numbers(view: &View) -> Vec<Number> {
    let end = |at: DateTime<Utc>| Value::from(at.to_rfc3339_opts(SecondsFormat::Micros, true));
    let after = ("expires_after", end(view.now));
    let before = ("expires_before", end(view.now + TimeDelta::days(ENDING_DAYS)));
    let of_keys = [("status", Value::from("active")), after.clone(), before.clone()];
    let of_delegations = [("state", Value::from("active")), after, before];
    let of_endpoints = [("failing", Value::from(true))];
    let (yours, waiting, stopped, failing, channels, keys, delegations) = tokio::join!(
        yours(view),
        waiting(view),
        stopped(view),
        records(view, t::overview::FAILING_ENDPOINTS, "webhook-endpoints", &of_endpoints),
        failing_channels(view),
        records(view, t::overview::ENDING_KEYS, "api-keys", &of_keys),
        records(view, t::overview::ENDING_DELEGATIONS, "delegations", &of_delegations)
    );
    let all = [yours, waiting, stopped, failing, channels, keys, delegations];
    all.into_iter().flatten().collect()
}

/// The pending requests that this person may decide.
async fn yours(view: &View) -> Option<Number> {
    if !view.may(rpc::LIST_APPROVALS) || !view.may(rpc::APPROVE_APPROVAL) {
        return None;
    }
    let counted = pending(view, true).await.map(|listed| listed.total.unwrap_or_default());
    Some(Number::of(
        t::overview::WAITING_FOR_YOU,
        counted,
        "/console/approvals?yours=yes".to_owned(),
    ))
}

/// The pending requests, and the oldest of them.
async fn waiting(view: &View) -> Option<Number> {
    if !view.may(rpc::LIST_APPROVALS) {
        return None;
    }
    let listed = pending(view, false).await;
    let oldest = listed.as_ref().ok().and_then(|listed| listed.approvals.first());
    let note = oldest.and_then(|oldest| {
        let asked = Moment::of_time(oldest.created_at, view.now)?;
        let address = format!("/console/approvals/{}", encoded(&oldest.id));
        Some((t::overview::oldest(asked.distance), address))
    });
    let counted = listed.map(|listed| listed.total.unwrap_or_default());
    let number = Number::of(t::overview::WAITING, counted, "/console/approvals".to_owned());
    Some(Number { note, ..number })
}

/// The oldest pending request, and the number of all. `for_me` limits them to the requests that this
/// person may decide.
async fn pending(view: &View, for_me: bool) -> Result<ListApprovalsResponse, Status> {
    let request = ListApprovalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some("pending".to_owned()),
        // A request past its expiry time has expired, even if the state is not stored yet.
        expires_after: Some(view.now.into()),
        limit: Some(1),
        count: true,
        for_me,
        ..ListApprovalsRequest::default()
    };
    view.calls.call(&request).await
}

/// The stop signals and quarantines in force.
async fn stopped(view: &View) -> Option<Number> {
    let active = Map::from_iter([("state".to_owned(), Value::from("active"))]);
    let tenant = view.shown_tenant().map(TenantId::as_str);
    let (signals, quarantines) = tokio::join!(
        count(view, "stop-signals", tenant, &active),
        count(view, "quarantines", tenant, &active)
    );
    let (signals, quarantines) = (signals?, quarantines?);
    let counted = signals.and_then(|signals| quarantines.map(|others| signals + others));
    Some(Number::of(t::stop::STOPPED_NOW, counted, "/console/stop".to_owned()))
}

/// The records of a kind with these filters.
async fn records(
    view: &View,
    label: &'static str,
    path: &str,
    filters: &[(&str, Value)],
) -> Option<Number> {
    let members = filters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let tenant = view.shown_tenant().map(TenantId::as_str);
    let counted = count(view, path, tenant, &members.collect()).await?;
    let query = filters.iter().map(|(name, value)| format!("m.{name}={}", encoded(&plain(value))));
    let query = query.collect::<Vec<_>>().join("&");
    Some(Number::of(label, counted, format!("/console/records/{path}?{query}")))
}

/// The failing channels for messages: the person's own channels, and for an admin also the tenant's
/// channels. `None` without channels.
async fn failing_channels(view: &View) -> Option<Number> {
    if !view.may(rpc::LIST_MESSAGE_CHANNELS) {
        return None;
    }
    let listed = view.calls.call(&ListMessageChannelsRequest {}).await;
    let channels = listed.map(|listed| listed.message_channels);
    if channels.as_ref().is_ok_and(Vec::is_empty) {
        return None;
    }
    let failing = |channel: &&MessageChannel| channel.failing_since.is_some();
    let counted = channels.map(|all| all.iter().filter(failing).count());
    let counted = counted.map(|count| i32::try_from(count).unwrap_or(i32::MAX));
    Some(Number::of(t::overview::FAILING_CHANNELS, counted, "/console/messages".to_owned()))
}
