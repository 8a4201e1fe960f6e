//! Proposals for ids in forms: records of the tenant that the person may list.

use authority_ids::TenantId;
use authority_model::proto::registry::ListTenantsRequest;
use authority_webhook::event_types::EventType;
use prost_reflect::{DynamicMessage, Value as Proto};

use super::{call::call, field::Field, held::held, library, shown::title};
use crate::kit::{
    kinds::{Input, KINDS, Kind, listed, set_text, text},
    known_actions::known_actions,
    names::is_agent,
    prelude::*,
};

/// Records of one kind that a field proposes.
pub(crate) struct Picker {
    /// The id of its list in the page.
    pub(crate) id: String,
    /// A field's value, and its display name.
    pub(crate) options: Vec<(String, String)>,
}

/// The member that names agents.
const AGENTS: &str = "principal_ids";
/// The member for a state machine. The form offers the existing machines.
const MACHINE: &str = "machine_id";
/// The maximum number of kinds that a form proposes. Each kind takes a call.
const KINDS_ASKED: usize = 5;
/// The maximum number of proposals below a field.
const SHOWN: usize = 12;
/// The maximum number of proposed records of a kind.
const PROPOSED: i32 = 100;
/// The states of records that are over. They are not proposed.
const OVER: [&str; 4] = ["revoked", "retired", "deprecated", "deleted"];

/// Proposes records in the fields with ids.
pub(super) async fn fill(view: &View, tenant: Option<&str>, fields: &mut [Field]) -> Vec<Picker> {
    let mut asked: Vec<&'static Kind> = Vec::new();
    for field in fields.iter_mut() {
        let takes_ids = matches!(field.member.input, Input::Line | Input::Lines);
        let kind = kind_of(&field.member.name).filter(|kind| takes_ids && view.may(&kind.list.rpc));
        let Some(kind) = kind else { continue };
        if !asked.iter().any(|known| known.path == kind.path) {
            if asked.len() == KINDS_ASKED {
                continue;
            }
            asked.push(kind);
        }
        field.picker = Some(format!("list-{}", kind.path));
    }
    let read = asked.into_iter().map(|kind| async move {
        let options = proposed(view, kind, tenant).await;
        Picker { id: format!("list-{}", kind.path), options }
    });
    let pickers = some_at_once(read).await;
    // A field of several lines has no browser list. Its proposals are shown below it.
    for field in fields.iter_mut().filter(|field| field.member.input == Input::Lines) {
        let picker = pickers.iter().find(|picker| field.picker.as_ref() == Some(&picker.id));
        let options = picker.iter().flat_map(|picker| &picker.options);
        // An API key acts for agents only: people sign in.
        let fits = |(id, _): &&(String, String)| field.member.name != AGENTS || is_agent(id);
        field.known = options.filter(fits).take(SHOWN).cloned().collect();
    }
    for field in fields.iter_mut().filter(|field| field.member.name == MACHINE) {
        let picker = pickers.iter().find(|picker| field.picker.as_ref() == Some(&picker.id));
        // If the list may be incomplete, the field takes a typed id instead.
        let all = picker.filter(|picker| picker.options.len() < PROPOSED.unsigned_abs() as usize);
        field.options = all.map(|picker| picker.options.clone()).unwrap_or_default();
    }
    library::fill(view, fields).await;
    pickers
}

/// Proposes records and names in the fields of a hand-made form. Returns the lists that are too
/// long for a choice.
pub(crate) async fn propose(
    view: &View,
    tenant: Option<&str>,
    fields: &mut [Field],
) -> Vec<Picker> {
    let mut asked: Vec<&'static str> = fields.iter().filter_map(|field| field.picks).collect();
    asked.sort_unstable();
    asked.dedup();
    let read =
        asked.into_iter().map(|what| async move { (what, proposals(view, tenant, what).await) });
    let found = some_at_once(read).await;
    let mut pickers: Vec<Picker> = Vec::new();
    for field in fields {
        let options = found.iter().find(|(what, _)| field.picks == Some(*what));
        let Some((what, options)) = options.filter(|(_, options)| !options.is_empty()) else {
            continue;
        };
        if options.len() < PROPOSED.unsigned_abs() as usize {
            field.options.clone_from(options);
            continue;
        }
        let id = format!("list-{what}");
        field.picker = Some(id.clone());
        if !pickers.iter().any(|picker| picker.id == id) {
            pickers.push(Picker { id, options: options.clone() });
        }
    }
    pickers
}

