//! The rules in the `.proto` files: who may call which method, one rule for each binding.

use std::collections::{BTreeSet, HashMap};

use authority_model::{
    access::{Access, Binding, RULES, reads},
    surfaces::Surfaces,
};

use super::{
    caller::{Caller, CallerKind},
    error::{Error, RefusedRole},
    who_may::people,
};

/// The transport of a call.
#[derive(Clone, Copy, Debug)]
pub enum Via<'a> {
    /// Over REST, by this binding: HTTP method and path template.
    Rest { verb: &'a str, path: &'a str },
    /// Over gRPC, at an address that serves these surfaces.
    Grpc(Surfaces),
}

impl Via<'_> {
    /// Whether the binding's rule applies to a call on this transport.
    fn meets(self, binding: &Binding) -> bool {
        match self {
            Self::Rest { verb, path } => binding.verb == verb && binding.path == path,
            Self::Grpc(surfaces) => surfaces.serve(binding.path),
        }
    }
}

/// Rules by gRPC path. A path without rules is refused to everyone.
pub struct Rules {
    by_path: HashMap<&'static str, &'static [Binding]>,
    open: Vec<String>,
}

impl Rules {
    /// The rules of the protos. `open` are prefixes of paths that need no credential and are not in
    /// our protos: health checks, and reflection if it is on.
    pub fn of_protos(open: Vec<String>) -> Self {
        Self::new(RULES, open)
    }

    pub fn new(rules: &'static [(&'static str, &'static [Binding])], open: Vec<String>) -> Self {
        Self { by_path: rules.iter().copied().collect(), open }
    }

    /// The rules for `rpc_path` on this transport. A caller needs to satisfy only one rule. Without
    /// rules, every call is refused.
    pub(super) fn of<'a>(
        &self,
        rpc_path: &str,
        via: Via<'a>,
    ) -> impl Iterator<Item = &'static Access> + Clone + use<'a> {
        const OPEN: &[Binding] = &[Binding {
            verb: "",
            path: "/",
            access: Access { public: true, owner: false, member: false, roles: &[], scope: "" },
        }];
        let known = self.by_path.get(rpc_path).copied();
        let is_open = || self.open.iter().any(|prefix| rpc_path.starts_with(prefix));
        let bindings = known.unwrap_or_else(|| if is_open() { OPEN } else { &[] });
        let reached = bindings.iter().filter(move |binding| via.meets(binding));
        reached.map(|binding| &binding.access)
    }

    /// The binding of `rpc_path` at which API keys may call it, if any.
    pub(super) fn for_keys(&self, rpc_path: &str) -> Option<&'static Binding> {
        let bindings = self.by_path.get(rpc_path).copied().unwrap_or_default();
        bindings.iter().find(|binding| !binding.access.scope.is_empty())
    }
}

