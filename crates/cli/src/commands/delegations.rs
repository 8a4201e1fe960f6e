//! `delegations list`, `delegations show`, `delegations renew`, `delegations revoke`.

use authority_client::{SURFACE, Surface};
use authority_ids::{Delegation, DelegationRef, PrincipalRef, TenantRef};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::{
    arguments::{id, tenant},
    blast::Blast,
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    list::{CountedPage, List, ListArgs},
    names::last_part,
    outcome::{CommandOutput, Failure},
    paint,
    record::{Record, ShowArgs},
    text::{self, plain},
    times::{self, End},
};

#[derive(Debug, Subcommand)]
pub enum Delegations {
    /// Lists delegations, oldest first
    List(ListArgs<Filter>),
    /// Reads a delegation
    Show(ShowArgs),
    /// Replaces a delegation by one with another expiry time, without a gap; as the owner, or with an
    /// agent's API key
    Renew(Renew),
    /// Ends a delegation and all below it, at once and permanently
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub struct Renew {
    /// The delegation's id
    #[arg(value_parser = id::<Delegation>)]
    id: DelegationRef,
    /// The new end: a day, a time of RFC 3339, or `never`
    #[arg(long, value_name = "TIME", value_parser = times::end)]
    expires_at: End,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// The delegation's id
    #[arg(value_parser = id::<Delegation>)]
    id: DelegationRef,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    /// Only delegations of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// Only delegations granted by this principal
    #[arg(long, value_name = "ID")]
    delegator_id: Option<PrincipalRef>,
    /// Only delegations held by this principal
    #[arg(long, value_name = "ID")]
    delegate_id: Option<PrincipalRef>,
    /// Only delegations directly below this delegation
    #[arg(long, value_name = "ID")]
    parent_id: Option<DelegationRef>,
    /// Only delegations in the chains of this root delegation
    #[arg(long, value_name = "ID")]
    root_id: Option<DelegationRef>,
    /// Only delegations in this state
    #[arg(long, value_parser = ["active", "suspended", "revoked"])]
    state: Option<String>,
    /// Only delegations that end at or after this time: RFC 3339
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    expires_after: Option<String>,
    /// Only delegations that end before this time
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    expires_before: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

const DELEGATIONS: [&str; 2] = [SURFACE, "delegations"];

pub(super) const LIST: List = List {
    path: &DELEGATIONS,
    member: "delegations",
    columns: &[
        "id",
        "state",
        "delegator_id",
        "delegate_id",
        "actions",
        "purposes",
        "expires_at",
        "created_at",
    ],
};

const RECORD: Record = Record { path: &DELEGATIONS, envelope: Some("delegation") };

impl Delegations {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(args) => LIST.show(args, connector).await,
            Self::Show(args) => RECORD.show(args, connector).await,
            Self::Renew(args) => args.run(connector).await,
            Self::Revoke(args) => args.run(connector).await,
        }
    }
}

impl Renew {
    async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        // A tenant's people can't renew. The refusal of the owner's operation shows who can.
        let delegations = if server.opens(Surface::Tenant) {
            Surface::Owner.path(&DELEGATIONS)
        } else {
            server.path(&DELEGATIONS)
        };
        let path = [delegations, vec![self.id.as_str(), "renew"]].concat();
        let body = server.post(&path, &json!({"expires_at": self.expires_at})).await?;
        let answer = server.json(&body)?;
        let successor = &answer["delegation"];
        let (id, state) = (text::of(successor, "id"), text::of(successor, "state"));
        let ends = match successor["expires_at"].as_str() {
            Some(end) => format!("ends {}", server.view().until(end)),
            None => "has no end".to_owned(),
        };
        let text = format!("{}  {}  {ends}", plain(id), paint::state(&plain(state)));
        Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
    }
}

impl Revoke {
    async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        let path = [server.path(&DELEGATIONS), vec![&self.id]].concat();
        if !self.confirm.yes {
            let found = server.json(&server.get(&path, &()).await?)?;
            let holder = text::of(&found["delegation"], "delegate_id");
            let blast = Blast::of_delegation(&server, &self.id).await?;
            let shown = format!(
                "Revoking {}, which {} holds on {}, cannot be undone.\n{}",
                plain(&self.id),
                plain(holder),
                server.address(),
                blast.text(),
            );
            self.confirm.type_name(&shown, "revoke it", &plain(last_part(holder)))?;
        }
        let body = server
            .post(&[&path[..], &["revoke"]].concat(), &json!({"reason": self.reason}))
            .await?;
        let state = text::of(&server.json(&body)?["delegation"], "state").to_owned();
        let text = format!("{}  {}", plain(&self.id), paint::state(&plain(&state)));
        Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
    }
}
