//! Audit streams, which send a tenant's audit events to a sink. They are sealed, never deleted.

use std::collections::HashMap;

use authority_api::identity::{Caller, caller};
use authority_model::{
    proto::{events::LostEvents, registry::*},
    schema::{audit_cursors, audit_streams},
    service::AuditStreamService,
    state::AuditStreamState,
    wire::Time,
};
use authority_webhook::{
    audit_filter::{AuditFilter, AuditFilterError},
    destination::{EndpointUrl, UrlRules},
};

use crate::flow::{event_demand, prelude::*};

impl RecordRow for AuditStream {
    type List = ListAuditStreamsRequest;

    fn filtered(by: &ListAuditStreamsRequest) -> audit_streams::BoxedQuery<'_, Pg> {
        let mut query = audit_streams::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(audit_streams::state.eq(state));
        }
        query
    }

    fn defaults(&mut self) {
        names::or(&mut self.sink, "stdout");
    }

    fn validate_record(&self, found: &mut Violations) {
        let sink = self.sink.as_deref().unwrap_or_default();
        match (sink, &self.target) {
            ("stdout", _) => {}
            (_, None) => found.add("target", format!("is required for the sink `{sink}`")),
            ("nats", Some(subject)) if !is_subject(subject) => {
                let problem = "must be a NATS subject without wildcards, such as `audit.acme`";
                found.add("target", problem);
            }
            _ => {}
        }
        if let Err(fault) = filter(self) {
            found.add(&format!("filter{}", fault.member()), fault.to_string());
        }
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        // A stream can be sealed even if the installation has stopped permitting its sink.
        let is_new = was.is_none_or(|was| (&was.sink, &was.target) != (&self.sink, &self.target));
        match self.sink.as_deref() {
            Some("webhook") if is_new => check_url(self, &tx.destinations.urls)?,
            Some("nats") if is_new && !tx.destinations.nats => {
                let problem = "cannot be `nats`: this installation has no NATS server; its operator sets \
                     `nats.url`";
                return Err(Error::field("audit_stream.sink", problem));
            }
            _ => {}
        }
        if self.known_state() != Some(AuditStreamState::Active) {
            return event_demand::end(tx.db, &self.id).await;
        }
        // `validate_record` has already reported an invalid filter.
        let selection = filter(self).map(|filter| filter.selection).unwrap_or_default();
        event_demand::keep(tx.db, &row_id(self.tenant_id())?, &self.id, &selection).await
    }

    async fn after_insert(&self, made: &mut Self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        diesel::insert_into(audit_cursors::table)
            .values((
                audit_cursors::stream_id.eq(&made.id),
                audit_cursors::tenant_id.eq(made.tenant_id()),
            ))
            .execute(tx.db)
            .await?;
        Ok(())
    }

    async fn fill_computed(
        registry: &Registry,
        caller: &Caller,
        rows: &mut [Self],
    ) -> Result<(), Error> {
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            let cursors = audit_cursors::table.filter(audit_cursors::stream_id.eq_any(ids));
            Ok::<_, Error>(cursors.select(Cursor::as_select()).load(db).await?)
        });
        let found =
            read.await?.into_iter().map(|cursor: Cursor| (cursor.stream_id.clone(), cursor));
        let mut found: HashMap<String, Cursor> = found.collect();
        for row in rows {
            let Some(cursor) = found.remove(&row.id) else { continue };
            row.cursor = Some(cursor.sequence.to_string());
            row.lost =
                cursor.lost_from.zip(cursor.lost_to).map(|(from, to)| LostEvents { from, to });
            row.last_failure = cursor.last_failure();
        }
        Ok(())
    }
}

/// The columns of a stream that delivery updates.
#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_cursors, check_for_backend(Pg))]
struct Cursor {
    stream_id: String,
    sequence: i64,
    lost_from: Option<i64>,
    lost_to: Option<i64>,
    failures: i32,
    failed_at: Option<Time>,
    last_error: Option<String>,
    checkpoint_failures: i32,
    checkpoint_failed_at: Option<Time>,
    checkpoint_error: Option<String>,
}

impl Cursor {
    /// Returns the last failed delivery of an event or, if none failed, of a checkpoint.
    fn last_failure(self) -> Option<AuditStreamFailure> {
        if self.failures > 0 {
            let (at, error) = (self.failed_at, self.last_error.unwrap_or_default());
            return Some(AuditStreamFailure { at, error, failures: self.failures });
        }
        let failures = self.checkpoint_failures;
        (failures > 0).then(|| AuditStreamFailure {
            at: self.checkpoint_failed_at,
            error: format!("checkpoint: {}", self.checkpoint_error.unwrap_or_default()),
            failures,
        })
    }
}

/// Checks a webhook's URL and stores it in its normalised form.
fn check_url(stream: &mut AuditStream, rules: &UrlRules) -> Result<(), Error> {
    let mut found = Violations::default();
    match EndpointUrl::parse(stream.target.as_deref().unwrap_or_default(), rules) {
        Ok(url) => stream.target = Some(url.as_str().to_owned()),
        Err(fault) => found.add("audit_stream.target", fault.to_string()),
    }
    Error::unless_clean(found)
}

fn filter(stream: &AuditStream) -> Result<AuditFilter, AuditFilterError> {
    AuditFilter::read(stream.filter.as_ref().map(|filter| &filter.0))
}

/// Whether the text consists of tokens separated by dots. A token has letters, digits, `-` and `_`.
fn is_subject(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.split('.').all(|token| !token.is_empty() && token.bytes().all(letter))
}

impl_queries!(AuditStream, audit_streams);

impl Entity for AuditStream {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Refuse(ErrorCode::AuditStreamsAreImmutable);
}

impl_save!(AuditStream, audit_streams);
impl_end!(AuditStream, audit_streams);

#[tonic::async_trait]
impl AuditStreamService for Registry {
    async fn list_audit_streams(
        &self,
        call: Request<ListAuditStreamsRequest>,
    ) -> Reply<ListAuditStreamsResponse> {
        self.list(call).await
    }

    async fn create_audit_stream(
        &self,
        call: Request<CreateAuditStreamRequest>,
    ) -> Reply<AuditStream> {
        let caller = caller(&call)?;
        let made = self.create(call).await?;
        self.completed(&caller, made).await
    }

    async fn get_audit_stream(&self, call: Request<GetAuditStreamRequest>) -> Reply<AuditStream> {
        let caller = caller(&call)?;
        self.completed(&caller, self.get(call).await?).await
    }

    async fn update_audit_stream(
        &self,
        call: Request<UpdateAuditStreamRequest>,
    ) -> Reply<AuditStream> {
        let caller = caller(&call)?;
        self.completed(&caller, self.update(call).await?).await
    }

    async fn delete_audit_stream(
        &self,
        call: Request<DeleteAuditStreamRequest>,
    ) -> Reply<DeleteAuditStreamResponse> {
        self.delete(call).await
    }
}
