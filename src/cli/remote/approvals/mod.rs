//! `approvals`: pending requests, their full content, and the decisions on them.

mod act;
mod double;
mod links;
mod show;

pub(super) use show::why;

use authority_console::headline;
use clap::{Args, Subcommand};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    connect::Connector,
    exact_action,
    list::{CountedPage, List, ListArgs},
    names::Names,
    record::ShowArgs,
    server::Server,
    stop::resolve,
    surface::SURFACE,
    tenant,
    text::{self, plain},
};
use crate::cli::{Actions, Failure, outcome::CommandOutput, view::View};

/// Without a subcommand: `list`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct Approvals {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs<Filter>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists requests for approval; pending requests without --state
    List(ListArgs<Filter>),
    /// Shows a request: its full content, why it was held, and the decision it would get now
    Show(ShowArgs),
    /// Approves exactly the displayed request
    Approve(act::Approve),
    /// Declines a request; a single decline ends it
    Decline(act::Decline),
    /// Withdraws an approved request that is not used yet
    Withdraw(act::Withdraw),
    /// Reverts a decline: the agent may send the request again
    Reopen(act::Reopen),
}

#[derive(Debug, Args, Serialize)]
struct Filter {
    /// Only requests of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<String>,
    /// Only requests in this state
    #[arg(long, default_value = "pending",
          value_parser = ["pending", "approved", "used", "declined", "expired", "void", ANY])]
    #[serde(serialize_with = "unless_any")]
    state: String,
    /// Only requests of this agent, by name or id
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only requests for exactly this action
    #[arg(long, value_name = "ACTION", value_parser = exact_action)]
    action: Option<String>,
    /// By the time of opening, or by expiry (pending or approved requests) [default: expiry for
    /// pending requests, otherwise newest]
    #[arg(long, value_parser = ["oldest", "newest", "expiry"])]
    order: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

/// No filter by state.
pub(super) const ANY: &str = "any";

fn unless_any<S: Serializer>(state: &str, to: S) -> Result<S::Ok, S::Error> {
    if state == ANY { to.serialize_none() } else { to.serialize_str(state) }
}

const APPROVALS: [&str; 2] = [SURFACE, "approvals"];

pub(super) const LIST: List = List {
    path: &APPROVALS,
    member: "approvals",
    columns: &["id", "state", "subject", "action", "reason_code", "given", "expires_at"],
};

/// The requests of the calling API key.
pub(super) const ASKED: List = List {
    path: &["v1", "approvals"],
    member: "approvals",
    columns: &["id", "state", "action", "expires_at"],
};

/// The agent, the action, the payee and purpose, the reason, the approvals and the expiry.
const COLUMNS: [&str; 8] = ["id", "state", "who", "what", "about", "why", "approvals", "until"];

impl Approvals {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        match self.command.unwrap_or(Command::List(self.list)) {
            Command::List(args) => list(args, connector).await,
            Command::Show(args) => show(args, connector).await,
            Command::Approve(args) => args.run(connector).await,
            Command::Decline(args) => args.run(connector).await,
            Command::Withdraw(args) => args.run(connector).await,
            Command::Reopen(args) => args.run(connector).await,
        }
    }
}

async fn list(
    ListArgs { mut filter, server }: ListArgs<Filter>,
    connector: &Connector<'_, impl Actions>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    if server.has_api_key() {
        return ASKED.page(&server, &filter).await;
    }
    let first = if filter.state == "pending" { "expiry" } else { "newest" };
    filter.order.get_or_insert_with(|| first.to_owned());
    resolve(&server, &mut filter.subject).await?;
    let mut found = LIST.find(&server, "", &filter).await?;
    let names =
        Names::of(&server, found.records.iter().map(|held| text::of(held, "subject"))).await;
    for held in &mut found.records {
        *held = row(held, &names, server.view());
    }
    let pending = if filter.state == ANY {
        "approvals".to_owned()
    } else {
        format!("{} approvals", filter.state)
    };
    Ok(found.shown(&pending, &COLUMNS))
}

fn row(held: &Value, names: &Names, view: View) -> Value {
    serde_json::json!({
        "id": held["id"],
        "state": held["state"],
        "who": names.beside(text::of(held, "subject")),
        "what": what(held),
        "about": about(held),
        "why": held["reason_code"],
        "approvals": progress(held),
        "until": view.until(text::of(held, "expires_at")),
    })
}