/// Checks that any of `rules` permits `caller`. `for_keys` returns the binding at which API keys
/// may call the method.
pub fn permit(
    rules: &(impl Iterator<Item = &'static Access> + Clone),
    caller: &Caller,
    for_keys: impl FnOnce() -> Option<&'static Binding>,
) -> Result<(), Error> {
    if rules.clone().any(|rule| opens(rule, &caller.kind)) {
        return Ok(());
    }
    let scope = rules.clone().map(|rule| rule.scope).find(|scope| !scope.is_empty());
    match &caller.kind {
        CallerKind::Anonymous => Err(Error::NoCredential),
        _ if rules.clone().next().is_none() => {
            Err(Error::Forbidden("no rule permits this operation"))
        }
        CallerKind::Key { .. } => Err(match scope {
            Some(scope) => Error::Scope(scope),
            None => Error::TakesNoKey(without_keys(rules, for_keys())),
        }),
        CallerKind::Owner { .. } => Err(refused_role(rules, None)),
        CallerKind::Member { role, .. } => Err(refused_role(rules, Some(role.as_str()))),
    }
}

/// Returns the error for a role that no rule admits. The installation's owner has no role.
fn refused_role(
    rules: &(impl Iterator<Item = &'static Access> + Clone),
    role: Option<&str>,
) -> Error {
    let takes_roles = rules.clone().any(|rule| !rule.roles.is_empty());
    let reason = if rules.clone().all(is_for_owner) {
        "is the installation owner's alone; a tenant's own operations are under /api/v1/app and /v1"
            .to_owned()
    } else if role.is_none() {
        "acts on the caller's own tenant; use a tenant's token".to_owned()
    } else if let Some(people) = people(rules.clone()).filter(|_| takes_roles) {
        format!("is not open to the token's role; it is open to {people}")
    } else {
        "is not open to a tenant's members".to_owned()
    };
    let owner = rules.clone().any(|rule| rule.owner).then_some("owner");
    let member = rules.clone().any(|rule| rule.member).then_some("member");
    let permitted: BTreeSet<_> =
        rules.clone().flat_map(|rule| rule.roles).copied().chain(owner).chain(member).collect();
    Error::Role(RefusedRole {
        role: role.unwrap_or("owner").to_owned(),
        permitted: permitted.into_iter().collect(),
        reason,
    })
}

/// Whether the caller may call `rpc`, `/package.Service/Method`, over some transport.
pub fn may_call(rpc: &str, caller: &Caller) -> bool {
    let bindings = RULES.iter().find(|(known, _)| *known == rpc).map(|(_, bindings)| *bindings);
    bindings.unwrap_or_default().iter().any(|binding| opens(&binding.access, &caller.kind))
}

/// Whether the operation that reads records of this table by id is open to people of a tenant, but
/// not to this person. Other operations then hide the fields of these records from the person.
pub fn is_closed_to(caller: &Caller, table: &str) -> bool {
    let rules = reads(table).iter().map(|binding| &binding.access);
    let is_for_people = |rule: &Access| rule.member || !rule.roles.is_empty();
    matches!(caller.kind, CallerKind::Member { .. })
        && rules.clone().any(is_for_people)
        && !rules.clone().any(|rule| opens(rule, &caller.kind))
}

/// Lists the roles in the rules: "`admin` or `auditor`".
fn roles(rules: &(impl Iterator<Item = &'static Access> + Clone)) -> String {
    let roles: BTreeSet<_> = rules.clone().flat_map(|rule| rule.roles).collect();
    let roles: Vec<_> = roles.into_iter().map(|role| format!("`{role}`")).collect();
    roles.join(" or ")
}

/// Describes the credentials that `rules` accept if they accept no API key, and where a key may
/// call the method.
fn without_keys(
    rules: &(impl Iterator<Item = &'static Access> + Clone),
    for_keys: Option<&'static Binding>,
) -> String {
    let mut taken = Vec::new();
    let roles = roles(rules);
    if rules.clone().any(|rule| rule.member) {
        taken.push("a JWT of the tenant".to_owned());
    } else if !roles.is_empty() {
        taken.push(format!("a JWT of the tenant with the role {roles}"));
    }
    if rules.clone().any(|rule| rule.owner) {
        taken.push("the JWT of the installation's owner".to_owned());
    }
    if taken.is_empty() {
        return "takes no API key".to_owned();
    }
    let here = format!("takes no API key here, but {}", taken.join(" or "));
    match for_keys {
        Some(Binding { verb, path, access }) if !path.is_empty() => {
            format!("{here}; API keys with the scope `{}` call {verb} {path}", access.scope)
        }
        _ => here,
    }
}

fn opens(rule: &Access, kind: &CallerKind) -> bool {
    rule.public
        || match kind {
            CallerKind::Anonymous => false,
            CallerKind::Owner { .. } => rule.owner,
            CallerKind::Member { role, .. } => rule.member || rule.roles.contains(&role.as_str()),
            CallerKind::Key { scopes, .. } => {
                !rule.scope.is_empty() && scopes.iter().any(|scope| scope == rule.scope)
            }
        }
}

fn is_for_owner(rule: &Access) -> bool {
    rule.owner && !rule.member && rule.roles.is_empty() && rule.scope.is_empty()
}
