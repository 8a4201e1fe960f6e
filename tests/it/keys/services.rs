//! The services that manage API keys and signing keys.

use std::sync::Arc;

use authority_api::identity::{Caller, CallerKind, Exports, Role, api_key};
use authority_graph::{self as graph, Graph};
use authority_ids::{ApiKeyId, PrincipalRef, TenantId};
use authority_keys::Keys;
use authority_model::proto::keys::{
    ApiKey, CreateApiKeyRequest, CreateKeyRequest, ListApiKeysRequest, ListKeysRequest,
    RevokeApiKeyRequest, RevokeKeyRequest, RotateApiKeyRequest, UpdateApiKeyRequest,
};
use authority_model::service::{ApiKeyService, KeyService};
use authority_model::wire::FieldMask;
use authority_process::{
    clock::Clock,
    compute::{ComputePool, Limits},
};
use authority_registry::{ApiKeys, Dns, Issuers, Registry, SigningKeys, note_uses};
use chrono::{DateTime, TimeDelta};
use diesel::{
    QueryableByName,
    sql_types::{Binary, Nullable, Text, Timestamptz},
};
use diesel_async::RunQueryDsl;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use super::inventory::Place;
use crate::support::run_workers;

struct KeyServices {
    place: Place,
    api_keys: ApiKeys,
    signing_keys: SigningKeys,
    keys: Keys,
}

impl KeyServices {
    async fn open() -> Self {
        let place = Place::new().await;
        place
            .run(
                "BEGIN; SELECT set_config('role', authority_role('system'), true);
                 SET LOCAL authority.actor = 'o';
                 INSERT INTO tenants (id, slug, name, state, env, contract_status, sla_tier,
                                      region, durability, created_by)
                 SELECT 'svc:tenant:' || s, s, s, 'active', 'sandbox', 'lead', 'pilot', 'x',
                        'strict', 'o'
                 FROM unnest('{a,b}'::text[]) s; COMMIT",
            )
            .await
            .unwrap();
        let keys = place.keys().await;
        let settings = graph::Settings::default();
        let loading =
            Graph::load(place.store.clone(), settings, Clock::default(), keys.erased_names());
        let graph = loading.await.unwrap();
        run_workers([graph.worker(), place.store.listener()]);
        let registry = Registry {
            store: place.store.clone(),
            clock: Clock::default(),
            keys: keys.clone(),
            graph,
            pool: ComputePool::start(Limits::default()).unwrap(),
            exports: Exports::new(Arc::new(|_| Ok(()))),
            destinations: Arc::default(),
            dns: Dns::new(&[]),
            issuers: Issuers::new(&[], &Clock::default()).unwrap(),
            after_commit: Arc::new(|| Box::pin(async {})),
        };
        let signing_keys = SigningKeys(registry.clone());
        Self { place, api_keys: ApiKeys(registry), signing_keys, keys }
    }

    async fn make(&self, caller: &Caller, key: ApiKey) -> Result<(ApiKey, String), Status> {
        let request = CreateApiKeyRequest { api_key: Some(key) };
        let made = self.api_keys.create_api_key(by(caller, request)).await?.into_inner();
        Ok((made.api_key.unwrap(), made.secret))
    }

    async fn rotate(&self, id: &str, overlap: Option<i32>) -> Result<(ApiKey, String), Status> {
        let request = RotateApiKeyRequest { id: id.to_owned(), overlap_seconds: overlap };
        let made = self.api_keys.rotate_api_key(by(&owner(), request)).await?.into_inner();
        Ok((made.api_key.unwrap(), made.secret))
    }

    /// Returns whether the table accepts the text of this key now.
    async fn counts(&self, text: &str) -> bool {
        let mut db = self.place.owner().await;
        let id = format!("svc:api_key:{}", api_key::parse(text).unwrap().public_id);
        let row: Codes = diesel::sql_query(
            "SELECT secret_code, previous_code, previous_until, status FROM api_keys WHERE id = $1",
        )
        .bind::<Text, _>(id)
        .get_result(&mut db)
        .await
        .unwrap();
        let code = api_key::code(&self.keys, &api_key::parse(text).unwrap());
        let before = row.previous_until.is_some_and(|until| until > Clock::default().now())
            && row.previous_code.as_deref() == Some(&code);
        row.status == "active" && (row.secret_code == code || before)
    }
}