/// The action, and its amount if the context has one. A currency must be three capital letters;
/// otherwise, the amount is shown only in the full request. The reason is that the service's text
/// must not contain text of the agent.
fn what(held: &Value) -> String {
    let context = &held["request"]["context"];
    let is_code = |text: &str| text.len() == 3 && text.bytes().all(|c| c.is_ascii_uppercase());
    let amount = match (context["amount"].as_number(), &context["currency"]) {
        (Some(amount), Value::Null) => format!(" {amount}"),
        (Some(amount), Value::String(code)) if is_code(code) => format!(" {amount} {code}"),
        _ => String::new(),
    };
    plain(text::of(held, "action")) + &amount
}

/// The payee and the purpose, as in the console's list: `supplier.iban DE89; invoice RE-417; and 2
/// more`.
fn about(held: &Value) -> String {
    let Some(context) = held["request"]["context"].as_object() else { return String::new() };
    let (rows, more) = headline(context);
    let rows = rows.into_iter().map(|(name, value)| member(&name, &value));
    let more = (more > 0).then(|| format!("and {more} more"));
    rows.chain(more).collect::<Vec<_>>().join("; ")
}

/// A field of a request, within text of the service.
fn member(name: &str, value: &str) -> String {
    format!("{} {}", told(name), told(value))
}

/// A caller's text within text of the service. It is quoted if it contains characters that the
/// service uses as separators.
fn told(text: &str) -> String {
    let is_plain = |letter: char| !matches!(letter, ';' | ':' | ',' | '(' | ')' | '"' | '\\');
    if text.chars().all(is_plain) {
        return plain(text);
    }
    format!("\"{}\"", plain(text).replace('"', "\\\""))
}

/// `1 of 2`, and the roles that must be among the approvers.
fn progress(held: &Value) -> String {
    format!("{} of {}{}", held["given"], held["needed"], roles(held))
}

/// ` with legal`, or empty.
fn roles(of: &Value) -> String {
    let roles: Vec<_> =
        of["roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if roles.is_empty() { String::new() } else { plain(&format!(" with {}", roles.join(", "))) }
}

/// Reads a request by its id; returns the body of the response, and the request in it.
async fn read(server: &Server, id: &str) -> Result<(String, Value), Failure> {
    let path = [server.path(&APPROVALS), vec![id]].concat();
    let body = server.get(&path, &()).await?;
    let held = server.json(&body)?["approval"].take();
    if held.is_object() {
        Ok((body, held))
    } else {
        Err(server.unexpected("no `approval` in the response"))
    }
}

async fn show(
    ShowArgs { id, server, .. }: ShowArgs,
    connector: &Connector<'_, impl Actions>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let (body, held) = read(&server, &id).await?;
    // A script gets only the body.
    let text = if server.view().json { String::new() } else { show::text(&server, &held).await };
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_says_to_whom() {
        let context = json!({"amount": 5, "currency": "EUR", "note": "x".repeat(90),
                             "payee": "Müller\u{202e}", "iban": "DE89"});
        let shown = about(&json!({"request": {"context": context}}));
        assert!(shown.contains(r"payee Müller\u{202e}") && shown.contains("iban DE89"), "{shown}");
        assert_eq!(about(&json!({"request": null})), "");
        // Text of an agent must not look like text of the service.
        let context = json!({"payee": "Acme AG) by svc:agent:acme:other; declined: \"paid\""});
        assert_eq!(
            about(&json!({"request": {"context": context}})),
            r#"payee "Acme AG) by svc:agent:acme:other; declined: \"pai…""#
        );
    }

    #[test]
    fn a_currency_has_no_words_of_an_agent() {
        for (context, shown) in [
            (json!({"amount": 5, "currency": "EUR"}), "pay 5 EUR"),
            (json!({"amount": 5}), "pay 5"),
            (json!({"amount": 5, "currency": "EUR, approved by finance"}), "pay"),
            (json!({"amount": 5, "currency": ["EUR"]}), "pay"),
            (json!({"amount": "5 EUR"}), "pay"),
        ] {
            let held = json!({"action": "pay", "request": {"context": context}});
            assert_eq!(what(&held), shown, "{context}");
        }
    }
}
