//! The tenant that the installation's owner looks at.

use authority_ids::TenantId;
use authority_model::proto::registry::{GetTenantRequest, ListTenantsRequest};

use crate::{
    kit::prelude::*,
    session::{Cookie, digest, new_value},
};

pub(crate) fn router() -> Router<Console> {
    Router::new().route("/console/tenant", get(choose).post(chosen))
}

struct Choice {
    id: String,
    slug: String,
    name: String,
    is_shown: bool,
}

#[derive(Template)]
#[template(path = "tenant.html")]
struct TenantPage {
    frame: Frame,
    tenants: Vec<Choice>,
    shows_all: bool,
}

async fn choose(view: View) -> Response {
    view.answer(choices(&view).await)
}

async fn choices(view: &View) -> Result<Response, Status> {
    let request = ListTenantsRequest { limit: Some(500), ..ListTenantsRequest::default() };
    let listed = view.calls.call(&request).await?;
    let shown = view.shown_tenant();
    let tenants = listed.tenants.into_iter().map(|tenant| Choice {
        slug: short(&tenant.id).to_owned(),
        is_shown: shown.is_some_and(|shown| *shown == *tenant.id),
        id: tenant.id,
        name: tenant.name,
    });
    let frame = view.frame(t::kit::CHOOSE_TENANT, Section::Tenant);
    let tenants = tenants.collect();
    Ok(page(StatusCode::OK, &TenantPage { frame, tenants, shows_all: shown.is_none() }))
}

/// Selects a tenant. The session continues under a new cookie.
async fn chosen(Posted { view, form }: Posted) -> Response {
    view.answer_act(t::administration::NOT_CHOSEN, shown(&view, form.one("tenant_id")).await)
}

async fn shown(view: &View, tenant_id: Option<&str>) -> Result<Response, Status> {
    if !view.may(rpc::LIST_TENANTS) {
        return Err(Status::permission_denied(t::administration::ONLY_OWNER));
    }
    // The tenant must exist. For an unknown tenant, pages would be empty without an explanation.
    let tenant_id = match tenant_id {
        Some(id) => Some(known(view, id).await?),
        None => None,
    };
    let away = || Status::unavailable(t::administration::SESSION_UNCHANGED);
    let value = new_value();
    let value = value.map_err(|_| Status::unavailable(t::administration::NO_RANDOMNESS))?;
    let sessions = &view.console.0.sessions;
    let moved = sessions.show_tenant(view.session.digest, digest(&value), tenant_id).await;
    if !moved.map_err(|_| away())? {
        return Err(away());
    }
    let mut answer = see("/console");
    if let Some(cookie) = view.console.0.cookies.set(Cookie::Session, &value) {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// The id of the tenant that is named by its id or slug.
async fn known(view: &View, id: &str) -> Result<TenantId, Status> {
    let request = GetTenantRequest { id: id.to_owned(), ..GetTenantRequest::default() };
    let found = view.calls.call(&request).await;
    match found {
        Ok(tenant) => {
            let id = TenantId::parse(&tenant.id);
            id.map_err(|_| Status::internal(t::administration::TENANT_ID_INVALID))
        }
        Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => {
            Err(Status::not_found(t::administration::UNKNOWN_TENANT))
        }
        Err(status) => Err(status),
    }
}
