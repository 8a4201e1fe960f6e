//! State machines, created or adopted from the library. A machine never changes.

use authority_ids::RecordId;
use authority_model::{proto::states::*, schema::state_machines, service::StateMachineService};
use tonic::Response;

use authority_api::named_tenant;

use super::{library, step};
use crate::flow::{prelude::*, tenant, version::tagged};

impl RecordRow for StateMachine {
    type List = ListStateMachinesRequest;

    fn filtered(by: &ListStateMachinesRequest) -> state_machines::BoxedQuery<'_, Pg> {
        let mut query = state_machines::table.into_boxed();
        if let Some(class) = &by.entity_class {
            query = query.filter(state_machines::entity_class.eq(class));
        }
        query
    }

    fn defaults(&mut self) {
        if self.initial_state.is_none() {
            self.initial_state = self.states.as_slice().first().cloned();
        }
        self.state_descriptions.get_or_insert_default();
        self.metadata.get_or_insert_default();
    }

    fn validate_record(&self, found: &mut Violations) {
        step::check(self, found);
    }

    async fn tenant_slug(&self, db: &mut Db, within: Option<&TenantId>) -> Result<String, Error> {
        match &self.tenant_id {
            Some(id) => tenant::slug(db, within, id).await,
            None => Ok(String::new()),
        }
    }

    fn new_id(&self, _slug: &str) -> Result<String, InvalidId> {
        Ok(RecordId::new(Self::KIND, new_id()).into())
    }
}

impl_queries!(StateMachine, state_machines);

#[tonic::async_trait]
impl StateMachineService for Registry {
    async fn list_state_machines(
        &self,
        call: Request<ListStateMachinesRequest>,
    ) -> Reply<ListStateMachinesResponse> {
        self.list(call).await
    }

    async fn create_state_machine(
        &self,
        call: Request<CreateStateMachineRequest>,
    ) -> Reply<StateMachine> {
        self.create(call).await
    }

    async fn get_state_machine(
        &self,
        call: Request<GetStateMachineRequest>,
    ) -> Reply<StateMachine> {
        self.get(call).await
    }

    async fn list_derivations(
        &self,
        call: Request<ListDerivationsRequest>,
    ) -> Reply<ListDerivationsResponse> {
        let (caller, request) = admitted(call)?;
        named_tenant::known(&self.store, &caller, Some(&request.tenant_id)).await?;
        let whose = caller.scope();
        let derivations = self.store.read_tx(&whose, async move |db| {
            let newest = library::newest(&library::every(db).await?);
            let machines: Vec<StateMachine> = state_machines::table
                .filter(state_machines::tenant_id.eq(&request.tenant_id))
                .filter(state_machines::library_id.is_not_null())
                .order((state_machines::created_at, state_machines::id))
                .select(StateMachine::as_select())
                .load(db)
                .await?;
            let derivation = |machine: StateMachine| {
                let library_id = machine.library_id.unwrap_or_default();
                Derivation {
                    state_machine_id: machine.id,
                    tenant_id: machine.tenant_id.unwrap_or_default(),
                    tenant_entity_class: machine.entity_class,
                    library_version: machine.library_version.unwrap_or_default(),
                    newest_version: newest.get(&library_id).cloned().unwrap_or_default(),
                    library_id,
                    created_at: machine.created_at,
                    created_by: machine.created_by,
                }
            };
            Ok::<_, Error>(machines.into_iter().map(derivation).collect())
        });
        Ok(Response::new(ListDerivationsResponse { derivations: derivations.await? }))
    }

    async fn adopt_state_machine(
        &self,
        call: Request<AdoptStateMachineRequest>,
    ) -> Reply<StateMachine> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let key = key.map(|key| key.within(TenantId::parse(&request.tenant_id).ok().as_ref()));
        let by = caller.clone();
        let adopted = self.idempotent(&caller, key, async move |db| {
            let found = library::find(db, &request.library_id, &request.library_version).await?;
            library::keep(db, std::slice::from_ref(&found)).await?;
            let mut machine = library::machine(found);
            machine.tenant_id = Some(request.tenant_id);
            machine.entity_class = request.tenant_entity_class;
            machine.defaults();
            machine.tenant_slug(db, by.tenant()).await?;
            machine.stamp_created(machine.new_id("")?, by.actor);
            Ok::<_, Error>(StateMachine::insert(db, &machine).await?)
        });
        Ok(tagged(adopted.await?.reply()))
    }
}
