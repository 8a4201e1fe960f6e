//! Team membership, found by the pair (team, principal).

use authority_model::{proto::registry::*, schema::member_of, service::MemberOfService};

use crate::flow::{
    prelude::*,
    relationship::{Related, check_beginning, pair, tenant_of},
};

/// The names of the key's two parts.
const KEY: (&str, &str) = ("team_id", "principal_id");

impl RecordRow for MemberOf {
    type List = ListMemberOfRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListMemberOfRequest) -> member_of::BoxedQuery<'_, Pg> {
        let mut query = member_of::table.into_boxed();
        if let Some(team_id) = &by.team_id {
            query = query.filter(member_of::team_id.eq(team_id));
        }
        if let Some(principal_id) = &by.principal_id {
            query = query.filter(member_of::principal_id.eq(principal_id));
        }
        query
    }

    fn defaults(&mut self) {
        names::or(&mut self.role, "member");
    }

    fn validate_record(&self, found: &mut Violations) {
        rules::span(("joined_at", self.joined_at), ("left_at", self.left_at), found);
    }

    async fn resolve_tenant(
        &mut self,
        db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        let tenant = tenant_of::<Team>(db, within, &self.team_id).await?;
        self.tenant_id = tenant.ok_or_else(|| Error::unknown("team_id", &self.team_id))?;
        Ok(())
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        if was.is_some() {
            return check_beginning("member_of.joined_at", self.joined_at);
        }
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.principal(tx.db, "principal_id", Some(&self.principal_id)).await?;
        known.placed_by("team_id", &self.team_id).all()
    }
}

impl_queries!(MemberOf, member_of);
impl_save!(MemberOf, member_of);

impl Related for MemberOf {
    type Key = (String, String);

    async fn id_of(
        db: &mut Db,
        within: Option<&TenantId>,
        (team_id, principal_id): &Self::Key,
    ) -> QueryResult<String> {
        let mut query = member_of::table
            .filter(member_of::team_id.eq(team_id))
            .filter(member_of::principal_id.eq(principal_id))
            .select(member_of::id)
            .into_boxed();
        if let Some(tenant) = within {
            query = query.filter(member_of::tenant_id.eq(tenant.as_str()));
        }
        query.first(db).await
    }
}

#[tonic::async_trait]
impl MemberOfService for Registry {
    async fn list_member_of(
        &self,
        call: Request<ListMemberOfRequest>,
    ) -> Reply<ListMemberOfResponse> {
        self.list(call).await
    }

    async fn create_member_of(&self, call: Request<CreateMemberOfRequest>) -> Reply<MemberOf> {
        self.create(call).await
    }

    async fn get_member_of(&self, call: Request<GetMemberOfRequest>) -> Reply<MemberOf> {
        let (caller, request) = admitted(call)?;
        let (key, name) = pair(&request.id, KEY, request.team_id, request.principal_id)?;
        self.get_related(caller, key, name).await
    }

    async fn update_member_of(&self, call: Request<UpdateMemberOfRequest>) -> Reply<MemberOf> {
        let by = call.get_ref();
        let key = pair(&by.id, KEY, by.team_id.clone(), by.principal_id.clone());
        self.update_related(call, key).await
    }

    async fn delete_member_of(
        &self,
        call: Request<DeleteMemberOfRequest>,
    ) -> Reply<DeleteMemberOfResponse> {
        let (caller, request) = admitted(call)?;
        let (key, name) = pair(&request.id, KEY, request.team_id, request.principal_id)?;
        self.remove_related(caller, key, name).await
    }
}
