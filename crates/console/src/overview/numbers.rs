//! The numbers of pending requests, stops, failing endpoints and expiring records. Each has the
//! list that it counts.

use authority_model::proto::{
    approval::{ListApprovalsRequest, ListApprovalsResponse},
    delegation::ListDelegationsRequest,
    events::{ListMessageChannelsRequest, ListWebhookEndpointsRequest, MessageChannel},
    keys::ListApiKeysRequest,
    registry::{ListQuarantinesRequest, ListStopSignalsRequest},
};
use chrono::{SecondsFormat, TimeDelta};

use crate::kit::prelude::*;

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
    let (yours, waiting, stopped, failing, channels, keys, delegations) = tokio::join!(
        yours(view),
        waiting(view),
        stopped(view),
        failing(view),
        failing_channels(view),
        ending_keys(view),
        ending_delegations(view)
    );
    let all = [yours, waiting, stopped, failing, channels, keys, delegations];
    all.into_iter().flatten().collect()
}

fn tenant(view: &View) -> Option<String> {
    view.shown_tenant().map(String::from)
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
        tenant_id: tenant(view),
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
    if !view.may(rpc::LIST_STOP_SIGNALS) || !view.may(rpc::LIST_QUARANTINES) {
        return None;
    }
    let (tenant_id, state) = (tenant(view), Some("active".to_owned()));
    let signals = ListStopSignalsRequest {
        tenant_id: tenant_id.clone(),
        state: state.clone(),
        limit: Some(1),
        count: true,
        ..ListStopSignalsRequest::default()
    };
    let quarantines = ListQuarantinesRequest {
        tenant_id,
        state,
        limit: Some(1),
        count: true,
        ..ListQuarantinesRequest::default()
    };
    let counted = tokio::try_join!(view.calls.call(&signals), view.calls.call(&quarantines));
    let counted = counted.map(|(signals, quarantines)| {
        signals.total.unwrap_or_default() + quarantines.total.unwrap_or_default()
    });
    Some(Number::of(t::stop::STOPPED_NOW, counted, "/console/stop".to_owned()))
}

/// The webhook endpoints that are disabled or fail.
async fn failing(view: &View) -> Option<Number> {
    if !view.may(rpc::LIST_WEBHOOK_ENDPOINTS) {
        return None;
    }
    let request = ListWebhookEndpointsRequest {
        tenant_id: tenant(view),
        failing: true,
        limit: Some(1),
        count: true,
        ..ListWebhookEndpointsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let counted = listed.map(|listed| listed.total.unwrap_or_default());
    let address = "/console/records/webhook-endpoints?m.failing=true".to_owned();
    Some(Number::of(t::overview::FAILING_ENDPOINTS, counted, address))
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

/// The next days, as the filter of a list.
fn ending(view: &View) -> (DateTime<Utc>, DateTime<Utc>) {
    (view.now, view.now + TimeDelta::days(ENDING_DAYS))
}

/// The address of a list of records that end soon. `active` is the filter for active ones.
fn list_of_ending(view: &View, kind: &str, active: &str) -> String {
    let (after, before) = ending(view);
    let text = |at: DateTime<Utc>| encoded(&at.to_rfc3339_opts(SecondsFormat::Micros, true));
    let (after, before) = (text(after), text(before));
    format!("/console/records/{kind}?{active}&m.expires_after={after}&m.expires_before={before}")
}

async fn ending_keys(view: &View) -> Option<Number> {
    if !view.may(rpc::LIST_API_KEYS) {
        return None;
    }
    let (after, before) = ending(view);
    let request = ListApiKeysRequest {
        tenant_id: tenant(view),
        status: Some("active".to_owned()),
        expires_after: Some(after.into()),
        expires_before: Some(before.into()),
        limit: Some(1),
        count: true,
        ..ListApiKeysRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let counted = listed.map(|listed| listed.total.unwrap_or_default());
    let address = list_of_ending(view, "api-keys", "m.status=active");
    Some(Number::of(t::overview::ENDING_KEYS, counted, address))
}

async fn ending_delegations(view: &View) -> Option<Number> {
    if !view.may(rpc::LIST_DELEGATIONS) {
        return None;
    }
    let (after, before) = ending(view);
    let request = ListDelegationsRequest {
        tenant_id: tenant(view),
        state: Some("active".to_owned()),
        expires_after: Some(after.into()),
        expires_before: Some(before.into()),
        limit: Some(1),
        count: true,
        ..ListDelegationsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let counted = listed.map(|listed| listed.total.unwrap_or_default());
    let address = list_of_ending(view, "delegations", "m.state=active");
    Some(Number::of(t::overview::ENDING_DELEGATIONS, counted, address))
}
