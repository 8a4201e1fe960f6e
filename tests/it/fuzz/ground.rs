//! The records that exist before the bad input: two tenants, each with records of every kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Map, Value, json};

use super::{
    is_app,
    routes::{Route, message},
    values::{Source, sample},
};
use crate::support::wire::{Caller, encoded};

/// Fields that change without a write, and fields that only repeat parts of other records.
const VOLATILE: [&str; 8] = [
    "age_seconds",
    "counted_until",
    "held_by",
    "held_until",
    "last_failure",
    "last_used_at",
    "next_page_token",
    "usage",
];

pub(super) fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Two tenants with records of every kind that can be created from the descriptor alone.
pub(super) struct Ground {
    pub(super) tenants: Vec<String>,
    /// For each tenant, the kind and id of each record, in the order of creation.
    made: Vec<Vec<(String, String)>>,
    /// Kinds with samples that must also include optional references.
    whole: BTreeSet<String>,
    /// The path of each kind's collection.
    collections: BTreeMap<String, String>,
    /// Kinds of records that belong to no tenant.
    shared: BTreeSet<String>,
    numbers: AtomicUsize,
}

/// One tenant's records, to which fields can refer.
pub(super) struct Side<'a>(pub(super) &'a Ground, pub(super) usize);

/// Fields with names that do not end with the kind to which they refer.
pub(super) const ALIASES: [(&str, &str); 16] = [
    ("delegator", "principal"),
    ("delegate", "principal"),
    ("agent", "principal"),
    ("grantee", "principal"),
    ("actor", "principal"),
    ("actor_entity", "principal"),
    ("principal_entity", "principal"),
    ("purpose_grant", "delegation"),
    ("anchor", "reality_anchor"),
    ("check", "coupling_check"),
    ("entity", "principal"),
    ("subject", "principal"),
    ("used", "tool"),
    ("visible_in_workspaces", "workspace"),
    ("root", "delegation"),
    ("parent", ""),
];

