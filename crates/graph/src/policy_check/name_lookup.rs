//! Looks up the names in policies one by one. The cost doesn't depend on the tenant's size.

use std::collections::BTreeSet;

use authority_decision::{
    Pattern,
    pattern::prefixes,
    validation::{Known as Records, Name, NameKind, nearest},
};
use authority_model::{
    schema::{
        acts_in, delegations, external_apps, models, principals, purposes, resources, teams, uses,
    },
    state::{DelegationState, PurposeState},
};
use diesel::{QueryResult, prelude::*};

use authority_store::{Db, RunQueryDsl};

/// The maximum number of known names with which an unknown name is compared.
const MOST: i64 = 2_000;
/// The maximum number of unknown names of a kind for which a similar name is searched.
const MOST_UNKNOWN: usize = 256;

/// Adds each named delegation that is a renewal, with the first delegation of its line.
pub(super) async fn look_up_renewed(
    db: &mut Db,
    tenant_id: &str,
    names: &BTreeSet<Name>,
    found: &mut Records,
) -> QueryResult<()> {
    let asked = names.iter().filter(|one| one.kind == NameKind::Delegation);
    let asked: Vec<String> = asked.map(|one| one.name.clone()).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let rows: Vec<(String, Option<String>)> = delegations::table
        .filter(delegations::tenant_id.eq(tenant_id))
        .filter(delegations::id.eq_any(asked))
        .select((delegations::id, delegations::line_id))
        .load(db)
        .await?;
    found.renewed = rows.into_iter().filter_map(|(id, line)| Some((id, line?))).collect();
    Ok(())
}

/// Adds the named renewals ([`look_up_renewed`]). Also adds the names that the tenant lacks, each
/// with a similar known name, if any.
pub(super) async fn look_up(
    db: &mut Db,
    tenant_id: &str,
    names: &BTreeSet<Name>,
    found: &mut Records,
) -> QueryResult<()> {
    look_up_renewed(db, tenant_id, names, found).await?;
    for kind in [
        NameKind::Team,
        NameKind::Principal,
        NameKind::Resource,
        NameKind::ResourceKind,
        NameKind::Purpose,
        NameKind::Delegation,
    ] {
        let asked: Vec<String> =
            names.iter().filter(|one| one.kind == kind).map(|one| one.name.clone()).collect();
        if asked.is_empty() {
            continue;
        }
        let present = known(db, tenant_id, kind, Some(&asked)).await?;
        let is_renewed =
            |one: &String| kind == NameKind::Delegation && found.renewed.contains_key(one);
        let unknown = asked.into_iter().filter(|one| !present.contains(one) && !is_renewed(one));
        let unknown: Vec<_> = unknown.collect();
        if unknown.is_empty() {
            continue;
        }
        let others = known(db, tenant_id, kind, None).await?;
        found.missing.extend(unknown.into_iter().enumerate().map(|(place, name)| {
            let others = others.iter().map(String::as_str).filter(|_| place < MOST_UNKNOWN);
            let near = nearest(&name, others).map(str::to_owned);
            (Name::new(kind, name), near)
        }));
    }
    actions(db, tenant_id, names, found).await
}

/// Returns known names of one type: the known names in `asked` or, without `asked`, the first
/// [`MOST`] known names.
async fn known(
    db: &mut Db,
    tenant_id: &str,
    kind: NameKind,
    asked: Option<&[String]>,
) -> QueryResult<Vec<String>> {
    let asked: Option<Vec<String>> = asked.map(<[String]>::to_vec);
    macro_rules! select {
        ($table:ident, $name:ident) => {{
            let mut query = $table::table
                .filter($table::tenant_id.eq(tenant_id))
                .select($table::$name)
                .distinct()
                .order($table::$name)
                .limit(MOST)
                .into_boxed();
            if let Some(asked) = asked {
                query = query.filter($table::$name.eq_any(asked));
            }
            query
        }};
    }
    match kind {
        NameKind::Team => select!(teams, id).load(db).await,
        NameKind::Principal => {
            select!(principals, id).filter(principals::deleted_at.is_null()).load(db).await
        }
        NameKind::Resource => select!(resources, id).load(db).await,
        NameKind::ResourceKind => select!(resources, kind).load(db).await,
        NameKind::Purpose => {
            select!(purposes, slug).filter(purposes::state.ne(PurposeState::Retired)).load(db).await
        }
        // Policies see the first delegation of a line in place of its successors.
        NameKind::Delegation => {
            select!(delegations, id).filter(delegations::line_id.is_null()).load(db).await
        }
        NameKind::Action | NameKind::Actions => Ok(Vec::new()),
    }
}

