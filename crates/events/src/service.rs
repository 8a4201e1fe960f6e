//! Implements the event API: event types and schemas, pages and streams of events.

use std::sync::Arc;

use authority_ids::TenantId;
use authority_model::{
    proto::events::{
        EventType as DescribedType, GetEventRetentionRequest, GetEventRetentionResponse,
        GetSchemaRequest, GetSchemaResponse, ListEventTypesRequest, ListEventTypesResponse,
        ListEventsRequest, ListEventsResponse, StreamEventsRequest, StreamEventsResponse,
    },
    schema::tenants,
    service::{EventService, Replies},
};
use authority_webhook::event_types::{EventType, Selection, VERSION};
use diesel::{ExpressionMethods, QueryDsl};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use authority_api::{
    credentials::Credentials,
    error::ApiError,
    identity::{Caller, TENANT_INACTIVE, admitted, checked},
    page::cut_by,
    stream::stream_of,
};
use authority_graph::Graph;
use authority_process::clock::Clock;
use authority_store::{Db, RunQueryDsl, Store};

use crate::{
    demand::Demand,
    feed::EventFeed,
    follow::{Follow, Streams},
    page::{VisiblePart, bounds},
};

const PAGE: i32 = 100;

/// Serves `EventService`.
pub(crate) struct EventHandlers {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) graph: Arc<Graph>,
    pub(crate) feed: EventFeed,
    pub(crate) streams: Streams,
    /// Ends open streams when the service stops. Otherwise they would delay the shutdown.
    pub(crate) shutdown: CancellationToken,
}

impl EventHandlers {
    /// Returns the tenant to read: the caller's own, or for the owner the tenant in the request.
    fn tenant(&self, caller: &Caller, named: Option<&str>) -> Result<TenantId, ApiError> {
        let named = named.map(|named| {
            let tenant_id = TenantId::parse(named).ok();
            tenant_id.ok_or_else(|| ApiError::not_found("tenant", named))
        });
        match (caller.tenant(), named.transpose()?) {
            (Some(own), None) => Ok(own.clone()),
            (Some(own), Some(named)) if *own == named => Ok(named),
            (Some(_), Some(other)) => Err(ApiError::not_found("tenant", other.as_str())),
            (None, None) => Err(ApiError::field("tenant_id", "is required of the owner")),
            (None, Some(named)) => {
                let Some(handle) = self.graph.tenant(&named)? else {
                    return Err(ApiError::not_found("tenant", named.as_str()));
                };
                // For other callers, authentication already refuses inactive tenants.
                let is_active = handle.read().tenant().is_some_and(|tenant| tenant.active);
                if is_active { Ok(named) } else { Err(TENANT_INACTIVE.into()) }
            }
        }
    }
}

#[tonic::async_trait]
impl EventService for EventHandlers {
    async fn list_event_types(
        &self,
        _: Request<ListEventTypesRequest>,
    ) -> Result<Response<ListEventTypesResponse>, Status> {
        let event_types = EventType::families().map(described).collect();
        Ok(Response::new(ListEventTypesResponse { event_types }))
    }

    async fn get_schema(
        &self,
        call: Request<GetSchemaRequest>,
    ) -> Result<Response<GetSchemaResponse>, Status> {
        let asked = call.into_inner();
        checked(&asked)?;
        let name = asked.name;
        let file = format!(".v{VERSION}.json");
        let event_type = name.strip_suffix(&file).and_then(|name| {
            EventType::named(name).or_else(|| EventType::test().filter(|test| test.name() == name))
        });
        let event_type = event_type.ok_or_else(|| ApiError::not_found("schema", &name))?;
        Ok(Response::new(GetSchemaResponse { schema: event_type.schema().to_string() }))
    }

