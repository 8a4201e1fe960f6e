//! Creates, rotates and revokes API keys. A secret is returned once, and only a code derived from
//! the secret is stored.

use std::{sync::Arc, time::Duration};

use authority_model::{
    proto::keys::{
        ApiKey, CreateApiKeyRequest, CreateApiKeyResponse, GetApiKeyRequest, ListApiKeysRequest,
        ListApiKeysResponse, RevokeApiKeyRequest, RevokeApiKeyResponse, RotateApiKeyRequest,
        RotateApiKeyResponse, UpdateApiKeyRequest,
    },
    schema::{api_keys, tenants},
    service::ApiKeyService,
    state::ApiKeyStatus,
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, Text, Timestamptz};

use crate::{
    delegations::delegating_key,
    flow::{operations::or_not_found, prelude::*},
};
use authority_api::{
    idempotency::Done,
    identity::{
        Caller, LastUsed,
        api_key::{Issued, issue, prefix},
    },
};
use authority_crypto::random;
use authority_graph::allow_list;
use authority_ids::ApiKeyId;
use authority_process::worker::Worker;
use authority_store::{self as store, Scope, Store};

const USES_EVERY: Duration = Duration::from_secs(30);
/// The scopes that a key bound to agents can't use, because each operation with these scopes
/// affects every agent.
const UNBOUND: [&str; 2] = ["webhooks:write", "reality:write"];

/// The service of API keys.
#[derive(Clone)]
pub struct ApiKeys(pub Registry);

impl RecordRow for ApiKey {
    type List = ListApiKeysRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] = &[
        "label",
        "scopes",
        "principal_ids",
        "ip_allowlist",
        "decisions_per_second",
        "expires_at",
        "notes",
    ];

    fn filtered(by: &ListApiKeysRequest) -> api_keys::BoxedQuery<'_, Pg> {
        let mut query = api_keys::table.into_boxed();
        if let Some(status) = &by.status {
            query = query.filter(api_keys::status.eq(status));
        }
        if let Some(after) = by.expires_after {
            query = query.filter(api_keys::expires_at.ge(after));
        }
        if let Some(before) = by.expires_before {
            query = query.filter(api_keys::expires_at.lt(before));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        if let Err(entry) = allow_list(self.ip_allowlist.iter().map(String::as_str)) {
            found.add("ip_allowlist", format!("`{entry}` is not an address or CIDR block"));
        }
    }

    async fn resolve_tenant(
        &mut self,
        _db: &mut Db,
        within: Option<&TenantId>,
    ) -> Result<(), Error> {
        references::own_tenant(&mut self.tenant_id, Self::KIND, within)
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        let before = was.and_then(|was| was.expires_at);
        was.map_or(Ok(()), live)?;
        if self.expires_at != before && self.expires_at.is_some_and(|end| end <= tx.now.into()) {
            return Err(Error::field("api_key.expires_at", "must be in the future"));
        }
        // A delegating key delegates the authority of its agents. The key needs at least one agent.
        if holds(self, delegating_key::SCOPE) && self.principal_ids.is_empty() {
            let problem = format!("is required with the scope `{}`", delegating_key::SCOPE);
            return Err(Error::field("api_key.principal_ids", problem));
        }
        let unusable: Vec<&str> = UNBOUND.into_iter().filter(|scope| holds(self, scope)).collect();
        if !unusable.is_empty() && !self.principal_ids.is_empty() {
            let problem = format!(
                "must be empty with these scopes, which a bound key cannot use: `{}`; create an \
                 unbound key for them",
                unusable.join("`, `")
            );
            return Err(Error::field("api_key.principal_ids", problem));
        }
        let mut known = Known::of(row_id(self.tenant_id())?, Self::KIND);
        for (index, id) in self.principal_ids.iter().enumerate() {
            known.principal(tx.db, &format!("principal_ids[{index}]"), Some(id)).await?;
        }
        known.all()?;
        check_delegating(self, tx.caller)
    }

    async fn before_delete(&self, _tx: &mut WriteTx<'_>) -> Result<(), Error> {
        live(self)
    }
}

impl_queries!(ApiKey, api_keys);

impl Entity for ApiKey {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(ApiKeyStatus::Revoked);
}

impl_save!(ApiKey, api_keys);

