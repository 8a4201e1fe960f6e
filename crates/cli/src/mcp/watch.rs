//! Follows decisions by the service's streams.

use std::time::Duration;

use authority_client::Next;
use tokio::sync::mpsc::UnboundedSender;

use crate::mcp::{
    clock::{Moment, within},
    event::{CallId, Event},
    service::{Service, StreamFailure},
};

/// The pause before a lost stream is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// The end of one stream of stop conditions.
enum End {
    Stopped(String),
    Lost(String),
}

/// Watches the stop conditions of a permission, until one fires or the watch is lost for too long.
pub(crate) async fn stop_conditions(
    service: &Service,
    call: CallId,
    decision_id: &str,
    events: &UnboundedSender<Event>,
) {
    let (mut opened, mut last) = (false, Moment::now());
    loop {
        let end = one_stream(service, call, decision_id, events, &mut opened, &mut last).await;
        let lost = last.elapsed() >= service.patience.lost;
        let event = match end {
            End::Stopped(condition) => Event::Stopped(call, condition),
            End::Lost(why) if !opened => Event::Unwatched(call, why),
            End::Lost(_) if lost => Event::Stopped(call, "watch.lost".to_owned()),
            End::Lost(_) => {
                tokio::time::sleep(PAUSE.min(service.patience.lost)).await;
                continue;
            }
        };
        // The relay has ended if nobody receives it.
        let _ = events.send(event);
        return;
    }
}

async fn one_stream(
    service: &Service,
    call: CallId,
    decision_id: &str,
    events: &UnboundedSender<Event>,
    opened: &mut bool,
    last: &mut Moment,
) -> End {
    let mut lines = match service.stream(decision_id, "watch-stop-conditions").await {
        Ok(lines) => lines,
        Err(StreamFailure::Refused(why)) if *opened => return End::Stopped(why),
        Err(StreamFailure::Refused(why) | StreamFailure::Lost(why)) => return End::Lost(why),
    };
    loop {
        let limit = if *opened { service.patience.lost } else { service.patience.open };
        let line = match within(limit, *last, lines.next()).await {
            None => return End::Lost("the stream is silent".to_owned()),
            Some(Err(error)) => return End::Lost(error.to_string()),
            Some(Ok(Next::End)) => return End::Lost("the stream ended".to_owned()),
            Some(Ok(Next::Lost(why))) => return End::Lost(why),
            Some(Ok(Next::Line(_, line))) => line,
        };
        match line["kind"].as_str() {
            // It may have come before the machine slept.
            Some("heartbeat") if last.elapsed() >= service.patience.lost => {
                return End::Lost("the stream was silent".to_owned());
            }
            Some("heartbeat") => {
                *last = Moment::now();
                if !*opened {
                    *opened = true;
                    let _ = events.send(Event::Watching(call));
                }
            }
            Some("stopped") => {
                let condition = line["stop_condition"].as_str().unwrap_or("unknown condition");
                return End::Stopped(condition.to_owned());
            }
            _ => return End::Lost("the stream has an unknown event".to_owned()),
        }
    }
}

/// Follows a held decision until its approval has a final state.
pub(crate) async fn approval(
    service: &Service,
    call: CallId,
    decision_id: &str,
    events: &UnboundedSender<Event>,
) {
    loop {
        if let Ok(mut lines) = service.stream(decision_id, "watch").await {
            while let Ok(Next::Line(_, line)) = lines.next().await {
                if let Some(state) =
                    line["approval_state"].as_str().filter(|state| *state != "pending")
                {
                    let _ = events.send(Event::Approval(call, state.to_owned()));
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
