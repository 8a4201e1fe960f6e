//! The page of a list, as a table.

use std::io;

use clap::{Args, value_parser};
use serde::Serialize;
use serde_json::Value;
use terminal_size::{Width, terminal_size_of};

use super::{
    connect::{Connector, ServerArgs},
    server::{Server, flag},
    table,
    text::plain,
};
use crate::cli::{Actions, Failure, outcome::CommandOutput};

const NEXT_PAGE_TOKEN: &str = "next_page_token";

/// An operation of the service that lists records, and what a table shows of them.
pub(super) struct List {
    /// The segments of its path.
    pub(super) path: &'static [&'static str],
    /// The member of its response that holds the records.
    pub(super) member: &'static str,
    /// The members of a record that are columns; the first is its id.
    pub(super) columns: &'static [&'static str],
}

/// The arguments of a list: which records, and where.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs<F: Args> {
    #[command(flatten)]
    filter: F,
    #[command(flatten)]
    server: ServerArgs,
}

/// Which page.
#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct Page {
    /// The maximum number of records on a page; 100 when left out
    #[arg(long, value_name = "LIMIT", value_parser = value_parser!(u16).range(1..=500))]
    limit: Option<u16>,
    /// `next_page_token` of the previous page
    // It may begin with a dash.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    page_token: Option<String>,
}

/// Which page, of a list that can be counted.
#[derive(Debug, Args, Serialize)]
pub(in crate::cli) struct CountedPage {
    /// Whether to count all matches
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

impl List {
    /// A page of the records that match the filter.
    pub(super) async fn show<F: Args + Serialize>(
        &self,
        ListArgs { filter, server }: ListArgs<F>,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        let server = connector.connect(server).await?;
        let body = server.get(self.path, &filter).await?;
        let (response, records) = self.records(&server, &body)?;
        let mut aside = Vec::new();
        if records.is_empty() {
            aside.push(format!("no {}", self.member));
        }
        if let Some(total) = response["total"].as_u64() {
            aside.push(format!("{total} in all"));
        }
        if let Some(next) = response[NEXT_PAGE_TOKEN].as_str() {
            let flag = flag("page_token");
            aside.push(format!("there are more: repeat this with {flag} {}", plain(next)));
        }
        let width = terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns);
        Ok(CommandOutput {
            text: table::text(self.columns, &records, width),
            json: Some(body),
            aside: aside.join("\n"),
        })
    }

    /// A response, and the records taken out of it.
    pub(super) fn records(
        &self,
        server: &Server,
        body: &str,
    ) -> Result<(Value, Vec<Value>), Failure> {
        let mut response = server.json(body)?;
        match response.get_mut(self.member).map(Value::take) {
            Some(Value::Array(records)) => Ok((response, records)),
            _ => Err(server.unexpected(format!("no `{}` in the response", self.member))),
        }
    }
}
