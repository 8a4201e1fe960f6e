//! Authorization: access rules, headers, and the format of errors.

use authority_api::{
    error::ApiError,
    identity::{AuthenticateLayer, Caller, CallerKind, Error, Via},
};
use authority_model::surfaces::Surfaces;
use http::{HeaderMap, HeaderValue, Request, Response, header::AUTHORIZATION};
use tower::{Layer, ServiceExt, service_fn};

use super::{
    ADMIN, APP_TWIN, CLOSED, EVERYWHERE, KEYS_TWIN, MEMBER, OWNER, PUBLIC, TWIN, TWINS, WRITE,
    World, member,
};

#[tokio::test]
async fn a_method_without_a_rule_is_refused_to_everyone() {
    let world = World::new();
    for path in ["/t.Service/New", "/t.Service/owner", "/t.Service/Owner/", CLOSED, "", "/"] {
        let answer = world.call(path, &world.token(|_| {})).await;
        assert!(matches!(answer, Err(Error::Forbidden(_) | Error::Role(_))), "{path}");
        let anonymous =
            world.identity.authenticate(path, EVERYWHERE, &HeaderMap::new(), None).await;
        assert_eq!(anonymous, Err(Error::NoCredential), "{path}");
    }
    let open = "/grpc.health.v1.Health/Check";
    world.identity.authenticate(open, EVERYWHERE, &HeaderMap::new(), None).await.unwrap();
}

#[tokio::test]
async fn roles_open_what_they_name() {
    let world = World::new();
    for (path, role, may) in [
        (MEMBER, "viewer", true),
        (MEMBER, "", true),
        (ADMIN, "admin", true),
        (ADMIN, "legal", true),
        (ADMIN, "viewer", false),
        (ADMIN, "Admin", false),
        (ADMIN, "", false),
        (OWNER, "admin", false),
        (WRITE, "admin", false),
    ] {
        let answer = world.call(path, &world.dev_token(&member("acme", role))).await;
        assert_eq!(answer.is_ok(), may, "{path} {role}: {answer:?}");
    }
    // The owner has no tenant: operations on the caller's own tenant are refused.
    assert!(matches!(
        world.call(ADMIN, &world.token(|_| {})).await,
        Err(Error::Forbidden(_) | Error::Role(_))
    ));
    world.call(WRITE, &world.token(|_| {})).await.unwrap();
}

#[tokio::test]
async fn a_refused_role_is_a_value_of_the_error() {
    let world = World::new();
    let (owner, viewer) = (world.token(|_| {}), world.dev_token(&member("acme", "viewer")));
    for (path, credential, role, permitted) in [
        (ADMIN, &viewer, "viewer", "admin, legal"),
        (ADMIN, &owner, "owner", "admin, legal"),
        (OWNER, &viewer, "viewer", "owner"),
        (WRITE, &viewer, "viewer", "owner"),
        (TWINS, &viewer, "viewer", "admin, owner"),
    ] {
        let refused = ApiError::from(world.call(path, credential).await.unwrap_err());
        assert_eq!(refused.code.word(), "forbidden", "{path}");
        let values = [("role", role.to_owned()), ("permitted_roles", permitted.to_owned())];
        assert_eq!(refused.about, values, "{path} {role}");
    }
    // No role could call a method without rules.
    let refused = ApiError::from(world.call("/t.Service/New", &viewer).await.unwrap_err());
    assert!(refused.about.is_empty(), "{:?}", refused.about);
}