    async fn list_events(
        &self,
        call: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let (caller, asked) = admitted(call)?;
        let tenant_id = self.tenant(&caller, asked.tenant_id.as_deref())?;
        let part = VisiblePart::of(tenant_id, &asked.event_type, caller.bound_to())?;
        let limit = i64::from(asked.limit.unwrap_or(PAGE));
        let read = async move |db: &mut Db| part.read(db, asked.after, limit).await;
        let mut page = self.store.read_tx(&caller.scope(), read).await?;
        let all = page.events.len();
        if cut_by(&mut page.events, all, |(_, event)| event.len()) {
            page.next_after = page.events.last().map_or(page.next_after, |(last, _)| *last);
        }
        Ok(Response::new(ListEventsResponse {
            events: page.events.into_iter().map(|(_, event)| event).collect(),
            next_after: page.next_after,
            oldest: page.bounds.oldest,
            head: page.bounds.head,
        }))
    }

    async fn get_event_retention(
        &self,
        call: Request<GetEventRetentionRequest>,
    ) -> Result<Response<GetEventRetentionResponse>, Status> {
        let (caller, _) = admitted(call)?;
        let tenant_id = self.tenant(&caller, None)?;
        let read = async move |db: &mut Db| {
            let row = tenants::table.find(tenant_id.as_str()).select((
                tenants::event_retention_days,
                // Only the owner sees the reason for the legal hold.
                tenants::legal_hold.is_not_null(),
            ));
            let row: (i32, bool) = row.first(db).await.map_err(authority_store::Error::from)?;
            Ok::<_, ApiError>(row)
        };
        let (event_retention_days, legal_hold) = self.store.read_tx(&caller.scope(), read).await?;
        Ok(Response::new(GetEventRetentionResponse { event_retention_days, legal_hold }))
    }

    async fn stream_events(
        &self,
        call: Request<StreamEventsRequest>,
    ) -> Replies<StreamEventsResponse> {
        let (caller, asked) = admitted(call)?;
        let tenant_id = self.tenant(&caller, asked.tenant_id.as_deref())?;
        let part = VisiblePart::of(tenant_id.clone(), &asked.event_type, caller.bound_to())?;
        let place = self.streams.enter(&tenant_id, &caller)?;
        let grown = self.feed.subscribe();
        let scope = caller.scope();
        // Checked before the stream starts: a refused call fails with a status, not inside the
        // stream.
        let (from, within) = (part.clone(), tenant_id.clone());
        let after = async move |db: &mut Db| {
            if let Some(after) = asked.after {
                return from.read(db, Some(after), 1).await.map(|_| after);
            }
            let bounds = bounds(db, &within).await.map_err(authority_store::Error::from);
            Ok::<_, ApiError>(bounds?.head)
        };
        let after = self.store.read_tx(&scope, after).await?;
        let types = demanded(&asked.event_type);
        let demand = if types.is_empty() {
            None
        } else {
            Some(Demand::open(&self.store, &tenant_id, types).await.map_err(ApiError::from)?)
        };
        let limits = place.limits();
        Ok(limits.shown_in(Response::new(stream_of(Follow {
            store: self.store.clone(),
            scope,
            clock: self.clock.clone(),
            credentials: Credentials { graph: Arc::clone(&self.graph) },
            shutdown: self.shutdown.clone(),
            caller,
            part,
            grown,
            after,
            unsent: Vec::new().into(),
            sent: None,
            _place: place,
            _demand: demand,
        }))))
    }
}

/// Returns the names of the on-demand types that these patterns select.
fn demanded(patterns: &[String]) -> Vec<&'static str> {
    let selection = Selection::parse(patterns).unwrap_or_default();
    selection.on_demand().map(EventType::name).collect()
}

fn described(event_type: &'static EventType) -> DescribedType {
    let made = match (event_type.is_on_demand(Some(&Value::Null)), event_type.is_on_demand(None)) {
        (true, _) => "on_demand",
        (false, true) => "on_demand_if_automatic",
        (false, false) => "always",
    };
    let schema = event_type.schema();
    let text =
        |member: &str| schema.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    DescribedType {
        name: event_type.name().to_owned(),
        description: text("description"),
        version: i32::try_from(VERSION).unwrap_or_default(),
        schema: text("$id"),
        made: made.to_owned(),
    }
}
