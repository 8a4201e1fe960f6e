//! State events: append-only, each linked by digest to the previous event.

use authority_model::{
    proto::states::{
        CreateStateTransitionRequest, DeleteStateEventRequest, GetStateEventRequest,
        ListStateEventsRequest, ListStateEventsResponse, RequestStateTransitionRequest, StateEvent,
        UpdateStateEventRequest,
    },
    schema::state_events,
    service::StateEventService,
};
use tonic::Response;

use super::transition;
use crate::flow::{page::place_of, prelude::*};
use authority_api::{page, page_token::PageTokens};

/// Returns the event with this ID, within a tenant if one is given.
async fn read(db: &mut Db, within: Option<&TenantId>, id: &str) -> Result<StateEvent, Error> {
    let mut query = state_events::table.filter(state_events::id.eq(id)).into_boxed();
    if let Some(tenant) = within {
        query = query.filter(state_events::tenant_id.eq(tenant.as_str()));
    }
    let found = query.select(StateEvent::as_select()).first(db).await.optional()?;
    found.ok_or_else(|| Error::NotFound { kind: StateEvent::KIND, id: id.to_owned() })
}

async fn page(
    db: &mut Db,
    within: Option<&TenantId>,
    by: &ListStateEventsRequest,
    window: &Window,
) -> QueryResult<Vec<StateEvent>> {
    let mut query = state_events::table.into_boxed();
    if let Some(tenant) = within {
        query = query.filter(state_events::tenant_id.eq(tenant.as_str()));
    }
    if let Some(entity) = &by.entity_id {
        query = query.filter(state_events::entity_id.eq(entity));
    }
    if let Some(machine) = &by.machine_id {
        query = query.filter(state_events::machine_id.eq(machine));
    }
    if let Some((at, id)) = &window.after {
        let earlier = state_events::created_at
            .lt(*at)
            .or(state_events::created_at.eq(*at).and(state_events::id.lt(id.as_str())));
        query = query.filter(earlier);
    }
    query
        .order((state_events::created_at.desc(), state_events::id.desc()))
        .limit(window.query_limit())
        .select(StateEvent::as_select())
        .load(db)
        .await
}

#[tonic::async_trait]
impl StateEventService for Registry {
    async fn list_state_events(
        &self,
        call: Request<ListStateEventsRequest>,
    ) -> Reply<ListStateEventsResponse> {
        let (caller, by) = admitted(call)?;
        let tokens = PageTokens::of(&self.keys, &caller, &by);
        let window = Window::of(by.page(), &tokens)?;
        if by.entity_id.is_none() && by.machine_id.is_none() {
            return Err(Error::field("entity_id", "is required, or `machine_id`").into());
        }
        let whose = caller.scope();
        let read = self.store.read_tx(&whose, async move |db| {
            let found = page(db, caller.tenant(), &by, &window).await?;
            Ok::<_, Error>((found, window))
        });
        let (mut state_events, window) = read.await?;
        let goes_on = page::cut(&mut state_events, window.size);
        let last = state_events.last().filter(|_| goes_on);
        let next_page_token = last.and_then(|last| place_of(last, &tokens));
        Ok(Response::new(ListStateEventsResponse { state_events, next_page_token }))
    }

    async fn get_state_event(&self, call: Request<GetStateEventRequest>) -> Reply<StateEvent> {
        let (caller, request) = admitted(call)?;
        let whose = caller.scope();
        let found = self
            .store
            .read_tx(&whose, async move |db| read(db, caller.tenant(), &request.id).await);
        Ok(Response::new(found.await?))
    }

    async fn update_state_event(
        &self,
        call: Request<UpdateStateEventRequest>,
    ) -> Reply<StateEvent> {
        refused(call)
    }

    async fn delete_state_event(
        &self,
        call: Request<DeleteStateEventRequest>,
    ) -> Reply<StateEvent> {
        refused(call)
    }

    async fn create_state_transition(
        &self,
        call: Request<CreateStateTransitionRequest>,
    ) -> Reply<StateEvent> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        transition::make(self, caller, key, request).await
    }

    async fn request_state_transition(
        &self,
        call: Request<RequestStateTransitionRequest>,
    ) -> Reply<StateEvent> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        transition::make(self, caller, key, request.transition.unwrap_or_default()).await
    }
}

fn refused<T>(_: Request<T>) -> Reply<StateEvent> {
    Err(Error::NeverChanged(ErrorCode::StateEventsAreImmutable).into())
}