#[tokio::test]
async fn a_rule_is_its_bindings_alone() {
    let world = World::new();
    let rest = |path| Via::Rest { verb: "GET", path };
    let owner = world.token(|_| {});
    let admin = world.dev_token(&member("acme", "admin"));
    let key = super::api_keys::make(&world, |_| {});
    let who = [("owner", &owner), ("admin", &admin), ("key", &key)];
    for (via, may) in [
        (rest(TWIN), "owner"),
        (rest(APP_TWIN), "admin"),
        (rest(KEYS_TWIN), "key"),
        // Methods without an access rule can't be called.
        (rest("/v1/member"), ""),
        (Via::Rest { verb: "POST", path: TWIN }, ""),
        (Via::Grpc(Surfaces::ADMIN), "owner"),
        (Via::Grpc(Surfaces::APP), "admin"),
        (Via::Grpc(Surfaces::GATEWAY), "key"),
        (Via::Grpc(Surfaces::APP.and(Surfaces::GATEWAY)), "admin key"),
        (Via::Grpc(Surfaces::SITE), ""),
        (Via::Grpc(Surfaces::NONE), ""),
        (EVERYWHERE, "owner admin key"),
    ] {
        for (name, credential) in who {
            let answer = world.call_via(TWINS, via, credential).await;
            assert_eq!(answer.is_ok(), may.contains(name), "{name} {via:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_key_is_told_which_credential_is_taken_and_where_keys_are() {
    let world = World::new();
    let key = super::api_keys::make(&world, |_| {});
    let refused = async |rpc, path| {
        let answer = world.call_via(rpc, Via::Rest { verb: "GET", path }, &key).await;
        ApiError::from(answer.unwrap_err())
    };
    let told = refused(TWINS, APP_TWIN).await;
    assert_eq!(told.code.word(), "forbidden");
    assert_eq!(
        told.message,
        "this operation takes no API key here, but a JWT of the tenant with the role `admin`; API \
         keys with the scope `runtime:write` call GET /v1/things"
    );
    assert_eq!(
        refused(ADMIN, "/api/v1/app/admin").await.message,
        "this operation takes no API key here, but a JWT of the tenant with the role `admin` or `legal`"
    );
    assert_eq!(
        refused(MEMBER, "/v1/member").await.message,
        "this operation takes no API key here, but a JWT of the tenant or the JWT of the \
         installation's owner"
    );
    assert_eq!(refused(CLOSED, "/v1/closed").await.message, "this operation takes no API key");
}

#[tokio::test]
async fn what_is_public_asks_for_nothing() {
    let world = World::new();
    for headers in [HeaderMap::new(), super::bearer("rubbish"), super::bearer("svc_rubbish")] {
        let caller = world.identity.authenticate(PUBLIC, EVERYWHERE, &headers, None).await.unwrap();
        assert_eq!(caller, Caller::anonymous());
    }
    assert!(world.call(PUBLIC, &world.token(|_| {})).await.unwrap().is_owner());
}

#[tokio::test]
async fn a_header_that_is_not_one_bearer_token_is_refused() {
    let world = World::new();
    let token = world.token(|_| {});
    for value in [
        token.clone(),
        format!("Basic {token}"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {token} {token}"),
        format!("Bearer {}", "x".repeat(20_000)),
    ] {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        let answer = world.identity.authenticate(OWNER, EVERYWHERE, &headers, None).await;
        assert_eq!(answer, Err(Error::Unreadable), "{value:.30}");
    }
    let mut two = super::bearer(&token);
    two.append(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    let answer = world.identity.authenticate(OWNER, EVERYWHERE, &two, None).await;
    assert_eq!(answer, Err(Error::Unreadable));
    let headers =
        HeaderMap::from_iter([(AUTHORIZATION, format!("bearer {token}").parse().unwrap())]);
    world.identity.authenticate(OWNER, EVERYWHERE, &headers, None).await.unwrap();
}

#[test]
fn refusals_say_what_to_send() {
    for (error, word, challenge) in [
        (Error::NoCredential, "unauthenticated", Some("Bearer realm=\"authority\"")),
        (
            Error::Token("it has expired"),
            "unauthenticated",
            Some(
                "Bearer realm=\"authority\", error=\"invalid_token\", \
             error_description=\"the token is refused: it has expired\"",
            ),
        ),
        (
            Error::Scope("runtime:write"),
            "permission_scope_exceeded",
            Some(
                "Bearer realm=\"authority\", error=\"insufficient_scope\", scope=\"runtime:write\"",
            ),
        ),
        (Error::Forbidden("no"), "forbidden", None),
        (Error::Unavailable, "unavailable", None),
    ] {
        let refusal = ApiError::from(error);
        assert_eq!(refusal.code.word(), word);
        let shown = refusal.about.iter().find(|(key, _)| *key == "www_authenticate");
        assert_eq!(shown.map(|(_, text)| text.as_str()), challenge);
    }
}

#[tokio::test]
async fn the_layer_refuses_or_hands_the_caller_on() {
    let world = World::new();
    let layer = AuthenticateLayer::new(world.identity.clone(), |_| None);
    let service = layer.layer(service_fn(async |request: Request<String>| {
        let caller = request.extensions().get::<Caller>().cloned();
        assert!(request.headers().contains_key(AUTHORIZATION) || caller.is_some());
        Ok::<_, std::convert::Infallible>(Response::new(caller.unwrap().actor))
    }));
    let request = |path: &str, token: &str| {
        let request = Request::post(path);
        let request = request.extension(Surfaces::ALL);
        request.header(AUTHORIZATION, format!("Bearer {token}")).body(String::new()).unwrap()
    };
    // A call that did not arrive at an address reaches no surface.
    let mut nowhere = request(OWNER, &world.token(|_| {}));
    nowhere.extensions_mut().remove::<Surfaces>();
    let refused = service.clone().oneshot(nowhere).await.unwrap();
    assert_eq!(refused.headers()["grpc-status"], "7");
    let good = service.clone().oneshot(request(OWNER, &world.token(|_| {}))).await.unwrap();
    assert_eq!(good.body(), "owner@example.com");
    let bad = service.clone().oneshot(request(OWNER, "rubbish")).await.unwrap();
    assert_eq!((bad.body().as_str(), bad.headers()["grpc-status"].as_bytes()), ("", &b"16"[..]));
    let refused = service.clone().oneshot(request("/t.Service/New", &world.token(|_| {}))).await;
    assert_eq!(refused.unwrap().headers()["grpc-status"], "7");
    // If the request already has an authenticated caller, its credential is not checked again.
    let mut checked = Request::post("/t.Service/New").body(String::new()).unwrap();
    let rest =
        Caller { actor: "rest".to_owned(), kind: owner(), until: None, authenticated_at: None };
    checked.extensions_mut().insert(rest);
    assert_eq!(service.oneshot(checked).await.unwrap().body(), "rest");
}

fn owner() -> CallerKind {
    CallerKind::Owner { issuer: "https://idp".to_owned(), subject: "o".to_owned(), email: None }
}
