//! Other requests of the agent that may be the same payment, shown before an approval.

use authority_console::{Double, doubles};
use authority_model::{
    proto::approval::{Approval, ApprovalAct},
    wire::Json,
};
use authority_process::clock::Clock;
use chrono::DateTime;
use serde_json::{Value, json};

use crate::{
    commands::approvals::request::{APPROVALS, member, told},
    paint,
    server::Server,
    text::{self, plain},
};

/// The number of requests to compare: the agent's newest requests for the action. At most `PAGES`
/// pages are read.
const READ: u16 = 100;
const PAGES: usize = 5;

/// Returns the text about similar requests, for display below the request; empty if none is
/// similar.
pub(super) async fn text(server: &Server, held: &Value) -> String {
    if held["request"].is_null() {
        return String::new();
    }
    let Some((listed, is_partial)) = read(server, held).await else {
        return "\n\nWhether another request is for the same payment could not be determined."
            .to_owned();
    };
    let now = Clock::default().now();
    let (doubles, more) = doubles(&approval(held), listed.iter().map(approval).collect(), now);
    let partial = if is_partial {
        "\n\nOnly the agent's 100 most recent requests for this action were checked for duplicates."
    } else {
        ""
    };
    if doubles.is_empty() {
        return partial.to_owned();
    }
    let line = |double: &Double| {
        let other = listed.iter().find(|other| other["id"] == double.id.as_str());
        self::line(server, double, other.unwrap_or(&Value::Null))
    };
    let mut lines: Vec<_> = doubles.iter().map(line).collect();
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    format!("\n\nThis may be the same payment as another request:\n{}{partial}", lines.join("\n"))
}

/// Reads the agent's newest requests for the action, and whether there are older ones.
async fn read(server: &Server, held: &Value) -> Option<(Vec<Value>, bool)> {
    let mut filter = json!({
        "tenant_id": held["tenant_id"], "subject": held["subject"], "action": held["action"],
        "order": "newest", "limit": READ,
    });
    let mut newest = Vec::new();
    // A page of requests with large contexts may end before its limit.
    for _ in 0..PAGES {
        let body = server.get(&server.path(&APPROVALS), &filter).await.ok()?;
        let found = server.json(&body).ok()?;
        newest.extend(found["approvals"].as_array()?.iter().cloned());
        let Some(next) = found["next_page_token"].as_str() else { return Some((newest, false)) };
        if newest.len() >= usize::from(READ) {
            break;
        }
        filter["page_token"] = next.into();
    }
    Some((newest, true))
}

/// Returns the parts of a request that determine whether another request is similar.
fn approval(held: &Value) -> Approval {
    let member = |name: &str| text::of(held, name).to_owned();
    let time =
        |name| Some(DateTime::parse_from_rfc3339(text::of(held, name)).ok()?.to_utc().into());
    let acts = held["acts"].as_array().into_iter().flatten().map(|act| ApprovalAct {
        verdict: text::of(act, "verdict").to_owned(),
        comment: act["comment"].as_str().map(str::to_owned),
        ..ApprovalAct::default()
    });
    Approval {
        id: member("id"),
        state: member("state"),
        request: held["request"].as_object().cloned().map(Json),
        created_at: time("created_at"),
        expires_at: time("expires_at"),
        acts: acts.collect(),
        ..Approval::default()
    }
}

fn line(server: &Server, double: &Double, other: &Value) -> String {
    let state = paint::state(&plain(text::of(other, "state")));
    let asked = server.view().time(text::of(other, "created_at")).unwrap_or_default();
    let members = double.differs.iter();
    let differs = members.map(|(name, value)| member(name, value));
    let more = (double.more > 0).then(|| format!("and {} more", double.more));
    let differs: Vec<_> = differs.chain(more).collect();
    let there = match differs.as_slice() {
        [] => String::new(),
        some => format!("; there: {}", some.join(", ")),
    };
    let declined = double.declined.as_ref().map(|why| format!("; declined: {}", told(why)));
    format!(
        "  {}  {state}, requested at {asked}: same {}{there}{}",
        plain(&double.id),
        plain(&double.same),
        declined.unwrap_or_default(),
    )
}
