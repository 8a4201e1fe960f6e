//! Capability grants, found by the agent, the used record and the record's kind.

use authority_model::{proto::registry::*, schema::uses, service::UsesService};

use authority_decision::{Bounds, facts::Counts};

use crate::{
    delegations::counters::{self, Holder, Windows},
    flow::{
        prelude::*,
        relationship::{Related, check_beginning, tenant_of},
    },
    mcp::record_rules,
};

/// The `used_kind` of a grant with an action pattern as its `used_id`.
const ACTION: &str = "action";

impl RecordRow for Uses {
    type List = ListUsesRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListUsesRequest) -> uses::BoxedQuery<'_, Pg> {
        let mut query = uses::table.into_boxed();
        if let Some(agent_id) = &by.agent_id {
            query = query.filter(uses::agent_id.eq(agent_id));
        }
        if let Some(used_kind) = &by.used_kind {
            query = query.filter(uses::used_kind.eq(used_kind));
        }
        query
    }

    fn defaults(&mut self) {
        self.allowed.get_or_insert(1);
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::span(("since", self.since), ("until", self.until), found);
        if let Some(problem) = self.constraints_json.as_deref().and_then(rules::constraints) {
            found.add("constraints_json", problem);
        }
        if self.used_kind == ACTION
            && let Some(problem) = rules::pattern(&self.used_id)
        {
            found.add("used_id", problem);
        }
    }

    fn warn(&mut self) {
        let bounds = bounds(self);
        self.warnings = rules::doubts(bounds.currency.as_deref(), &bounds.jurisdictions);
    }

    async fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        let tenant = tenant_of::<Principal>(db, within, &self.agent_id).await?;
        self.tenant_id = tenant.ok_or_else(|| Error::unknown("agent_id", &self.agent_id))?;
        Ok(())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if let Some(was) = was {
            check_beginning("uses.since", self.since)?;
            let holder = Holder { tenant_id: &self.tenant_id, id: &self.id };
            let (before, after) = (bounds(was).currency, bounds(self).currency);
            let currencies = (before.as_deref(), after.as_deref());
            if let Some(problem) =
                counters::check_currency(tx.db, &holder, currencies, tx.now).await?
            {
                let text = format!(
                    "`currency` {problem}; keep it, or delete the grant and create another"
                );
                return Err(Error::field("uses.constraints_json", text));
            }
            counters::carry(tx.db, holder, windows(was), windows(self), tx.now).await?;
            return Ok(());
        }
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.principal(tx.db, "agent_id", Some(&self.agent_id)).await?;
        if self.used_kind != ACTION {
            known.of_kind(tx.db, "used_id", &self.used_kind, &self.used_id).await?;
        }
        known.placed_by("agent_id", &self.agent_id).all()?;
        if tx.caller.tenant().is_some() {
            record_rules::check_grant(tx.db, self).await?;
        }
        Ok(())
    }
}

/// Returns the bounds of a row. Unreadable bounds are empty.
fn bounds(of: &Uses) -> Bounds {
    let json = of.constraints_json.as_deref();
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Returns the windows of the counted bounds.
fn windows(of: &Uses) -> Windows {
    let bounds = bounds(of);
    let seconds = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
    [
        (Counts::Uses, bounds.max_uses.map(|max| seconds(max.window_seconds))),
        (Counts::Amount, bounds.max_total_amount.map(|max| seconds(max.window_seconds))),
    ]
}

impl_queries!(Uses, uses);
impl_save!(Uses, uses);

impl Related for Uses {
    type Key = (String, String, String);

    async fn id_of(
        db: &mut Db,
        within: Option<&TenantId>,
        (agent_id, used_id, used_kind): &Self::Key,
    ) -> QueryResult<String> {
        let mut query = uses::table
            .filter(uses::agent_id.eq(agent_id))
            .filter(uses::used_id.eq(used_id))
            .filter(uses::used_kind.eq(used_kind))
            .select(uses::id)
            .into_boxed();
        if let Some(tenant) = within {
            query = query.filter(uses::tenant_id.eq(tenant.as_str()));
        }
        query.first(db).await
    }
}

/// Returns the key, and the key as one text, for messages.
fn named(key: <Uses as Related>::Key) -> (<Uses as Related>::Key, String) {
    let name = format!("{}|{}|{}", key.0, key.1, key.2);
    (key, name)
}

#[tonic::async_trait]
impl UsesService for Registry {
    async fn list_uses(&self, call: Request<ListUsesRequest>) -> Reply<ListUsesResponse> {
        self.list(call).await
    }

    async fn create_uses(&self, call: Request<CreateUsesRequest>) -> Reply<Uses> {
        self.create(call).await
    }

    async fn get_uses(&self, call: Request<GetUsesRequest>) -> Reply<Uses> {
        let (caller, request) = admitted(call)?;
        let (key, name) = named((request.agent_id, request.used_id, request.used_kind));
        self.get_related(caller, key, name).await
    }

    async fn update_uses(&self, call: Request<UpdateUsesRequest>) -> Reply<Uses> {
        let by = call.get_ref();
        let key = (by.agent_id.clone(), by.used_id.clone(), by.used_kind.clone());
        self.update_related(call, Ok(named(key))).await
    }

    async fn delete_uses(&self, call: Request<DeleteUsesRequest>) -> Reply<DeleteUsesResponse> {
        let (caller, request) = admitted(call)?;
        let (key, name) = named((request.agent_id, request.used_id, request.used_kind));
        self.remove_related(caller, key, name).await
    }
}
