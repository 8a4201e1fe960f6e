//! @generated from sample.proto.

impl Validate for crate::proto::sample::Lamp {
    fn validate(&self, found: &mut Violations) {
        found
            .text(
                "id",
                Some(self.id.as_str()).filter(|text| !text.is_empty()),
                &Text::ANY,
            );
        found
            .text(
                "tenant_id",
                Some(self.tenant_id.as_str()).filter(|text| !text.is_empty()),
                &Text {
                    required: true,
                    max: 300,
                    ..Text::ANY
                },
            );
        found
            .text(
                "state",
                Some(self.state.as_str()).filter(|text| !text.is_empty()),
                &Text {
                    of: &["new", "active", "burnt_out"],
                    ..Text::ANY
                },
            );
        found
            .text(
                "type",
                Some(self.r#type.as_str()).filter(|text| !text.is_empty()),
                &Text {
                    required: true,
                    min: 1,
                    max: 20,
                    ..Text::ANY
                },
            );
        found.integer("watts", self.watts.map(i64::from), -1, 500);
        if found.length("rooms", self.rooms.len(), 0, 8) {
            found
                .texts(
                    "rooms",
                    &self.rooms,
                    &Text {
                        pattern: "^[a-z]+$",
                        ..Text::ANY
                    },
                );
            found.unique("rooms", &self.rooms);
        }
        for (index, item) in self.shades.iter().enumerate() {
            found.within(&format!("shades[{index}]"), |found| item.validate(found));
        }
        found.time("created_at", self.created_at);
        found
            .text(
                "created_by",
                Some(self.created_by.as_str()).filter(|text| !text.is_empty()),
                &Text::ANY,
            );
    }
}
impl Record for crate::proto::sample::Lamp {
    const KIND: &'static str = "lamp";
    type State = crate::state::LampState;
    const STATE: &'static str = "state";
    const FINAL: &'static [Self::State] = crate::state::LampState::FINAL;
    fn id(&self) -> &str {
        &self.id
    }
    fn tenant_id(&self) -> &str {
        &self.tenant_id
    }
    fn state(&self) -> &str {
        &self.state
    }
    fn known_state(&self) -> Option<Self::State> {
        self.state().parse().ok()
    }
    fn created_at(&self) -> Option<Time> {
        self.created_at
    }
    fn updated_at(&self) -> Option<Time> {
        None
    }
    fn stamp_created(&mut self, id: String, by: String) {
        self.id = id;
        self.created_by = by;
        if self.state.is_empty() {
            self.state = Self::State::default().to_string();
        }
    }
    fn reject_output_only(&self, found: &mut Violations) {
        found.output_only("id", self.id.is_empty());
        found.output_only("state", self.state.is_empty());
        found.output_only("created_at", self.created_at.is_none());
        found.output_only("created_by", self.created_by.is_empty());
    }
    fn reject_immutable(mask: &FieldMask, found: &mut Violations) {
        for path in &mask.paths {
            match path.as_str() {
                "id" => found.output_only("id", false),
                "tenant_id" => found.add("tenant_id", "cannot change"),
                "state" => found.output_only("state", false),
                "created_at" => found.output_only("created_at", false),
                "created_by" => found.output_only("created_by", false),
                "type" | "watts" | "rooms" | "shades" => {}
                other => found.add(other, "is not a member of this record"),
            }
        }
    }
    fn merge(&mut self, mut from: Self, mask: &FieldMask) {
        for path in mask.distinct() {
            match path {
                "type" => self.r#type = std::mem::take(&mut from.r#type),
                "watts" => self.watts = std::mem::take(&mut from.watts),
                "rooms" => self.rooms = std::mem::take(&mut from.rooms),
                "shades" => self.shades = std::mem::take(&mut from.shades),
                _ => {}
            }
        }
    }
}
impl Validate for crate::proto::sample::Shade {
    fn validate(&self, found: &mut Violations) {
        found
            .text(
                "colour",
                Some(self.colour.as_str()).filter(|text| !text.is_empty()),
                &Text::ANY,
            );
    }
}
impl diesel::serialize::ToSql<diesel::sql_types::Jsonb, diesel::pg::Pg>
for crate::proto::sample::Shade {
    fn to_sql<'b>(
        &'b self,
        out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
    ) -> diesel::serialize::Result {
        crate::wire::jsonb::write(self, out)
    }
}
impl diesel::deserialize::FromSql<diesel::sql_types::Jsonb, diesel::pg::Pg>
for crate::proto::sample::Shade {
    fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
        crate::wire::jsonb::read(&value)
    }
}
impl Validate for crate::proto::sample::ListLampsRequest {
    fn validate(&self, found: &mut Violations) {
        found.text("tenant_id", self.tenant_id.as_deref(), &Text::ANY);
        found
            .text(
                "page_token",
                Some(self.page_token.as_str()).filter(|text| !text.is_empty()),
                &Text::ANY,
            );
    }
}
impl Listing for crate::proto::sample::ListLampsRequest {
    fn page(&self) -> Page<'_> {
        Page {
            tenant_id: self.tenant_id.as_deref(),
            state: None,
            limit: self.limit,
            token: &self.page_token,
            count: false,
            deleted: false,
        }
    }
    fn filters(&self) -> Vec<u8> {
        let mut filters = self.clone();
        filters.limit = None;
        filters.page_token = String::new();
        prost::Message::encode_to_vec(&filters)
    }
}
impl Validate for crate::proto::sample::ListLampsResponse {
    fn validate(&self, found: &mut Violations) {
        for (index, item) in self.lamps.iter().enumerate() {
            found.within(&format!("lamps[{index}]"), |found| item.validate(found));
        }
        found.text("next_page_token", self.next_page_token.as_deref(), &Text::ANY);
    }
}
impl ListResponse for crate::proto::sample::ListLampsResponse {
    type Record = crate::proto::sample::Lamp;
    fn of(
        records: Vec<crate::proto::sample::Lamp>,
        _: Option<i32>,
        next_page_token: Option<String>,
    ) -> Self {
        Self {
            lamps: records,
            next_page_token,
        }
    }
}
impl Validate for crate::proto::sample::UpdateLampRequest {
    fn validate(&self, found: &mut Violations) {
        found
            .text(
                "id",
                Some(self.id.as_str()).filter(|text| !text.is_empty()),
                &Text::ANY,
            );
        found.present("lamp", self.lamp.is_some());
    }
}
impl ByIdRequest for crate::proto::sample::UpdateLampRequest {
    fn id(&self) -> &str {
        &self.id
    }
}
impl RecordRequest for crate::proto::sample::UpdateLampRequest {
    type Record = crate::proto::sample::Lamp;
    const FIELD: &'static str = "lamp";
    fn open(self) -> (Self::Record, FieldMask) {
        (self.lamp.unwrap_or_default(), self.update_mask.unwrap_or_default())
    }
}
impl Validate for crate::proto::sample::WatchLampsRequest {
    fn validate(&self, found: &mut Violations) {
        match &self.which {
            Some(crate::proto::sample::watch_lamps_request::Which::Place(inner)) => {
                found.within("place", |found| inner.validate(found))
            }
            _ => {}
        }
    }
}
impl Validate for crate::proto::sample::watch_lamps_request::Place {
    fn validate(&self, found: &mut Violations) {
        found.number("height", Some(self.height), 0.0, 400.0);
    }
}
impl RpcRequest for crate::proto::sample::ListLampsRequest {
    const METHOD: &'static str = "authority.sample.v1.LampService/ListLamps";
    type Response = crate::proto::sample::ListLampsResponse;
}
impl RpcRequest for crate::proto::sample::UpdateLampRequest {
    const METHOD: &'static str = "authority.sample.v1.LampService/UpdateLamp";
    type Response = crate::proto::sample::Lamp;
    const STATES: &'static [&'static str] = &["new", "active"];
}
impl RpcRequest for crate::proto::sample::WatchLampsRequest {
    const METHOD: &'static str = "authority.sample.v1.LampService/WatchLamps";
    type Response = crate::proto::sample::Lamp;
}