#[derive(QueryableByName)]
struct Codes {
    #[diesel(sql_type = Binary)]
    secret_code: Vec<u8>,
    #[diesel(sql_type = Nullable<Binary>)]
    previous_code: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    previous_until: Option<DateTime<chrono::Utc>>,
    #[diesel(sql_type = Text)]
    status: String,
}

fn owner() -> Caller {
    Caller {
        actor: "o@example.com".to_owned(),
        kind: CallerKind::Owner { issuer: "i".to_owned(), subject: "o".to_owned(), email: None },
        until: None,
        authenticated_at: None,
    }
}

fn admin(tenant: &str) -> Caller {
    let kind = CallerKind::Member {
        tenant_id: TenantId::from_slug(tenant).unwrap(),
        role: Role::Admin,
        issuer: "i".to_owned(),
        subject: "s".to_owned(),
        email: None,
    };
    Caller { actor: format!("admin@{tenant}.example"), kind, until: None, authenticated_at: None }
}

fn by<T>(caller: &Caller, request: T) -> Request<T> {
    let mut request = Request::new(request);
    request.extensions_mut().insert(caller.clone());
    request
}

fn key(tenant: &str) -> ApiKey {
    ApiKey {
        tenant_id: Some(tenant.to_owned()).filter(|tenant| !tenant.is_empty()),
        label: "a label".to_owned(),
        scopes: vec!["runtime:write".to_owned()],
        ..ApiKey::default()
    }
}

