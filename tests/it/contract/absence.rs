//! Absent fields, null and the empty string over REST and gRPC: the effect of each, and the errors.

use authority_model::{
    proto::registry::{Tenant, UpdateTenantRequest, tenant_service_client::TenantServiceClient},
    wire::FieldMask,
};
use serde_json::{Value, json};
use tonic::{Code, Request, Status, metadata::MetadataValue, transport::Channel};
use tonic_types::StatusExt;

use crate::support::{Plain, TestApp};

const TENANT: &str = "svc:tenant:blank";

async fn patched(
    grpc: &mut TenantServiceClient<Channel>,
    token: &str,
    member: &str,
    tenant: Tenant,
) -> Result<Tenant, Status> {
    let mask = FieldMask { paths: vec![member.to_owned()] };
    let mut call = Request::new(UpdateTenantRequest {
        id: TENANT.to_owned(),
        tenant: Some(tenant),
        update_mask: Some(mask),
    });
    let bearer: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    call.metadata_mut().insert("authorization", bearer);
    Ok(grpc.update_tenant(call).await?.into_inner())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absence_null_and_the_empty_text_are_three_things() {
    let app = TestApp::start().await;
    let whole = json!({
        "name": "Blank", "idp_org_id": "org_blank", "owner_email": "a@example.org", "env": "prod",
        "state": "suspended",
    });
    assert_eq!(app.owner().post("/api/v1/tenants", whole).await.0, 201);
    let path = format!("/api/v1/tenants/{TENANT}");
    let mut grpc = TenantServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let token = app.owner_token();

    // An empty string is refused, the error names the field, and the record does not change.
    let before = app.owner().get(&path).await.1;
    for member in ["idp_org_id", "owner_email", "env", "state", "region"] {
        let (status, answer) = app.owner().patch(&path, json!({ member: "" })).await;
        let named = &answer["details"][0]["field"];
        assert_eq!((status, named), (400, &json!(member)), "{answer:#}");
    }
    let empty = || Some(String::new());
    for (member, tenant) in [
        ("idp_org_id", Tenant { idp_org_id: empty(), ..Tenant::default() }),
        ("env", Tenant { env: empty(), ..Tenant::default() }),
        ("state", Tenant { state: empty(), ..Tenant::default() }),
        // A field that is in the mask but unset is cleared. A state can't be cleared.
        ("state", Tenant::default()),
    ] {
        let refused = patched(&mut grpc, token, member, tenant).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{member}");
        let details = refused.get_error_details();
        let named = details.bad_request().unwrap().field_violations[0].field.clone();
        assert_eq!(named, format!("tenant.{member}"));
    }
    assert_eq!(app.owner().get(&path).await.1, before);

    // A field that is null, or in the mask but unset, is cleared or set to its default.
    let (status, answer) = app.owner().patch(&path, json!({"idp_org_id": null})).await;
    assert_eq!((status, &answer["tenant"]["idp_org_id"]), (200, &Value::Null), "{answer:#}");
    let (status, answer) = app.owner().patch(&path, json!({"state": null})).await;
    assert_eq!((status, answer["details"][0]["field"].text()), (400, "state"), "{answer:#}");
    let cleared = patched(&mut grpc, token, "owner_email", Tenant::default()).await.unwrap();
    assert_eq!(cleared.owner_email, None);
    let usual = patched(&mut grpc, token, "env", Tenant::default()).await.unwrap();
    assert_eq!(usual.env.as_deref(), Some("sandbox"));
    assert_eq!(
        usual.state.as_deref(),
        Some("suspended"),
        "fields outside the mask must not change"
    );

    // Free text may be empty.
    let (status, answer) = app.owner().patch(&path, json!({"notes": ""})).await;
    assert_eq!((status, &answer["tenant"]["notes"]), (200, &json!("")));
}