/// The records or names that a hand-made form proposes, each with its display name.
pub(crate) async fn proposals(
    view: &View,
    tenant: Option<&str>,
    what: &str,
) -> Vec<(String, String)> {
    let twice = |name: String| (name.clone(), name);
    let path = match what {
        "event_types" => {
            return EventType::families().map(|kind| twice(kind.name().to_owned())).collect();
        }
        "actions" => {
            let Some(tenant) = tenant else { return Vec::new() };
            return known_actions(view, tenant).await.into_iter().map(twice).collect();
        }
        "held" => return held(view).await,
        "agents" | "people" => "principals",
        path => path,
    };
    let Some(kind) = Kind::at(path).filter(|kind| view.may(&kind.list.rpc)) else {
        return Vec::new();
    };
    let mut options = proposed(view, kind, tenant).await;
    options.retain(|(id, _)| match what {
        "agents" => is_agent(id),
        "people" => !is_agent(id),
        _ => true,
    });
    for (id, label) in options.iter_mut().filter(|(id, _)| is_agent(id)) {
        *label = t::stop::principal_option(short(id), &*label);
    }
    options
}

/// The tenant, if there is only one. The owner of the installation then need not name it.
pub(super) async fn only_tenant(view: &View) -> Option<String> {
    if !view.may(rpc::LIST_TENANTS) {
        return None;
    }
    let request = ListTenantsRequest { limit: Some(2), ..ListTenantsRequest::default() };
    let listed = view.calls.call(&request).await.ok()?;
    let mut tenants = listed.tenants.into_iter();
    tenants.next().filter(|_| tenants.next().is_none()).map(|tenant| tenant.id)
}

/// The tenant of a form: the selected one, the named one, or the only one.
pub(crate) async fn tenant_of(view: &View, named: Option<&str>) -> Option<String> {
    match (view.tenant(), named) {
        (Some(tenant), _) => Some(tenant.into()),
        (None, Some(named)) => Some(TenantId::complete(named).into()),
        (None, None) => only_tenant(view).await,
    }
}

/// The kind of records that a member refers to.
fn kind_of(member: &str) -> Option<&'static Kind> {
    let stem = match member {
        "delegator_id" | "delegate_id" | "subject_id" | "actor_id" | "granted_by" => "principal",
        "parent_id" => return None,
        "purposes" => "purpose",
        MACHINE => "state_machine",
        _ => member.strip_suffix("_ids").or_else(|| member.strip_suffix("_id"))?,
    };
    let is_of = |kind: &&Kind| {
        kind.has_ids() && (stem == kind.singular || stem.ends_with(&format!("_{}", kind.singular)))
    };
    KINDS.iter().find(is_of)
}

async fn proposed(view: &View, kind: &Kind, tenant: Option<&str>) -> Vec<(String, String)> {
    let mut request = DynamicMessage::new(kind.list.input.clone());
    if let Some(tenant) = tenant.filter(|_| kind.singular != "tenant") {
        set_text(&mut request, "tenant_id", tenant);
    }
    if request.try_set_field_by_name("limit", Proto::I32(PROPOSED)).is_err() {
        return Vec::new();
    }
    let Ok(answered) = call(view, &kind.list, &request, &[]).await else { return Vec::new() };
    let option = |record: &DynamicMessage| {
        // Records refer to purposes by their slugs.
        let member = if kind.singular == "purpose" { "slug" } else { "id" };
        (text(record, member), title(record))
    };
    let records = listed(&answered.message);
    let lasts = |record: &&DynamicMessage| !OVER.contains(&text(record, "state").as_str());
    records.iter().filter(lasts).map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_with_ids_names_its_kind() {
        for (member, path) in [
            ("delegate_id", Some("principals")),
            ("owner_principal_id", Some("principals")),
            ("workspace_ids", Some("workspaces")),
            ("tenant_id", Some("tenants")),
            ("purposes", Some("purposes")),
            ("machine_id", Some("state-machines")),
            ("name", None),
            ("idp_org_id", None),
        ] {
            assert_eq!(kind_of(member).map(|kind| kind.path.as_str()), path, "{member}");
        }
    }
}
