//! @generated from sample.proto.

/// The methods that may change something, and whose messages have no id of one record: see [`WrittenRecord`].
pub const WITHOUT_RECORD: &[&str] = &[];
/// What `authority.sample.v1.LampService` does.
#[tonic::async_trait]
pub trait LampService: Send + Sync + 'static {
    async fn list_lamps(
        &self,
        call: Request<crate::proto::sample::ListLampsRequest>,
    ) -> Reply<crate::proto::sample::ListLampsResponse>;
    async fn update_lamp(
        &self,
        call: Request<crate::proto::sample::UpdateLampRequest>,
    ) -> Reply<crate::proto::sample::Lamp>;
    async fn watch_lamps(
        &self,
        call: Request<crate::proto::sample::WatchLampsRequest>,
    ) -> Replies<crate::proto::sample::Lamp>;
}
const LAMP_SERVICE: &[Handler<dyn LampService>] = &[
    (
        "ListLamps",
        |rpcs, call| Box::pin(async move {
            one(rpcs.list_lamps(read(call)?).await, |_| None)
        }),
    ),
    (
        "UpdateLamp",
        |rpcs, call| Box::pin(async move {
            one(rpcs.update_lamp(read(call)?).await, |answer| Some(answer.id.clone()))
        }),
    ),
    (
        "WatchLamps",
        |rpcs, call| Box::pin(async move { many(rpcs.watch_lamps(read(call)?).await) }),
    ),
];
/// Serves `authority.sample.v1.LampService`.
pub fn lamp_service(rpcs: Arc<dyn LampService>) -> Service {
    Service::new("authority.sample.v1.LampService", LAMP_SERVICE, rpcs)
}
