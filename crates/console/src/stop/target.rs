//! The authority that a person wants to stop, with the records that define it.

use authority_model::proto::{
    delegation::GetDelegationRequest,
    registry::{GetPrincipalRequest, GetToolRequest},
};

use crate::kit::{names::is_agent, prelude::*, typed};

/// The members of the form, and of the address, in their order.
pub(super) const MEMBERS: [&str; 4] = ["subject", "delegation", "action", "tool"];

/// The authority to stop: all that matches every part. Without parts, all authority of the tenant.
pub(super) struct Target {
    pub(super) tenant_id: String,
    pub(super) subject: Option<Named>,
    /// The principal's display name, beside the name in its id.
    pub(super) about: Option<String>,
    pub(super) delegation: Option<Delegated>,
    /// Patterns of actions; the actions of the tool, if one is named.
    pub(super) actions: Vec<String>,
    pub(super) tool: Option<Named>,
    /// The requested parts: names of members, and values.
    pub(super) asked: Vec<(&'static str, String)>,
}

pub(super) struct Delegated {
    pub(super) id: String,
    pub(super) to: Named,
}

impl Target {
    pub(super) async fn read(view: &View, asked: &Pairs) -> Result<Self, Status> {
        let given = |name: &str| asked.one(name).map(str::trim).filter(|value| !value.is_empty());
        let mut target = Self {
            tenant_id: String::new(),
            subject: None,
            about: None,
            delegation: None,
            actions: given("action").map(str::to_owned).into_iter().collect(),
            tool: None,
            asked: MEMBERS
                .into_iter()
                .filter_map(|name| Some((name, given(name)?.to_owned())))
                .collect(),
        };
        let mut tenants = Vec::new();
        if let Some(id) = given("subject") {
            tenants.push(target.name_subject(view, id).await?);
        }
        if let Some(id) = given("delegation") {
            tenants.extend(target.name_delegation(view, id).await?);
        }
        if let Some(id) = given("tool") {
            tenants.push(target.name_tool(view, id).await?);
        }
        if tenants.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Status::invalid_argument(t::stop::SEVERAL_TENANTS));
        }
        let tenant_id = tenants.pop();
        let tenant_id = tenant_id.or_else(|| view.tenant().map(String::from));
        target.tenant_id = tenant_id.ok_or_else(|| Status::invalid_argument(t::stop::NO_TENANT))?;
        Ok(target)
    }

    /// Reads the principal, and returns its tenant.
    async fn name_subject(&mut self, view: &View, id: &str) -> Result<String, Status> {
        let request = GetPrincipalRequest { id: id.to_owned(), ..GetPrincipalRequest::default() };
        let found = view.calls.call(&request).await?;
        let name = called(&found.id, &found.display_name).to_owned();
        self.about = is_agent(&found.id).then_some(found.display_name);
        self.subject = Some(Named { name, id: found.id });
        Ok(found.tenant_id)
    }

    async fn name_delegation(&mut self, view: &View, id: &str) -> Result<Option<String>, Status> {
        let request = GetDelegationRequest { id: id.to_owned() };
        let found = view.calls.call(&request).await?;
        let names = Names::to_call(view, vec![found.delegate_id.clone()]).await;
        self.delegation = Some(Delegated { id: found.id, to: names.called(found.delegate_id) });
        Ok(found.tenant_id)
    }

    async fn name_tool(&mut self, view: &View, id: &str) -> Result<String, Status> {
        if !self.actions.is_empty() {
            return Err(Status::invalid_argument(t::stop::TOOL_AND_ACTION));
        }
        let request = GetToolRequest { id: id.to_owned() };
        let found = view.calls.call(&request).await?;
        if found.actions.is_empty() {
            return Err(Status::invalid_argument(t::stop::TOOL_WITHOUT_ACTIONS));
        }
        self.actions = found.actions;
        self.tool = Some(Named { name: found.name, id: found.id });
        Ok(found.tenant_id)
    }

    /// Whether a stop signal covers the whole target.
    pub(super) fn is_signal(&self) -> bool {
        self.subject.is_some() && self.delegation.is_none() && self.actions.is_empty()
    }

    /// Whether the stop is of all authority of the tenant.
    pub(super) fn is_whole_tenant(&self) -> bool {
        self.subject.is_none() && self.delegation.is_none() && !self.is_of_some_actions()
    }

    /// Whether other actions stay permitted.
    pub(super) fn is_of_some_actions(&self) -> bool {
        !self.actions.is_empty() && self.actions.iter().all(|action| action != "*")
    }

    /// The name of the target. For a whole tenant, a person types it to confirm.
    pub(super) fn name(&self) -> &str {
        let named = self.subject.as_ref().or(self.delegation.as_ref().map(|d| &d.to));
        let named = named.or(self.tool.as_ref()).map(|named| named.name.as_str());
        if self.is_whole_tenant() {
            return short(&self.tenant_id);
        }
        named.or(self.actions.first().map(String::as_str)).unwrap_or(short(&self.tenant_id))
    }

    /// Whether `typed` is the text of [`Self::name`], or its displayed form.
    pub(super) fn is_named(&self, typed: &str) -> bool {
        typed::is_named(self.name(), typed)
    }

    /// The requests that a stop denies if it is not a stop signal.
    pub(super) fn denies(&self) -> Safe<String> {
        let of = self.subject.as_ref().map(|subject| t::stop::of_and_below(&subject.name));
        let under = self.delegation.as_ref();
        let under = under.map(|under| t::stop::under_and_below(&under.id, &under.to.name));
        if self.actions.is_empty() {
            return t::stop::denies(t::stop::ALL_ACTIONS, of, under);
        }
        t::stop::denies(t::codes(&self.actions), of, under)
    }

    /// The stopped authority in a few words: `invoice-bot`, `payment.* under a delegation to
    /// invoice-bot`.
    pub(super) fn what(&self) -> String {
        if self.is_signal() {
            return self.name().to_owned();
        }
        let some = self.is_of_some_actions();
        let actions = if some { self.actions.join(", ") } else { t::stop::EVERYTHING.to_owned() };
        let of = match (&self.subject, &self.delegation) {
            (Some(subject), _) => t::stop::of_principal(actions, &subject.name),
            (None, Some(_)) => actions,
            (None, None) => t::stop::of_everybody(actions, short(&self.tenant_id)),
        };
        match &self.delegation {
            Some(delegation) => t::stop::under_delegation_to(of, &delegation.to.name),
            None => of,
        }
    }
}
