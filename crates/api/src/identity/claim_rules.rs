//! Reads role and tenant from the places in which an issuer has them.
//!
//! Groups give roles by a map that names each group. They never give the role `owner`. Groups and
//! roles that are unknown count as absent.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    claim_path::ClaimPath,
    claims::{Claims, TokenClaims, misread},
    error::Error,
    role::Role,
};

/// The places of role, tenant and groups in an issuer's tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimRules {
    role: Option<ClaimPath>,
    tenant: Option<ClaimPath>,
    groups: Option<ClaimPath>,
    /// The roles of groups.
    roles: HashMap<String, Role>,
}

impl ClaimRules {
    /// Creates rules without roles for groups.
    ///
    /// The default for the role is `role` in `public_metadata`. The default for the tenant is
    /// `org_id`, then `id` in `o`, then `tenant_id` in `public_metadata`. Groups have no
    /// default.
    pub fn new(
        role: Option<ClaimPath>,
        tenant: Option<ClaimPath>,
        groups: Option<ClaimPath>,
    ) -> Self {
        Self { role, tenant, groups, roles: HashMap::new() }
    }

    /// Lets the members of a group have a role.
    ///
    /// # Errors
    /// The role is `owner`, or is unknown. The error is the remedy.
    pub fn map(&mut self, group: &str, role: &str) -> Result<(), &'static str> {
        let role = match Role::from(role) {
            Role::Owner => {
                return Err(
                    "a group can't give the role `owner`: the identity provider must name the owner in the role claim",
                );
            }
            Role::Other(_) => {
                return Err("use admin, legal, approver, auditor, member or viewer");
            }
            role => role,
        };
        self.roles.insert(group.to_owned(), role);
        Ok(())
    }

    /// Whether the claims are at their default places alone.
    pub(super) fn are_default(&self) -> bool {
        self.role.is_none() && self.tenant.is_none() && self.groups.is_none()
    }

    /// Reads the claims of a verified token.
    ///
    /// # Errors
    /// A claim has the wrong type, or the groups are left out because there are too many.
    pub(super) fn read(&self, all: &Map<String, Value>) -> Result<Claims, Error> {
        let tenant = self.tenant.as_ref().map(|path| path.find(all).and_then(single));
        // Claims that don't count can't make a token unreadable.
        let mut counted = all.clone();
        if tenant.is_some() {
            counted.remove("org_id");
            counted.remove("o");
        }
        if tenant.is_some() && self.role.is_some() {
            counted.remove("public_metadata");
        }
        let counted = Value::Object(counted);
        let mut claims: Claims =
            TokenClaims::deserialize(&counted).map_err(|_| Error::Token(misread(&counted)))?.into();
        if let Some(tenant) = tenant {
            claims.org = tenant.map(str::to_owned);
            claims.tenant_id = tenant.map(Into::into);
        }
        let org = claims.org.as_deref();
        let named = match &self.role {
            Some(path) => roles(path.find(all), org),
            None => vec![claims.role],
        };
        let mapped = self.mapped(all, org);
        let strongest = named.iter().chain(mapped).filter(|role| role.rank().is_some());
        claims.role = match strongest.min_by_key(|role| role.rank()) {
            Some(role) => role.clone(),
            None if self.leaves_out_groups(all) => return Err(TOO_MANY_GROUPS),
            None => named.into_iter().next().unwrap_or_else(|| Role::from("")),
        };
        Ok(claims)
    }

    /// The roles of the token's groups.
    fn mapped(&self, claims: &Map<String, Value>, org: Option<&str>) -> Vec<&Role> {
        let value = self.groups.as_ref().and_then(|path| path.find(claims));
        let groups = value.map(|value| names(value, org)).unwrap_or_default();
        groups.into_iter().filter_map(|group| self.roles.get(group)).collect()
    }

    /// Whether the provider left out the groups because there are too many of them (Entra ID,
    /// "groups overage").
    fn leaves_out_groups(&self, claims: &Map<String, Value>) -> bool {
        let Some(path) = &self.groups else { return false };
        let elsewhere = claims.get("_claim_names").and_then(|names| names.get(path.claim()));
        path.find(claims).is_none()
            && (elsewhere.is_some() || claims.get("hasgroups") == Some(&Value::Bool(true)))
    }
}

const TOO_MANY_GROUPS: Error = Error::Forbidden(
    "the token leaves out its groups because there are too many of them: let the identity provider send roles, or \
     only the groups that are assigned to this application",
);

/// The roles in a role claim. A text is the role, known or not; in a list or an object, only known
/// roles count.
fn roles(value: Option<&Value>, org: Option<&str>) -> Vec<Role> {
    match value {
        Some(Value::String(text)) => vec![Role::from(text.as_str())],
        Some(value) => {
            let roles = names(value, org).into_iter().map(Role::from);
            roles.filter(|role| role.rank().is_some()).collect()
        }
        None => Vec::new(),
    }
}

/// The names in a claim: a text, a list of texts, or an object with an object of organisations for
/// each name (Zitadel). There, a name that another organisation has granted does not count: the
/// managers of one organisation could otherwise name the roles of people of another.
fn names<'v>(value: &'v Value, org: Option<&str>) -> Vec<&'v str> {
    match value {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::Object(names) => {
            let is_own = |granted: &Value| org.is_some_and(|org| granted.get(org).is_some());
            names.iter().filter(|(_, by)| is_own(by)).map(|(name, _)| name.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

/// The only name in a claim. Returns `None` for several names, since the tenant of the person is
/// then uncertain.
fn single(value: &Value) -> Option<&str> {
    let name = match value {
        Value::String(name) => Some(name.as_str()),
        Value::Array(names) if names.len() == 1 => names[0].as_str(),
        Value::Object(names) if names.len() == 1 => names.keys().next().map(String::as_str),
        _ => None,
    };
    name.filter(|name| !name.is_empty())
}
