//! @generated from sample.proto.

/// Optional fields of decision requests, sorted.
pub const FEATURES: &[&str] = &[];
pub(crate) static KNOWN_AUTHORITY_SAMPLE_V1_LAMP: Known = Known {
    fields: &[
        KnownField {
            number: 1,
            name: "id",
            holds: Holds::Value,
        },
        KnownField {
            number: 2,
            name: "tenant_id",
            holds: Holds::Value,
        },
        KnownField {
            number: 3,
            name: "state",
            holds: Holds::Value,
        },
        KnownField {
            number: 4,
            name: "type",
            holds: Holds::Value,
        },
        KnownField {
            number: 5,
            name: "watts",
            holds: Holds::Value,
        },
        KnownField {
            number: 6,
            name: "rooms",
            holds: Holds::Value,
        },
        KnownField {
            number: 7,
            name: "shades",
            holds: Holds::Message(&KNOWN_AUTHORITY_SAMPLE_V1_SHADE),
        },
        KnownField {
            number: 8,
            name: "created_at",
            holds: Holds::Message(&KNOWN_GOOGLE_PROTOBUF_TIMESTAMP),
        },
        KnownField {
            number: 9,
            name: "created_by",
            holds: Holds::Value,
        },
    ],
};
pub(crate) static KNOWN_AUTHORITY_SAMPLE_V1_SHADE: Known = Known {
    fields: &[
        KnownField {
            number: 1,
            name: "colour",
            holds: Holds::Value,
        },
    ],
};
pub(crate) static KNOWN_AUTHORITY_SAMPLE_V1_UPDATELAMPREQUEST: Known = Known {
    fields: &[
        KnownField {
            number: 1,
            name: "id",
            holds: Holds::Value,
        },
        KnownField {
            number: 2,
            name: "lamp",
            holds: Holds::Message(&KNOWN_AUTHORITY_SAMPLE_V1_LAMP),
        },
        KnownField {
            number: 3,
            name: "update_mask",
            holds: Holds::Message(&KNOWN_GOOGLE_PROTOBUF_FIELDMASK),
        },
    ],
};
pub(crate) static KNOWN_GOOGLE_PROTOBUF_FIELDMASK: Known = Known {
    fields: &[
        KnownField {
            number: 1,
            name: "paths",
            holds: Holds::Value,
        },
    ],
};
pub(crate) static KNOWN_GOOGLE_PROTOBUF_TIMESTAMP: Known = Known {
    fields: &[
        KnownField {
            number: 1,
            name: "seconds",
            holds: Holds::Value,
        },
        KnownField {
            number: 2,
            name: "nanos",
            holds: Holds::Value,
        },
    ],
};
impl TenantIds for crate::proto::sample::Lamp {
    fn complete_tenants(&mut self) {
        complete(&mut self.tenant_id);
    }
}
impl TenantIds for crate::proto::sample::ListLampsRequest {
    fn complete_tenants(&mut self) {
        self.tenant_id.iter_mut().for_each(complete);
    }
}
impl TenantIds for crate::proto::sample::UpdateLampRequest {
    fn complete_tenants(&mut self) {
        self.lamp.iter_mut().for_each(TenantIds::complete_tenants);
    }
}
impl TenantIds for crate::proto::sample::WatchLampsRequest {}
/// Methods that write and have no record id in their messages: see [`WrittenRecord`].
pub const WITHOUT_RECORD: &[&str] = &[];
/// The methods of `authority.sample.v1.LampService`.
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
            one(rpcs.list_lamps(read(call, None)?).await, |_| None)
        }),
    ),
    (
        "UpdateLamp",
        |rpcs, call| Box::pin(async move {
            one(
                rpcs
                    .update_lamp(
                        read(call, Some(&KNOWN_AUTHORITY_SAMPLE_V1_UPDATELAMPREQUEST))?,
                    )
                    .await,
                |answer| Some(answer.id.clone()),
            )
        }),
    ),
    (
        "WatchLamps",
        |rpcs, call| Box::pin(async move {
            many(rpcs.watch_lamps(read(call, None)?).await)
        }),
    ),
];
/// Serves `authority.sample.v1.LampService`.
pub fn lamp_service(rpcs: Arc<dyn LampService>) -> Service {
    Service::new("authority.sample.v1.LampService", LAMP_SERVICE, rpcs)
}