impl Source for Side<'_> {
    fn reference(&self, member: &str, _owner: &str) -> Option<String> {
        let Self(ground, side) = self;
        if member == "tenant_id" {
            return ground.tenants.get(*side).cloned();
        }
        let kind = ground.kind_of(member)?;
        let mut known = ground.made[*side].iter().filter(|(made, _)| *made == kind);
        // The delegator must not be the delegate.
        let found = if member == "delegator_id" { known.next() } else { known.next_back() };
        found.map(|(_, id)| id.clone())
    }

    fn next(&self) -> usize {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl Ground {
    pub(super) async fn lay(owner: &Caller, routes: &[Route]) -> (Self, Vec<String>) {
        let creates: Vec<_> = routes.iter().filter(|route| is_create(route)).collect();
        let mut ground = Self {
            tenants: Vec::new(),
            made: vec![Vec::new(), Vec::new()],
            whole: BTreeSet::new(),
            collections: BTreeMap::new(),
            shared: BTreeSet::new(),
            numbers: AtomicUsize::new(1),
        };
        for route in &creates {
            ground.collections.insert(route.body.clone(), route.path.clone());
            let record =
                route.input.get_field_by_name(&route.body).and_then(|field| message(&field));
            if record.is_some_and(|record| record.get_field_by_name("tenant_id").is_none()) {
                ground.shared.insert(route.body.clone());
            }
        }
        for name in ["Fuzz one", "Fuzz two"] {
            let body = json!({"name": name});
            let (status, answer) = owner.rest("POST", "/api/v1/tenants", Some(bytes(&body))).await;
            assert_eq!(status, 201, "{answer}");
            ground.tenants.push(answer["tenant"]["id"].as_str().unwrap().to_owned());
        }
        let mut problems = Vec::new();
        // Records that refer to others are created after them. Each round creates one more level of
        // references.
        for _ in 0..4 {
            problems.clear();
            for route in &creates {
                for side in 0..2 {
                    // Two records of each kind are needed, one for each end of a relationship.
                    let found = ground.plant(owner, route, side, 2).await;
                    problems.extend(found.map(|problem| format!("POST {}: {problem}", route.path)));
                }
            }
        }
        (ground, problems)
    }

    /// Creates records of the route's kind up to `count`; returns the last error.
    async fn plant(
        &mut self,
        owner: &Caller,
        route: &Route,
        side: usize,
        count: usize,
    ) -> Option<String> {
        let kind = &route.body;
        let field = route.input.get_field_by_name(kind)?;
        let of = message(&field)?;
        let mut last = None;
        for _ in self.made[side].iter().filter(|(made, _)| made == kind).count()..count {
            for whole in [false, true] {
                let body = Value::Object(sample(&of, whole, &Side(self, side)));
                let (status, answer) = owner.rest("POST", &route.path, Some(bytes(&body))).await;
                if status == 201 {
                    let record = &answer[kind];
                    let id = record["id"].as_str().unwrap_or("-").to_owned();
                    if whole {
                        self.whole.insert(kind.clone());
                    }
                    self.made[side].push((kind.clone(), id));
                    last = None;
                    break;
                }
                last = Some(format!("{body}: {status} {answer}"));
            }
        }
        // If a pair of references must be unique, a second record with the same pair is correctly
        // refused.
        let made = self.made[side].iter().any(|(made, _)| made == kind);
        last.filter(|_| !made)
    }

    /// Returns whether the field refers to a kind of records that belong to the installation.
    pub(super) fn is_shared(&self, member: &str) -> bool {
        self.kind_of(member).is_some_and(|kind| self.shared.contains(&kind))
    }

    /// Returns the kind to which a field refers.
    fn kind_of(&self, member: &str) -> Option<String> {
        let stem = member.strip_suffix("_id").or_else(|| member.strip_suffix("_ids"));
        let stem = stem.unwrap_or(member);
        let alias = ALIASES.iter().find(|(name, _)| *name == stem).map(|(_, kind)| *kind);
        if let Some(kind) = alias {
            return Some(kind.to_owned()).filter(|kind| !kind.is_empty());
        }
        if stem == member {
            return None;
        }
        let ends = |kind: &&String| stem == *kind || stem.ends_with(&format!("_{kind}"));
        self.collections.keys().filter(ends).max_by_key(|kind| kind.len()).cloned()
    }

    /// Returns the ids of one tenant's records.
    pub(super) fn ids_of(&self, side: usize) -> Vec<String> {
        self.made[side].iter().map(|(_, id)| id.clone()).filter(|id| id != "-").collect()
    }

    /// Returns the ids of one tenant's records of a kind.
    pub(super) fn of_kind(&self, side: usize, kind: &str) -> Vec<String> {
        let of = self.made[side].iter().filter(|(made, _)| made == kind);
        of.map(|(_, id)| id.clone()).collect()
    }

    /// Returns an id for the variable of the route's path, from the first tenant.
    pub(super) fn item(&self, route: &Route, variable: &str) -> String {
        let collection = route.collection();
        // The gateway's operations act on the same records.
        let admins = format!("/api{collection}");
        let kind = self
            .collections
            .iter()
            .find(|(_, path)| [collection, &admins].contains(&path.as_str()));
        let kind = kind.map(|(kind, _)| kind.clone()).or_else(|| self.kind_of(variable));
        let made = self.made[0].iter().find(|(made, _)| Some(made) == kind.as_ref());
        made.map_or_else(|| "nothing".to_owned(), |(_, id)| id.clone())
    }

    pub(super) fn base(&self, route: &Route) -> Map<String, Value> {
        if route.is_partial() {
            // A renewal has no default for the new end.
            let renews = route.path.ends_with("/renew");
            return renews.then(|| ("expires_at".to_owned(), json!(null))).into_iter().collect();
        }
        let side = Side(self, 0);
        match route.body.as_str() {
            "*" => {
                let taken = route.variables();
                let mut all = sample(&route.input, false, &side);
                all.retain(|name, _| !taken.contains(&name.as_str()));
                all
            }
            name => {
                let field = route.input.get_field_by_name(name);
                let of = field.and_then(|field| message(&field));
                of.map(|of| sample(&of, self.whole.contains(name), &side)).unwrap_or_default()
            }
        }
    }
}

/// Returns whether the route creates records of the kind after which its body is named.
pub(super) fn is_create(route: &Route) -> bool {
    let admin = route.path.starts_with("/api/v1/") && !is_app(route);
    let plain = route.variables().is_empty() && !route.path.contains(':');
    let kind = route.body != "*" && !route.body.is_empty() && route.body != "tenant";
    route.verb == "POST" && admin && plain && kind
}

/// Returns the path with values for its variables.
pub(super) fn fill(route: &Route, value: impl Fn(&str) -> String) -> String {
    let mut path = String::new();
    let mut rest = route.path.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, after) = after.split_once('}').unwrap_or((after, ""));
        let name = variable.split('=').next().unwrap_or(variable);
        path += before;
        path += &encoded(&value(name));
        rest = after;
    }
    path + rest
}

/// Returns every list, as the owner reads it.
pub(super) async fn snapshot(owner: &Caller, routes: &[Route]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for route in routes.iter().filter(|route| route.verb == "GET") {
        if route.variables().is_empty() && route.input.get_field_by_name("limit").is_some() {
            let path = format!("{}?limit=500", route.path);
            let (status, mut body) = owner.rest("GET", &path, None).await;
            if status == 200 {
                still(&mut body);
                found.insert(route.path.clone(), body);
            }
        }
    }
    found
}

/// Removes the volatile fields.
pub(super) fn still(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            members.values_mut().for_each(still);
        }
        Value::Array(items) => items.iter_mut().for_each(still),
        _ => {}
    }
}
