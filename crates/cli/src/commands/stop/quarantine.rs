//! `quarantine`: suspends a part of a tenant's authority.

use authority_client::SURFACE;
use authority_ids::{DelegationRef, PrincipalRef, TenantRef};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::{
    actor,
    arguments::tenant,
    blast::Blast,
    commands::stop::suspension::made,
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    list::{CountedPage, List, ListArgs},
    names::last_part,
    outcome::{CommandOutput, Failure},
    record::{Record, ShowArgs},
    server::Server,
    tenant::meant,
    text::plain,
    unknown_names,
};

/// The filters of a quarantine. Authority that matches all filters is suspended. Without a filter,
/// all authority of the tenant is suspended.
#[derive(Debug, Args)]
pub struct Quarantine {
    /// Only for this principal and all principals that act under it: an agent's name, or an id
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only for actions of this pattern, such as `payment.*`
    #[arg(long, value_name = "PATTERN")]
    action: Option<String>,
    /// Only under this delegation and the delegations below it
    #[arg(long, value_name = "ID")]
    delegation: Option<DelegationRef>,
    /// The tenant, by id or slug [default: the subject's or the delegation's; for an
    /// action, the owner's only tenant]
    #[arg(long = "tenant", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
pub enum Quarantines {
    /// Lists quarantines, oldest first
    List(ListArgs<Filter>),
    /// Reads a quarantine
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub struct Filter {
    /// Only quarantines of this tenant, by id or slug
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// Only quarantines in this state
    #[arg(long, value_parser = ["active", "released"])]
    state: Option<String>,
    /// Only quarantines of this principal: an agent's name, or an id
    #[arg(long = "subject", visible_alias = "subject-id", value_name = "ID")]
    subject_id: Option<String>,
    /// Only quarantines of exactly this pattern of actions
    #[arg(long, value_name = "PATTERN")]
    action: Option<String>,
    /// Only quarantines of this delegation
    #[arg(long = "delegation", visible_alias = "delegation-id", value_name = "ID")]
    delegation_id: Option<DelegationRef>,
    #[command(flatten)]
    #[serde(flatten)]
    page: CountedPage,
}

const QUARANTINES: [&str; 2] = [SURFACE, "quarantines"];

pub(crate) const LIST: List = List {
    path: &QUARANTINES,
    member: "quarantines",
    columns: &[
        "id",
        "state",
        "subject_id",
        "action",
        "delegation_id",
        "reason",
        "created_by",
        "created_at",
    ],
};

pub(super) const RECORD: Record = Record { path: &QUARANTINES, envelope: Some("quarantine") };

impl Quarantines {
    pub(crate) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::List(ListArgs { mut filter, server }) => {
                let server = connector.connect(server).await?;
                actor::resolve(&server, &mut filter.subject_id).await?;
                LIST.page(&server, &filter).await
            }
            Self::Show(args) => RECORD.show(args, connector).await,
        }
    }
}

impl Quarantine {
    pub(crate) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server.clone()).await?;
        let subject = match &self.subject {
            Some(named) => Some(actor::resolved(&server, named, self.confirm).await?),
            None => None,
        };
        let known = subject.as_deref().or(self.delegation.as_deref());
        let is_part = known.is_some() || self.action.is_some();
        let tenant_id = match self.tenant_id.clone() {
            // The user must name a whole tenant.
            None if is_part => meant(&server, known).await,
            named => named,
        };
        let actions: Vec<&str> = self.action.as_deref().into_iter().collect();
        let warning =
            unknown_names::warnings(&server, tenant_id.as_deref(), &actions, &[]).await.pop();
        if !self.confirm.yes {
            let tenant = tenant_id.as_deref().map_or("the whole tenant", last_part);
            let shown = self.shown(&server, tenant_id.as_deref(), subject.as_ref(), tenant).await?;
            let shown = warning.iter().cloned().chain([shown]).collect::<Vec<_>>().join("\n");
            if is_part {
                self.confirm.agree(&shown, "Suspend it?")?;
            } else {
                self.confirm.type_name(&shown, "suspend it", tenant)?;
            }
        }
        let body = json!({"tenant_id": tenant_id, "subject_id": subject, "action": self.action,
                          "delegation_id": self.delegation, "reason": self.reason});
        let mut output = made(&server, &QUARANTINES, "quarantine", &body).await?;
        if let Some(warning) = warning.filter(|_| self.confirm.yes) {
            output.aside = format!("{warning}\n{}", output.aside);
        }
        Ok(output)
    }

    /// Describes the suspended authority, and the affected delegations.
    async fn shown(
        &self,
        server: &Server,
        tenant_id: Option<&str>,
        subject: Option<&PrincipalRef>,
        tenant: &str,
    ) -> Result<String, Failure> {
        let scope = json!({"tenant_id": tenant_id, "subject_id": subject,
                           "delegation_id": self.delegation, "actions": self.action});
        let blast = Blast::of_stop(server, &scope).await?;
        let mut parts = Vec::new();
        if let Some(subject) = subject {
            parts.push(format!("of {} and all principals that act under it", blast.name(subject)));
        }
        if let Some(action) = &self.action {
            parts.push(format!("for {}", plain(action)));
        }
        if let Some(delegation) = &self.delegation {
            parts.push(format!("under {} and the delegations below it", plain(delegation)));
        }
        if parts.is_empty() {
            parts.push(format!("of {}", plain(tenant)));
        }
        let at = server.address();
        let what = parts.join(", ");
        Ok(format!(
            "All authority {what} is suspended on {at} until it is released.\n{}",
            blast.text()
        ))
    }
}