fn fields(status: &Status) -> Vec<String> {
    let details = status.get_details_bad_request();
    let violations = details.map(|bad| bad.field_violations).unwrap_or_default();
    violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_shown_once_rotated_and_revoked() {
    let services = KeyServices::open().await;
    let (made, text) = services.make(&owner(), key("svc:tenant:a")).await.unwrap();
    assert_eq!((made.status.as_str(), made.created_by.as_str()), ("active", "o@example.com"));
    assert!(
        text.starts_with(&format!("{}_", made.prefix)) && made.prefix.starts_with("svc_sandbox_")
    );
    assert_eq!(made.prefix.rsplit('_').next(), made.id.rsplit(':').next());
    assert!(services.counts(&text).await);

    let (rotated, second) = services.rotate(&made.id, Some(60)).await.unwrap();
    assert_eq!((rotated.prefix, rotated.rotated_at.is_some()), (made.prefix.clone(), true));
    assert!(services.counts(&text).await && services.counts(&second).await);
    let (_, third) = services.rotate(&made.id, None).await.unwrap();
    assert!(
        !services.counts(&text).await
            && !services.counts(&second).await
            && services.counts(&third).await
    );
    let long = services.rotate(&made.id, Some(604_801)).await.unwrap_err();
    assert_eq!(fields(&long), ["overlap_seconds"]);

    let revoke = || by(&owner(), RevokeApiKeyRequest { id: made.id.clone() });
    let revoked = services.api_keys.revoke_api_key(revoke()).await.unwrap().into_inner();
    let revoked = revoked.api_key.unwrap();
    assert_eq!((revoked.status.as_str(), revoked.revoked_at.is_some()), ("revoked", true));
    assert!(!services.counts(&third).await);
    for refused in [
        services.api_keys.revoke_api_key(revoke()).await.map(drop),
        services.rotate(&made.id, None).await.map(drop),
        services
            .api_keys
            .update_api_key(by(
                &owner(),
                UpdateApiKeyRequest {
                    id: made.id.clone(),
                    api_key: Some(ApiKey { label: "x".to_owned(), ..ApiKey::default() }),
                    update_mask: Some(FieldMask { paths: vec!["label".to_owned()] }),
                    clear: None,
                },
            ))
            .await
            .map(drop),
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::Aborted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_keeps_the_own_tenants_keys_alone() {
    let services = KeyServices::open().await;
    let (own, _) = services.make(&admin("a"), key("")).await.unwrap();
    assert_eq!(own.tenant_id.as_deref(), Some("svc:tenant:a"));
    let foreign = services.make(&admin("a"), key("svc:tenant:b")).await.unwrap_err();
    assert_eq!(foreign.code(), Code::InvalidArgument);
    let nowhere = services.make(&owner(), key("")).await.unwrap_err();
    assert_eq!(fields(&nowhere), ["api_key.tenant_id"]);
    let request = by(&admin("b"), RevokeApiKeyRequest { id: own.id.clone() });
    let refused = services.api_keys.revoke_api_key(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    for (caller, shown) in [(owner(), 1), (admin("a"), 1), (admin("b"), 0)] {
        let list = services.api_keys.list_api_keys(by(&caller, ListApiKeysRequest::default()));
        assert_eq!(list.await.unwrap().into_inner().api_keys.len(), shown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_named() {
    let services = KeyServices::open().await;
    type Change = (&'static str, fn(&mut ApiKey));
    let changes: [Change; 7] = [
        ("api_key.label", |key| key.label.clear()),
        ("api_key.scopes", |key| key.scopes.clear()),
        ("api_key.ip_allowlist", |key| key.ip_allowlist = vec!["here".to_owned()]),
        ("api_key.principal_ids", |key| key.scopes = vec!["delegations:write".to_owned()]),
        ("api_key.principal_ids[0]", |key| {
            key.principal_ids = vec!["svc:agent:a:unknown".to_owned()];
        }),
        ("api_key.expires_at", |key| {
            key.expires_at = Some((Clock::default().now() - TimeDelta::hours(1)).into());
        }),
        ("api_key.status", |key| key.status = "active".to_owned()),
    ];
    for (member, change) in changes {
        let mut faulty = key("svc:tenant:a");
        change(&mut faulty);
        let refused = services.make(&owner(), faulty).await.unwrap_err();
        let named = fields(&refused);
        assert!(named.iter().any(|field| field.starts_with(member)), "{member}: {named:?}");
    }
    let mut unknown = key("svc:tenant:a");
    unknown.scopes = vec!["everything".to_owned()];
    assert!(services.make(&owner(), unknown).await.is_err());
}

/// A key with the scope to delegate must be bound to agents, because it delegates their authority.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_delegates_is_bound_to_agents() {
    let services = KeyServices::open().await;
    let principal = "svc:agent:a:bot";
    let sql = format!(
        "BEGIN; SELECT set_config('role', authority_role('system'), true);
         SET LOCAL authority.actor = 'o';
         INSERT INTO principals (id, tenant_id, state, principal_class, display_name, name,
                                 created_by)
         VALUES ('{principal}', 'svc:tenant:a', 'active', 'agent', 'Bot', 'bot', 'o'); COMMIT"
    );
    services.place.run(&sql).await.unwrap();
    let scopes = || vec!["runtime:write".to_owned(), "delegations:write".to_owned()];
    let (made, _) = services.make(&owner(), key("svc:tenant:a")).await.unwrap();
    let update = async |paths: &[&str], api_key: ApiKey| {
        let mask = FieldMask { paths: paths.iter().map(ToString::to_string).collect() };
        let (id, api_key) = (made.id.clone(), Some(api_key));
        let request = UpdateApiKeyRequest { id, api_key, update_mask: Some(mask), clear: None };
        services.api_keys.update_api_key(by(&owner(), request)).await.map(drop)
    };
    let wider = ApiKey { scopes: scopes(), ..ApiKey::default() };
    let new = ApiKey { scopes: scopes(), ..key("svc:tenant:a") };
    for refused in [
        update(&["scopes"], wider.clone()).await,
        services.make(&owner(), new.clone()).await.map(drop),
    ] {
        assert_eq!(fields(&refused.unwrap_err()), ["api_key.principal_ids"]);
    }
    let bound = vec![principal.to_owned()];
    services.make(&owner(), ApiKey { principal_ids: bound.clone(), ..new }).await.unwrap();
    let wider = ApiKey { principal_ids: bound, ..wider };
    update(&["scopes", "principal_ids"], wider).await.unwrap();
    let unbound = update(&["principal_ids"], ApiKey::default()).await.unwrap_err();
    assert_eq!(fields(&unbound), ["api_key.principal_ids"]);
    let narrow = ApiKey { scopes: vec!["runtime:write".to_owned()], ..ApiKey::default() };
    let named = |path: &str| Some(FieldMask { paths: vec![path.to_owned()] });
    let request = UpdateApiKeyRequest {
        id: made.id.clone(),
        api_key: Some(narrow),
        update_mask: named("scopes"),
        clear: named("principal_ids"),
    };
    services.api_keys.update_api_key(by(&owner(), request)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_are_written_in_batches_and_never_back_in_time() {
    let services = KeyServices::open().await;
    let (made, _) = services.make(&owner(), key("svc:tenant:a")).await.unwrap();
    let at = Clock::default().now();
    let id: ApiKeyId = made.id.parse().unwrap();
    let gone: ApiKeyId = "svc:api_key:gone".parse().unwrap();
    for moment in [at, at - TimeDelta::hours(1)] {
        let uses = vec![(id.clone(), moment), (gone.clone(), moment)];
        note_uses(&services.place.store, uses).await.unwrap();
    }
    let list = services.api_keys.list_api_keys(by(&owner(), ListApiKeysRequest::default()));
    let listed = list.await.unwrap().into_inner().api_keys;
    assert_eq!(listed[0].last_used_at, Some(at.into()));
    note_uses(&services.place.store, Vec::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inventory_follows_the_specification() {
    let services = KeyServices::open().await;
    let service = &services.signing_keys;
    let create = async |alg: Option<&str>, provider: Option<&str>| {
        let request = CreateKeyRequest {
            alg: alg.map(str::to_owned),
            custody_provider: provider.map(str::to_owned),
            ..CreateKeyRequest::default()
        };
        service.create_key(by(&owner(), request)).await.map(tonic::Response::into_inner)
    };
    for (alg, curve) in [
        (None, Some("P-256")),
        (Some("EdDSA"), Some("P-256")),
        (Some("ES256"), Some("P-256")),
        (Some("ES384"), Some("P-384")),
        (Some("RS256"), None),
    ] {
        let made = create(alg, None).await.unwrap();
        let jwk = made.public_jwk.unwrap().0;
        assert_eq!(made.alg, alg.unwrap_or("ES256"));
        assert_eq!(jwk.get("crv").and_then(|crv| crv.as_str()), curve);
        assert!(!jwk.contains_key("d") && made.purpose == "general" && !made.managed);
        assert_eq!((made.status.as_str(), made.created_by.as_str()), ("active", "o@example.com"));
    }
    assert_eq!(create(Some("HS256"), None).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(create(None, Some("nope")).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(create(None, Some("pkcs11")).await.unwrap_err().code(), Code::Aborted);

    let list = service.list_keys(by(&owner(), ListKeysRequest {})).await.unwrap().into_inner();
    assert_eq!((list.providers_writable.len(), list.providers_read_only.len()), (1, 4));
    assert!(list.keys.iter().all(|key| key.public_jwk.is_none()));
    let kid = list.keys[0].kid.clone();
    let revoke = || service.revoke_key(by(&owner(), RevokeKeyRequest { kid: kid.clone() }));
    let revoked = revoke().await.unwrap().into_inner();
    assert_eq!((revoked.status.as_str(), revoked.revoked_at.is_some()), ("revoked", true));
    let again = revoke().await.unwrap_err();
    let about = again.get_details_error_info().unwrap();
    assert_eq!(
        (again.code(), about.reason.as_str()),
        (Code::NotFound, "not_found_or_already_revoked")
    );
    let none = service.revoke_key(by(&owner(), RevokeKeyRequest::default())).await.unwrap_err();
    assert_eq!(fields(&none), ["kid"]);
}

/// The record of a key contains all facts that checking the key needs.
#[test]
fn a_record_tells_the_facts() {
    let record = ApiKey { ip_allowlist: vec!["10.0.0.0/8".to_owned()], ..key("svc:tenant:a") };
    let facts = graph::ApiKey {
        id: "svc:api_key:a".parse().unwrap(),
        tenant_id: record.tenant_id.as_deref().unwrap().parse().unwrap(),
        active: record.status == "active",
        code: [0; 32],
        previous: None,
        expires_at: record.expires_at.and_then(authority_model::wire::Time::moment),
        scopes: record.scopes.clone().into(),
        principal_ids: record.principal_ids.iter().cloned().map(PrincipalRef::from).collect(),
        allowed_from: graph::allow_list(record.ip_allowlist.iter().map(String::as_str)).unwrap(),
        decisions_per_second: None,
        people: Arc::default(),
    };
    assert!(facts.allows(Some("10.1.1.1".parse().unwrap())) && !facts.allows(None));
}
