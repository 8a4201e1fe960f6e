//! Teams: principals that are granted access together.

use authority_model::{proto::registry::*, schema::teams, service::TeamService};

use crate::flow::prelude::*;

impl RecordRow for Team {
    type List = ListTeamsRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] =
        &["name", "description", "notes", "tags", "metadata"];

    fn filtered(by: &ListTeamsRequest) -> teams::BoxedQuery<'_, Pg> {
        let mut query = teams::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(teams::state.eq(state));
        }
        if let Some(workspace_id) = &by.workspace_id {
            query = query.filter(teams::workspace_id.eq(workspace_id));
        }
        query
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        references::grantee_is_free(tx.db, &row_id(&self.tenant_id)?, &self.id).await
    }
}

impl_queries!(Team, teams);
impl_referenced!(Team, teams);

impl Entity for Team {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Erase;
}

impl_save!(Team, teams);
impl_end!(Team, teams);

#[tonic::async_trait]
impl TeamService for Registry {
    async fn list_teams(&self, call: Request<ListTeamsRequest>) -> Reply<ListTeamsResponse> {
        self.list(call).await
    }

    async fn create_team(&self, call: Request<CreateTeamRequest>) -> Reply<Team> {
        self.create(call).await
    }

    async fn get_team(&self, call: Request<GetTeamRequest>) -> Reply<Team> {
        self.get(call).await
    }

    async fn update_team(&self, call: Request<UpdateTeamRequest>) -> Reply<Team> {
        self.update(call).await
    }

    async fn delete_team(&self, call: Request<DeleteTeamRequest>) -> Reply<DeleteTeamResponse> {
        self.delete(call).await
    }
}
