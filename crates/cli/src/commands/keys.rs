//! `keys list`, `keys show`.

use clap::Subcommand;

use crate::{
    connect::Connector,
    list::{List, ListArgs},
    outcome::{CommandOutput, Failure},
    record::{self, ShowArgs},
    text::plain,
};

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Lists keys by status (active, rotating, retired, revoked), then newest first
    List(ListArgs<()>),
    /// Reads a key, by its `kid`
    Show(ShowArgs),
}

pub(super) const LIST: List = List {
    path: &["api", "v1", "keys"],
    member: "keys",
    columns: &["kid", "status", "alg", "purpose", "custody_provider", "managed", "created_at"],
};

impl Keys {
    pub async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => show(args, connector).await,
        }
    }
}

/// Finds the key in the list: no operation reads a single key, and the list has no pages.
async fn show(
    ShowArgs { id: kid, server, .. }: ShowArgs,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let keys = LIST.find(&server, "", &()).await?.records;
    let key = keys.iter().find(|key| key["kid"] == kid);
    let key =
        key.ok_or_else(|| Failure::new(format!("not_found: no `{}` in keys", plain(&kid))))?;
    let text = record::text(key, server.view());
    Ok(CommandOutput { text, json: Some(key.to_string()), ..CommandOutput::default() })
}