impl End for ApiKey {
    fn end<'c>(db: &'c mut Db, row: &'c Self, state: ApiKeyStatus) -> QueryFuture<'c, Self> {
        diesel::update(api_keys::table.find(&row.id))
            .filter(api_keys::tenant_id.eq(row.tenant_id()))
            .set((
                api_keys::status.eq(state),
                api_keys::revoked_at.eq(clock_timestamp().nullable()),
                api_keys::updated_at.eq(clock_timestamp()),
                // A revoked key keeps no previous secret either.
                api_keys::previous_code.eq(None::<Vec<u8>>),
                api_keys::previous_until.eq(None::<Time>),
            ))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

fn holds(key: &ApiKey, scope: &str) -> bool {
    key.scopes.iter().any(|held| held == scope)
}

/// Refuses a tenant's caller who would get a key that delegates. With it, an admin could give the
/// authority of one agent to another agent, and then approve its requests.
fn check_delegating(key: &ApiKey, by: &Caller) -> Result<(), Error> {
    if by.tenant().is_none() || !holds(key, delegating_key::SCOPE) {
        return Ok(());
    }
    Err(Error::Role(format!(
        "only the installation's owner manages keys with the scope `{}`",
        delegating_key::SCOPE
    )))
}

fn live(key: &ApiKey) -> Result<(), Error> {
    if key.known_state() == Some(ApiKeyStatus::Active) {
        return Ok(());
    }
    let (id, state) = (key.id.clone(), key.status.clone());
    Err(Error::Final { kind: ApiKey::KIND, id, state })
}

impl ApiKeys {
    /// Creates a key. The returned text is the only copy of its secret.
    async fn make(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        mut new: ApiKey,
    ) -> Result<Done<CreateApiKeyResponse>, Error> {
        let mut faults = Violations::default();
        faults.within("api_key", |faults| {
            new.reject_output_only(faults);
            new.validate_record(faults);
        });
        Error::unless_clean(faults)?;
        let tenant = TenantId::parse(new.tenant_id()).ok();
        let key = key.map(|key| key.within(tenant.as_ref()).sealed(self.0.keys.clone()));
        let (random, keys) = (fresh()?, self.0.keys.clone());
        let (now, by) = (self.0.clock.now(), caller.clone());
        let destinations = Arc::clone(&self.0.destinations);
        let made = self.0.idempotent(caller, key, async move |db| {
            new.resolve_tenant(db, by.tenant()).await?;
            new.tenant_slug(db, by.tenant()).await?;
            let env: String =
                tenants::table.find(new.tenant_id()).select(tenants::env).first(db).await?;
            let id = ApiKeyId::new(new_id());
            let public = id.public_id();
            new.stamp_created(String::from(&id), by.actor.clone());
            new.prefix = prefix(&env, public);
            let mut tx = WriteTx { db, caller: &by, now, destinations: &destinations };
            new.before_save(None, &mut tx).await?;
            let Issued { text, code } = issue(&keys, &env, public, random).map_err(|_| unfit())?;
            let made = diesel::insert_into(api_keys::table)
                .values((
                    &new,
                    api_keys::secret_code.eq(code.to_vec()),
                    api_keys::people.eq(Vec::from_iter(by.person())),
                    api_keys::people_emails.eq(Vec::from_iter(email(&by))),
                ))
                .returning(ApiKey::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(CreateApiKeyResponse { api_key: Some(made), secret: text })
        });
        let made = made.await?;
        self.0.shown_again(caller, &made, made.message.api_key.as_ref()).await?;
        self.0.wait_for_graph::<ApiKey>().await;
        Ok(made)
    }

    async fn rotate(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        request: RotateApiKeyRequest,
    ) -> Result<Done<RotateApiKeyResponse>, Error> {
        let key = key.map(|key| key.sealed(self.0.keys.clone()));
        let (random, keys) = (fresh()?, self.0.keys.clone());
        let overlap = TimeDelta::seconds(request.overlap_seconds.unwrap_or_default().into());
        let (now, by) = (self.0.clock.now(), caller.clone());
        let id = request.id;
        let rotated = self.0.idempotent(caller, key, async move |db| {
            let was = or_not_found(ApiKey::lock(db, by.tenant(), &id).await, &id)?;
            live(&was)?;
            check_delegating(&was, &by)?;
            let id = ApiKeyId::parse(&was.id)?;
            let env = was.prefix.split('_').nth(1).unwrap_or_default();
            let Issued { text, code } =
                issue(&keys, env, id.public_id(), random).map_err(|_| unfit())?;
            let row = api_keys::table.find(&was.id);
            let (before, mut people, mut emails): (Vec<u8>, Vec<String>, Vec<String>) = row
                .select((api_keys::secret_code, api_keys::people, api_keys::people_emails))
                .first(db)
                .await?;
            people.extend(by.person().filter(|person| !people.contains(person)));
            emails.extend(email(&by).filter(|email| !emails.contains(email)));
            let previous = (overlap > TimeDelta::zero()).then(|| (before, now + overlap));
            let (before, until) = previous.unzip();
            let key = diesel::update(row.filter(api_keys::tenant_id.eq(was.tenant_id())))
                .set((
                    api_keys::secret_code.eq(code.to_vec()),
                    api_keys::previous_code.eq(before),
                    api_keys::previous_until.eq(until),
                    api_keys::rotated_at.eq(now),
                    api_keys::rotated_by.eq(&by.actor),
                    api_keys::people.eq(people),
                    api_keys::people_emails.eq(emails),
                    api_keys::updated_at.eq(clock_timestamp()),
                ))
                .returning(ApiKey::as_returning())
                .get_result(db)
                .await?;
            Ok::<_, Error>(RotateApiKeyResponse { api_key: Some(key), secret: text })
        });
        let rotated = rotated.await?;
        self.0.shown_again(caller, &rotated, rotated.message.api_key.as_ref()).await?;
        self.0.wait_for_graph::<ApiKey>().await;
        Ok(rotated)
    }
}

/// The e-mail address of the person who creates or rotates a key.
fn email(by: &Caller) -> Option<String> {
    by.person().and(by.email()).map(str::to_owned)
}

fn fresh() -> Result<[u8; 32], Error> {
    random().map_err(|_| Error::Store(store::Error::Internal("no randomness".to_owned())))
}

/// The error for a stored row that can't be an API key.
fn unfit() -> Error {
    Error::Store(store::Error::Internal("the env or id is not valid for an API key".to_owned()))
}

/// Stores the last-used times of many keys in one statement. A stored time never decreases.
pub async fn note_uses(
    store: &Store,
    mut uses: Vec<(ApiKeyId, DateTime<Utc>)>,
) -> Result<(), store::Error> {
    if uses.is_empty() {
        return Ok(());
    }
    // Every node updates the keys in the same order, to avoid deadlocks.
    uses.sort_unstable();
    let (ids, at): (Vec<String>, Vec<DateTime<Utc>>) =
        uses.into_iter().map(|(id, at)| (id.into(), at)).unzip();
    let everywhere = Scope::service();
    store
        .write_tx(&everywhere, async move |db| {
            let update = diesel::sql_query(
                "UPDATE api_keys k SET last_used_at = u.at \
                 FROM unnest($1, $2) AS u (id, at) \
                 WHERE k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at < u.at)",
            );
            update
                .bind::<Array<Text>, _>(ids)
                .bind::<Array<Timestamptz>, _>(at)
                .execute(db)
                .await?;
            Ok::<_, store::Error>(())
        })
        .await
}

/// Stores the uses collected in `used` every 30 seconds. The uses of a failed write are lost, which
/// only affects the keys' last-used times.
pub fn keep_last_used(used: Arc<LastUsed>, store: Store) -> Worker {
    Worker::periodic("api_key_uses", USES_EVERY, move || {
        let (store, uses) = (store.clone(), used.drain());
        async move { note_uses(&store, uses).await }
    })
}

#[tonic::async_trait]
impl ApiKeyService for ApiKeys {
    async fn list_api_keys(&self, call: Request<ListApiKeysRequest>) -> Reply<ListApiKeysResponse> {
        self.0.list(call).await
    }

    async fn create_api_key(
        &self,
        call: Request<CreateApiKeyRequest>,
    ) -> Reply<CreateApiKeyResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let made = self.make(&caller, key, request.api_key.unwrap_or_default()).await?;
        Ok(made.reply())
    }

    async fn get_api_key(&self, call: Request<GetApiKeyRequest>) -> Reply<ApiKey> {
        self.0.get(call).await
    }

    async fn update_api_key(&self, call: Request<UpdateApiKeyRequest>) -> Reply<ApiKey> {
        self.0.update(call).await
    }

    async fn revoke_api_key(
        &self,
        call: Request<RevokeApiKeyRequest>,
    ) -> Reply<RevokeApiKeyResponse> {
        self.0.delete(call).await
    }

    async fn rotate_api_key(
        &self,
        call: Request<RotateApiKeyRequest>,
    ) -> Reply<RotateApiKeyResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let rotated = self.rotate(&caller, key, request).await?;
        Ok(rotated.reply())
    }
}
