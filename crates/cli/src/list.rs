//! Shows a page of a list as a table.

use std::io;

use clap::{Args, value_parser};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::Value;

use crate::{
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    refusal::flag,
    server::Server,
    table,
    text::plain,
    view::View,
};

/// The segment of a path that a record's id replaces.
pub(crate) const ID: &str = "{id}";
const NEXT_PAGE_TOKEN: &str = "next_page_token";

/// An operation of the service that lists records, and the columns of its table.
pub struct List {
    /// The segments of its path. [`ID`] stands for the id of the parent record, `SURFACE` for the
    /// surface of the credential.
    pub path: &'static [&'static str],
    /// The member of its response that contains the records.
    pub member: &'static str,
    /// The members of a record that are columns. The first is its id.
    pub columns: &'static [&'static str],
}

/// A response of the service with records.
pub(crate) struct RecordPage {
    /// The body as received.
    body: String,
    /// The other members of the response.
    rest: Value,
    pub(crate) records: Vec<Value>,
    view: View,
}

/// The arguments of a list: its filter and its server.
#[derive(Debug, Args)]
pub struct ListArgs<F: Args> {
    #[command(flatten)]
    pub(crate) filter: F,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The page to show.
#[derive(Debug, Args, Serialize)]
pub(crate) struct Page {
    /// The maximum number of records on a page; 100 when left out
    #[arg(long, value_name = "LIMIT", value_parser = value_parser!(u16).range(1..=500))]
    limit: Option<u16>,
    /// `next_page_token` of the previous page
    // A token may begin with a dash.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    page_token: Option<String>,
}

/// The page to show, of a list that can be counted.
#[derive(Debug, Args, Serialize)]
pub(crate) struct CountedPage {
    /// Whether to count all matches
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

impl List {
    /// Shows a page of the records that match the filter.
    pub(crate) async fn show<F: Args + Serialize>(
        &self,
        ListArgs { filter, server }: ListArgs<F>,
        connector: &Connector<'_>,
    ) -> Result<CommandOutput, Failure> {
        self.page(&connector.connect(server).await?, &filter).await
    }

    /// Like [`show`](Self::show), with a connected server.
    pub(crate) async fn page(
        &self,
        server: &Server,
        filter: &impl Serialize,
    ) -> Result<CommandOutput, Failure> {
        Ok(self.find(server, "", filter).await?.shown(self.member, self.columns))
    }

    /// Finds a page of the records that match the filter. `id` is the id of the parent record, if
    /// the path contains one.
    pub(crate) async fn find(
        &self,
        server: &Server,
        id: &str,
        filter: &impl Serialize,
    ) -> Result<RecordPage, Failure> {
        let mut path = server.path(self.path);
        path.iter_mut().filter(|segment| **segment == ID).for_each(|segment| *segment = id);
        RecordPage::of(server, server.get(&path, filter).await?, self.member)
    }
}

impl RecordPage {
    /// Reads the records in a member of this response.
    pub(crate) fn of(server: &Server, body: String, member: &str) -> Result<Self, Failure> {
        let mut rest = server.json(&body)?;
        match rest.get_mut(member).map(Value::take) {
            Some(Value::Array(records)) => Ok(Self { body, rest, records, view: server.view() }),
            _ => Err(server.unexpected(format!("no `{member}` in the response"))),
        }
    }

    /// The token of the next page.
    pub(crate) fn next(&self) -> Option<&str> {
        self.rest[NEXT_PAGE_TOKEN].as_str()
    }

    /// Shows a table of these members of the records and, below it, how to continue.
    pub(crate) fn shown(self, name: &str, columns: &[&str]) -> CommandOutput {
        let mut aside = Vec::new();
        if self.records.is_empty() {
            aside.push(format!("no {}", name.replace('_', " ")));
        }
        if let Some(total) = self.rest["total"].as_u64() {
            aside.push(format!("{total} in all"));
        }
        if let Some(next) = self.next() {
            let flag = flag("page_token");
            aside.push(format!("there are more: repeat this with {flag} {}", plain(next)));
        }
        let width = tcgetwinsize(io::stdout()).map(|size| size.ws_col).ok();
        // A terminal of unknown size has no columns.
        let width = width.filter(|columns| *columns > 0);
        CommandOutput {
            text: table::text(columns, &self.records, width, self.view),
            json: Some(self.body),
            aside: aside.join("\n"),
            ..CommandOutput::default()
        }
    }
}
