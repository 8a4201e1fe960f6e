//! `decisions watch`: one decision until it is final, or all decisions of a tenant as they are
//! made.
//!
//! A broken stream is opened again at the same place.

use std::{io, io::Write, time::Duration};

use authority_client::{Next, SURFACE};
use authority_ids::{Decision, DecisionRef, TenantRef};
use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    arguments::{id, tenant},
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    paint,
    server::Server,
    tenant::meant,
    text::{self, plain},
    view::View,
};

/// The pauses before each new attempt to connect, in seconds. The last applies to all further
/// attempts.
const PAUSES: [u64; 4] = [1, 2, 5, 10];
/// The event types of decisions. Some exist as events only if a subscriber names their types.
const TYPES: [&str; 6] = [
    "svc.decision.allowed",
    "svc.decision.denied",
    "svc.decision.requires_approval",
    "svc.decision.approved",
    "svc.decision.declined",
    "svc.decision.expired",
];

#[derive(Debug, Args)]
pub struct Watch {
    /// A decision: if held, until its outcome; if allowed, until the permission ends [default: all
    /// as they are made]
    #[arg(value_parser = id::<Decision>)]
    id: Option<DecisionRef>,
    /// The tenant to watch, by id or slug [default: the owner's only tenant]
    #[arg(long = "tenant", value_name = "ID", value_parser = tenant(), conflicts_with = "id")]
    tenant_id: Option<TenantRef>,
    #[command(flatten)]
    server: ServerArgs,
}

/// The watched decisions, and the current position.
enum Followed<'a> {
    Held(&'a DecisionRef),
    Allowed(&'a DecisionRef),
    /// The events of a tenant after this sequence.
    All {
        tenant_id: Option<TenantRef>,
        after: Option<u64>,
    },
}

impl Watch {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        let mut followed = match self.id.as_ref() {
            Some(id) if is_allowed(&server, id).await? => Followed::Allowed(id),
            Some(id) => Followed::Held(id),
            None => {
                let tenant_id = match self.tenant_id {
                    None => meant(&server, None).await,
                    named => named,
                };
                Followed::All { tenant_id, after: None }
            }
        };
        let mut losses = 0;
        loop {
            let why = match followed.once(&server, &mut losses).await {
                Ok(None) => return Ok(CommandOutput::nothing()),
                Ok(Some(why)) => why,
                // The stream was open before: the service may be restarting.
                Err(failure) if losses > 0 && failure.is_unreached() => failure.to_string(),
                Err(failure) => return Err(failure),
            };
            let pause = PAUSES.get(losses).or(PAUSES.last()).copied().unwrap_or_default();
            losses += 1;
            eprintln!("the connection ended: {}; reconnecting in {pause} s", plain(&why));
            sleep(Duration::from_secs(pause)).await;
        }
    }
}

async fn is_allowed(server: &Server, id: &DecisionRef) -> Result<bool, Failure> {
    let found = server.json(&server.get(&["v1", "decisions", id], &()).await?)?;
    Ok(matches!(text::of(&found, "decision"), "allow" | "allow_with_constraints"))
}

impl Followed<'_> {
    /// Follows the decision, or the tenant's decisions, over one connection. Returns `None` if no
    /// more updates can follow, otherwise why the connection ended.
    async fn once(
        &mut self,
        server: &Server,
        losses: &mut usize,
    ) -> Result<Option<String>, Failure> {
        let id = match self {
            Self::Held(id) => format!("{id}:watch"),
            Self::Allowed(id) => format!("{id}:watch-stop-conditions"),
            Self::All { .. } => String::new(),
        };
        let mut lines = match self {
            Self::All { tenant_id, after } => {
                let query = json!({"tenant_id": tenant_id, "after": after, "event_type": TYPES});
                server.lines(&server.path(&[SURFACE, "events:stream"]), &query).await?
            }
            _ => server.lines(&["v1", "decisions", &id], &()).await?,
        };
        loop {
            match server.next(&mut lines).await? {
                Next::Line(line, value) => {
                    *losses = 0;
                    self.reached(&value);
                    let shown = if server.view().json {
                        Some(line)
                    } else {
                        self.shown(&value, server.view())
                    };
                    let written = shown.map_or(Ok(()), |shown| writeln!(io::stdout(), "{shown}"));
                    if written.is_err() || self.is_last(&value) {
                        return Ok(None);
                    }
                }
                Next::End => match self {
                    // The last update was already sent.
                    Self::Held(_) => return Ok(None),
                    _ => return Ok(Some("the service ended it".to_owned())),
                },
                Next::Lost(why) => return Ok(Some(why)),
            }
        }
    }

    fn reached(&mut self, value: &Value) {
        if let Self::All { after, .. } = self {
            *after = value["sequence"].as_u64().or(*after);
        }
    }

    fn is_last(&self, value: &Value) -> bool {
        matches!(self, Self::Allowed(_)) && value["kind"] == "stopped"
    }

    /// A line for a person; `None` if the line only keeps the connection alive.
    fn shown(&self, value: &Value, view: View) -> Option<String> {
        match self {
            Self::All { .. } => event(&value["event"], view),
            Self::Allowed(_) => Some(permission(value, view)),
            Self::Held(_) => Some(update(value)),
        }
    }
}

fn event(event: &Value, view: View) -> Option<String> {
    let kind = event["event_type"].as_str()?.trim_start_matches("svc.decision.");
    let at = view.time(text::of(event, "occurred_at")).unwrap_or_default();
    let data = &event["data"];
    let about = [(data, "decision_id"), (event, "reason_code"), (data, "approval_id")];
    let about = about.map(|(from, member)| plain(text::of(from, member)));
    let about: Vec<_> = about.into_iter().filter(|about| !about.is_empty()).collect();
    Some(format!("{at}  {:17} {}", plain(kind), about.join("  ")))
}

fn permission(value: &Value, view: View) -> String {
    let at = view.time(text::of(value, "at")).unwrap_or_default();
    match value["stop_condition"].as_str() {
        None => format!("{at}  in force"),
        Some(condition) => {
            format!(
                "{at}  stopped  {}  {}",
                plain(condition),
                plain(text::of(value, "reason_code"))
            )
        }
    }
}

fn update(value: &Value) -> String {
    let mut parts = vec![paint::state(&plain(text::of(value, "decision")))];
    for (heading, member) in
        [("", "approval_state"), ("used by ", "used_by"), ("outcome ", "outcome")]
    {
        if let Some(text) = value[member].as_str() {
            parts.push(format!("{heading}{}", plain(text)));
        }
    }
    parts.join("  ")
}
