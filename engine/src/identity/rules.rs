//! Who may call which method: the rules that stand in the `.proto` files.

use std::collections::HashMap;

use authority_model::access::{Access, RULES};

use super::{Caller, Error, Standing};

/// Rules by gRPC path. A path that has none is refused to everyone.
pub struct Rules {
    by_path: HashMap<&'static str, &'static Access>,
    open: Vec<String>,
}

impl Rules {
    /// Those of the protos. `open` are prefixes of paths that need no credential and have no proto
    /// of ours: health checks, and reflection where it is on.
    pub fn of_protos(open: Vec<String>) -> Self {
        Self::new(RULES, open)
    }

    pub fn new(rules: &'static [(&'static str, Access)], open: Vec<String>) -> Self {
        Self { by_path: rules.iter().map(|(path, access)| (*path, access)).collect(), open }
    }

    /// `None`: nobody may.
    pub(super) fn of(&self, path: &str) -> Option<&'static Access> {
        const OPEN: Access =
            Access { public: true, owner: false, member: false, roles: &[], scope: "" };
        let known = self.by_path.get(path).copied();
        known.or_else(|| self.open.iter().any(|prefix| path.starts_with(prefix)).then_some(&OPEN))
    }
}

/// Whether `caller` may call a method with `rule`.
pub fn permit(rule: Option<&'static Access>, caller: &Caller) -> Result<(), Error> {
    let closed = Error::Forbidden("no rule opens this operation to anyone");
    match (&caller.standing, rule) {
        (_, Some(rule)) if rule.public => Ok(()),
        (Standing::Anonymous, _) => Err(Error::NoCredential),
        (_, None) => Err(closed),
        (Standing::Owner { .. }, Some(rule)) if rule.owner => Ok(()),
        (Standing::Owner { .. }, _) => Err(Error::Forbidden(
            "this operation acts on the caller's own tenant; use a tenant's token",
        )),
        (Standing::Member { .. }, Some(rule)) if rule.member => Ok(()),
        (Standing::Member { role, .. }, Some(rule)) if rule.roles.contains(&role.as_str()) => {
            Ok(())
        }
        (Standing::Member { .. }, Some(rule)) if rule.roles.is_empty() => {
            Err(Error::Forbidden("this operation is not open to a tenant's members"))
        }
        (Standing::Member { .. }, _) => {
            Err(Error::Forbidden("this operation is not open to the token's role"))
        }
        (Standing::Key { .. }, Some(rule)) if rule.scope.is_empty() => {
            Err(Error::Forbidden("this operation takes no API key"))
        }
        (Standing::Key { scopes, .. }, Some(rule)) if scopes.iter().any(|s| s == rule.scope) => {
            Ok(())
        }
        (Standing::Key { .. }, Some(rule)) => Err(Error::Scope(rule.scope)),
    }
}
