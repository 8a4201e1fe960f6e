//! Workspace membership, found by the pair (principal, workspace).

use authority_model::{proto::registry::*, schema::acts_in, service::ActsInService};

use crate::flow::{
    prelude::*,
    relationship::{Related, check_beginning, pair, tenant_of},
};

/// The names of the key's two parts.
const KEY: (&str, &str) = ("principal_id", "workspace_id");

impl RecordRow for ActsIn {
    type List = ListActsInRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListActsInRequest) -> acts_in::BoxedQuery<'_, Pg> {
        let mut query = acts_in::table.into_boxed();
        if let Some(principal_id) = &by.principal_id {
            query = query.filter(acts_in::principal_id.eq(principal_id));
        }
        if let Some(workspace_id) = &by.workspace_id {
            query = query.filter(acts_in::workspace_id.eq(workspace_id));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::span(("since", self.since), ("until", self.until), found);
        if let Some(problem) = self.allowed_actions_json.as_deref().and_then(rules::allowed_actions)
        {
            found.add("allowed_actions_json", problem);
        }
    }

    async fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        let tenant = tenant_of::<Workspace>(db, within, &self.workspace_id).await?;
        self.tenant_id =
            tenant.ok_or_else(|| Error::unknown("workspace_id", &self.workspace_id))?;
        Ok(())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if was.is_some() {
            return check_beginning("acts_in.since", self.since);
        }
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.principal(tx.db, "principal_id", Some(&self.principal_id)).await?;
        known.placed_by("workspace_id", &self.workspace_id).all()
    }
}

impl_queries!(ActsIn, acts_in);
impl_save!(ActsIn, acts_in);

impl Related for ActsIn {
    type Key = (String, String);

    async fn id_of(
        db: &mut Db,
        within: Option<&TenantId>,
        (principal_id, workspace_id): &Self::Key,
    ) -> QueryResult<String> {
        let mut query = acts_in::table
            .filter(acts_in::principal_id.eq(principal_id))
            .filter(acts_in::workspace_id.eq(workspace_id))
            .select(acts_in::id)
            .into_boxed();
        if let Some(tenant) = within {
            query = query.filter(acts_in::tenant_id.eq(tenant.as_str()));
        }
        query.first(db).await
    }
}

#[tonic::async_trait]
impl ActsInService for Registry {
    async fn list_acts_in(&self, call: Request<ListActsInRequest>) -> Reply<ListActsInResponse> {
        self.list(call).await
    }

    async fn create_acts_in(&self, call: Request<CreateActsInRequest>) -> Reply<ActsIn> {
        self.create(call).await
    }

    async fn get_acts_in(&self, call: Request<GetActsInRequest>) -> Reply<ActsIn> {
        let (caller, request) = admitted(call)?;
        let (key, name) = pair(&request.id, KEY, request.principal_id, request.workspace_id)?;
        self.get_related(caller, key, name).await
    }

    async fn update_acts_in(&self, call: Request<UpdateActsInRequest>) -> Reply<ActsIn> {
        let by = call.get_ref();
        let key = pair(&by.id, KEY, by.principal_id.clone(), by.workspace_id.clone());
        self.update_related(call, key).await
    }

    async fn delete_acts_in(
        &self,
        call: Request<DeleteActsInRequest>,
    ) -> Reply<DeleteActsInResponse> {
        let (caller, request) = admitted(call)?;
        let (key, name) = pair(&request.id, KEY, request.principal_id, request.workspace_id)?;
        self.remove_related(caller, key, name).await
    }
}