/// Finds the actions that no tool, purpose, delegation or other grant covers.
async fn actions(
    db: &mut Db,
    tenant_id: &str,
    names: &BTreeSet<Name>,
    found: &mut Records,
) -> QueryResult<()> {
    let tools: BTreeSet<Pattern> =
        found.tools.iter().flat_map(|(actions, _)| actions).cloned().collect();
    let is_action = |one: &&Name| matches!(one.kind, NameKind::Action | NameKind::Actions);
    let is_named = |one: &Name| tools.contains(&Pattern::Exact(one.name.clone()));
    let asked: Vec<&Name> = names.iter().filter(is_action).filter(|one| !is_named(one)).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let granted = granted(db, tenant_id).await?;
    let mut exact: BTreeSet<String> =
        tools.iter().chain(&granted).filter_map(exact_action).collect();
    let above: Vec<String> =
        exact.iter().flat_map(|one| prefixes(one)).map(str::to_owned).collect();
    exact.extend(above);
    for name in asked {
        if !tools.iter().chain(&granted).any(|pattern| name.is_covered_by(pattern)) {
            let covered: BTreeSet<String> =
                tools.iter().chain(&granted).filter_map(|own| below(own, &name.name)).collect();
            let known = exact.iter().chain(&covered).map(String::as_str);
            let near = nearest(&name.name, known).map(str::to_owned);
            found.missing.insert(name.clone(), near);
        }
    }
    found.actions = exact;
    Ok(())
}

/// Replaces misspelt first segments by a granted prefix. For `paymnt.execute`, it returns
/// `payment.execute` if `payment.*` is granted.
fn below(pattern: &Pattern, name: &str) -> Option<String> {
    let Pattern::Below(prefix) = pattern else { return None };
    let mut segments = name.split('.');
    segments.nth(prefix.matches('.').count())?;
    let rest: Vec<&str> = segments.collect();
    Some(if rest.is_empty() { prefix.clone() } else { format!("{prefix}.{}", rest.join(".")) })
}

fn exact_action(pattern: &Pattern) -> Option<String> {
    match pattern {
        Pattern::Exact(name) => Some(name.clone()),
        _ => None,
    }
}

/// Returns the distinct patterns that are granted or admitted.
async fn granted(db: &mut Db, tenant_id: &str) -> QueryResult<BTreeSet<Pattern>> {
    let mut lists: Vec<Vec<String>> = delegations::table
        .filter(delegations::tenant_id.eq(tenant_id))
        .filter(delegations::state.ne(DelegationState::Revoked))
        .select(delegations::actions)
        .distinct()
        .load(db)
        .await?;
    let admitted: Vec<Vec<String>> = purposes::table
        .filter(purposes::tenant_id.eq(tenant_id))
        .filter(purposes::state.ne(PurposeState::Retired))
        .select(purposes::allowed_actions)
        .distinct()
        .load(db)
        .await?;
    lists.extend(admitted);
    let by_models: Vec<Vec<String>> = models::table
        .filter(models::tenant_id.eq(tenant_id))
        .select(models::actions)
        .distinct()
        .load(db)
        .await?;
    lists.extend(by_models);
    let by_apps: Vec<Vec<String>> = external_apps::table
        .filter(external_apps::tenant_id.eq(tenant_id))
        .select(external_apps::actions)
        .distinct()
        .load(db)
        .await?;
    lists.extend(by_apps);
    let used: Vec<String> = uses::table
        .filter(uses::tenant_id.eq(tenant_id))
        .filter(uses::used_kind.eq("action"))
        .select(uses::used_id)
        .distinct()
        .load(db)
        .await?;
    lists.push(used);
    let places: Vec<Option<String>> = acts_in::table
        .filter(acts_in::tenant_id.eq(tenant_id))
        .select(acts_in::allowed_actions_json)
        .distinct()
        .load(db)
        .await?;
    let places = places.into_iter().flatten();
    lists.extend(places.filter_map(|json| serde_json::from_str::<Vec<String>>(&json).ok()));
    Ok(lists.iter().flatten().filter_map(|text| text.parse().ok()).collect())
}
