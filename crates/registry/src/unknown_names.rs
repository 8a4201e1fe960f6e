//! The operation that finds actions and purposes that a tenant does not know. A misspelt name looks
//! harmless, but has no effect.

use std::collections::BTreeSet;

use authority_api::named_tenant;
use authority_model::proto::registry::{
    FindUnknownNamesRequest, FindUnknownNamesResponse, UnknownName,
};
use diesel::sql_types::{Array, Text};
use tonic::Response;

use crate::{
    flow::prelude::*,
    similar_name::{UnknownAction, nearest},
};

/// Reads the names of the tenant `$1`. Tools often have only patterns. Actions that were recently
/// permitted or held therefore also count as known.
const NAMES: &str = "SELECT ARRAY( \
        SELECT unnest(actions) FROM tools WHERE tenant_id = $1 \
        UNION SELECT unnest(allowed_actions) FROM purposes WHERE tenant_id = $1 \
        UNION SELECT unnest(actions) FROM delegations WHERE tenant_id = $1 \
        UNION SELECT action FROM (SELECT action, decision FROM decisions \
            WHERE tenant_id = $1 ORDER BY id DESC LIMIT 500) AS newest WHERE decision <> 'deny' \
    ) AS actions, ARRAY(SELECT slug FROM purposes WHERE tenant_id = $1) AS purposes";

/// The names of a tenant.
#[derive(QueryableByName)]
struct Names {
    /// Actions and patterns of actions.
    #[diesel(sql_type = Array<Text>)]
    actions: Vec<String>,
    /// Slugs of purposes.
    #[diesel(sql_type = Array<Text>)]
    purposes: Vec<String>,
}

/// Finds the names that the tenant does not know.
pub(crate) async fn find(
    registry: &Registry,
    call: Request<FindUnknownNamesRequest>,
) -> Reply<FindUnknownNamesResponse> {
    let (caller, request) = admitted(call)?;
    named_tenant::known(&registry.store, &caller, request.tenant_id.as_deref()).await?;
    let tenant_id = request.tenant_id.or_else(|| caller.tenant().map(String::from));
    let tenant_id = tenant_id.ok_or_else(|| Error::field("tenant_id", "is required"))?;
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let names = diesel::sql_query(NAMES).bind::<Text, _>(tenant_id).get_result(db).await;
        Ok::<Names, Error>(names?)
    });
    let Names { actions, purposes } = read.await?;
    let (actions, purposes) = (BTreeSet::from_iter(actions), BTreeSet::from_iter(purposes));
    let of_actions = request.actions.iter().filter_map(|name| action(name, &actions));
    let of_purposes = request.purposes.iter().filter_map(|slug| purpose(slug, &purposes));
    let unknown_names = of_actions.chain(of_purposes).collect();
    Ok(Response::new(FindUnknownNamesResponse { unknown_names }))
}

fn action(name: &str, known: &BTreeSet<String>) -> Option<UnknownName> {
    let unknown = UnknownAction::of(name, known)?;
    let verb = if unknown.is_covered { "names" } else { "has" };
    let text = format!("No tool, purpose or delegation of the tenant {verb} `{name}`.");
    Some(unknown_name("action", name, unknown.did_you_mean, text))
}

fn purpose(slug: &str, known: &BTreeSet<String>) -> Option<UnknownName> {
    let is_unknown = !known.contains(slug);
    let text = format!("No purpose of the tenant is called `{slug}`.");
    is_unknown.then(|| unknown_name("purpose", slug, nearest(slug, known), text))
}

fn unknown_name(
    kind: &str,
    name: &str,
    did_you_mean: Option<String>,
    mut warning: String,
) -> UnknownName {
    if let Some(meant) = &did_you_mean {
        warning.extend([" Did you mean `", meant, "`?"]);
    }
    UnknownName { kind: kind.to_owned(), name: name.to_owned(), did_you_mean, warning }
}
