//! Names shown next to the ids of a record.
//!
//! The names are current, and the record contains only the ids: its proof does not depend on the
//! names. A person's name is shown only to the tenant's own readers. Other readers see "a person".

use std::collections::HashMap;

use authority_ids::{DelegationRef, IdParts, PrincipalRef, TenantRef};
use authority_model::schema::{delegations, principals, resources, tenants, tools};
use authority_store::{Db, Error, RunQueryDsl};
use diesel::prelude::*;
use serde_json::Value;

/// Shown instead of a person's name to readers who may not see people's names.
const PERSON: &str = "a person";

/// The names that a receipt shows.
#[derive(Default)]
pub(super) struct Names {
    names: HashMap<String, String>,
    people: HashMap<String, String>,
    /// Delegator and delegate of each delegation of the chain.
    links: HashMap<DelegationRef, (PrincipalRef, PrincipalRef)>,
}

impl Names {
    /// Reads the names of the objects in this tenant's record.
    pub(super) async fn read(
        db: &mut Db,
        tenant_id: &TenantRef,
        record: &Value,
    ) -> Result<Self, Error> {
        let (mut found, tenant_id) = (Self::default(), tenant_id.as_str());
        let texts = |value: &Value| {
            let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            items.map(str::to_owned).collect::<Vec<_>>()
        };
        let chain = texts(&record["verdict"]["authority"]["chain"]);
        let links: Vec<(String, String, String)> = delegations::table
            .filter(delegations::tenant_id.eq(tenant_id).and(delegations::id.eq_any(chain)))
            .select((delegations::id, delegations::delegator_id, delegations::delegate_id))
            .load(db)
            .await?;
        let member = |name: &str| record["request"][name].as_str().map(str::to_owned);
        let mut acting: Vec<String> = member("subject").into_iter().collect();
        for (id, from, to) in links {
            acting.extend([from.clone(), to.clone()]);
            found.links.insert(id.into(), (from.into(), to.into()));
        }
        let rows: Vec<(String, String, String)> = principals::table
            .filter(principals::tenant_id.eq(tenant_id).and(principals::id.eq_any(acting)))
            .select((principals::id, principals::display_name, principals::principal_class))
            .load(db)
            .await?;
        for (id, name, class) in rows {
            if class == "human" {
                found.people.insert(id, name);
            } else {
                found.names.insert(id.clone(), called(&id, name));
            }
        }
        let tool = tools::table
            .filter(tools::tenant_id.eq(tenant_id).and(tools::id.nullable().eq(member("tool_id"))))
            .select((tools::id, tools::name));
        let resource = resources::table
            .filter(resources::tenant_id.eq(tenant_id))
            .filter(resources::id.nullable().eq(member("resource_id")))
            .select((resources::id, resources::name));
        let tenant = tenants::table.find(tenant_id).select((tenants::id, tenants::name));
        found.names.extend(tool.load::<(String, String)>(db).await?);
        found.names.extend(resource.load::<(String, String)>(db).await?);
        found.names.extend(tenant.load::<(String, String)>(db).await?);
        Ok(found)
    }

    /// The name of an id. People's names are returned only if `knows_people`.
    pub(super) fn name(&self, id: &str, knows_people: bool) -> Option<&str> {
        if let Some(name) = self.people.get(id) {
            return Some(if knows_people { name } else { PERSON });
        }
        self.names.get(id).map(String::as_str)
    }

    /// The delegator and the delegate of a delegation.
    pub(super) fn link(&self, id: &DelegationRef) -> Option<&(PrincipalRef, PrincipalRef)> {
        self.links.get(id)
    }
}

/// Returns the name to show: for an agent, the name in its id and its display name; for other
/// objects, the display name.
fn called(id: &str, display_name: String) -> String {
    match id.rsplit(':').next() {
        Some(name) if IdParts::is(id, "agent") && name != display_name => {
            format!("{name}, “{display_name}”")
        }
        _ => display_name,
    }
}
