//! The read commands: `tenants list`, `keys show`, ….
//!
//! They are derived. `collection.rs` names REST collections and finds their operations in the route table;
//! `command.rs` makes commands of them, with the protos' comments as help.

mod collection;
mod command;
mod record;
mod server;
mod table;
mod text;
mod words;

use std::io;

use authority_core::config::Config;
use gateway_rest::{Route, Segment};
use serde_json::Value;
use terminal_size::{Width, terminal_size_of};

use super::{Actions, Failure, outcome::CommandOutput};
use collection::{Collection, Listing};
use server::{Server, Where};

/// The paging members of a list's response and request.
const NEXT: &str = "next_page_token";
const PAGE: &str = "page_token";

/// What to read.
#[derive(Debug)]
pub(super) struct Read {
    collection: Collection,
    /// The id of one record; `None` for the list.
    id: Option<String>,
    query: Vec<(String, String)>,
    at: Where,
}

impl Read {
    /// Whether it reads from this configuration's own server.
    pub(super) fn is_here(&self) -> bool {
        self.at.is_here()
    }

    /// Reads from the service that was named.
    pub(super) async fn there(self) -> Result<CommandOutput, Failure> {
        let Self { collection, id, query, at } = self;
        ask(&at.named()?, &collection, id, query).await
    }

    /// Reads from the server that `config` describes.
    pub(super) async fn here(
        self,
        actions: &impl Actions,
        config: Config,
    ) -> Result<CommandOutput, Failure> {
        let Self { collection, id, query, at } = self;
        let listing = collection.list.as_ref().map(|list| list.route);
        let route = if id.is_some() { collection.item.or(listing) } else { listing };
        let path = route.map_or("/", |route| route.path);
        ask(&at.here(actions, config, path).await?, &collection, id, query).await
    }
}

async fn ask(
    server: &Server,
    collection: &Collection,
    id: Option<String>,
    query: Vec<(String, String)>,
) -> Result<CommandOutput, Failure> {
    match (id, collection.item, &collection.list) {
        (None, _, Some(listing)) => list(server, collection.name, listing, &query).await,
        (Some(id), Some(route), _) => show(server, route, &id, &query).await,
        (Some(id), None, Some(listing)) => pick(server, collection.name, listing, &id).await,
        // Not offered.
        (_, _, None) => Err(Failure::usage(format!("{} have no list", collection.name))),
    }
}

async fn list(
    server: &Server,
    name: &str,
    listing: &Listing,
    query: &[(String, String)],
) -> Result<CommandOutput, Failure> {
    let body = server.get(&path(listing.route, ""), query).await?;
    let (answer, records) = page(server, listing, &body)?;
    let mut aside = Vec::new();
    if records.is_empty() {
        aside.push(format!("no {name}"));
    }
    if let Some(total) = answer["total"].as_u64() {
        aside.push(format!("{total} in all"));
    }
    if let Some(next) = answer[NEXT].as_str() {
        let flag = command::typed(PAGE);
        aside.push(format!("there are more: repeat this with {flag} {}", text::plain(next)));
    }
    let room = terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    Ok(CommandOutput {
        text: table::text(listing.record, &records, room),
        json: Some(body),
        aside: aside.join("\n"),
    })
}

async fn show(
    server: &Server,
    route: &'static Route,
    id: &str,
    query: &[(String, String)],
) -> Result<CommandOutput, Failure> {
    let body = server.get(&path(route, id), query).await?;
    let mut answer = json(server, &body)?;
    if let Some(members) = answer.as_object_mut().filter(|_| route.ok) {
        members.shift_remove("ok");
    }
    let record = match route.envelope {
        "" => Some(&answer),
        envelope => answer.get(envelope),
    };
    let record = record.filter(|record| record.is_object());
    let text = record::text(record.ok_or_else(|| server.unexpected("no record in the response"))?);
    Ok(CommandOutput { text, json: Some(body), aside: String::new() })
}

/// Shows one record of a list that has no operation for it: looks through all pages.
async fn pick(
    server: &Server,
    name: &str,
    listing: &Listing,
    id: &str,
) -> Result<CommandOutput, Failure> {
    let member = collection::identity(listing.record).map_or("id", |field| field.name);
    let mut query = Vec::new();
    loop {
        let body = server.get(&path(listing.route, ""), &query).await?;
        let (answer, records) = page(server, listing, &body)?;
        if let Some(record) = records.iter().find(|record| record[member] == id) {
            let json = Some(record.to_string());
            return Ok(CommandOutput { text: record::text(record), json, aside: String::new() });
        }
        match answer[NEXT].as_str() {
            Some(next) => query = vec![(PAGE.to_owned(), next.to_owned())],
            None => {
                return Err(Failure::new(format!("not_found: no `{}` in {name}", text::plain(id))));
            }
        }
    }
}

/// A list's response, and the records taken out of it.
fn page(server: &Server, listing: &Listing, body: &str) -> Result<(Value, Vec<Value>), Failure> {
    let mut answer = json(server, body)?;
    match answer.get_mut(listing.member.name).map(Value::take) {
        Some(Value::Array(records)) => Ok((answer, records)),
        _ => Err(server.unexpected(&format!("no `{}` in the response", listing.member.name))),
    }
}

fn json(server: &Server, body: &str) -> Result<Value, Failure> {
    serde_json::from_str(body).map_err(|error| server.unexpected(&error.to_string()))
}

/// The segments of a route's path, with `id` for its variable.
fn path<'a>(route: &'static Route, id: &'a str) -> Vec<&'a str> {
    let segment = |segment: &Segment| match segment {
        Segment::Literal(text) => *text,
        Segment::One | Segment::Rest => id,
    };
    route.segments.iter().map(segment).collect()
}
