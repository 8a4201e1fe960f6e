//! The roles of people.

use std::fmt;

/// The role in a person's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The installation's owner.
    Owner,
    Admin,
    Approver,
    Legal,
    Member,
    Viewer,
    Auditor,
    /// Any other text, or none. It grants only the permissions common to all users of the tenant.
    Other(String),
}

impl Role {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Approver => "approver",
            Self::Legal => "legal",
            Self::Member => "member",
            Self::Viewer => "viewer",
            Self::Auditor => "auditor",
            Self::Other(text) => text,
        }
    }

    /// The rank of the role. Of several roles, the one with the lowest rank counts. `None` for an
    /// unknown role, which never counts before a known one.
    ///
    /// A person has one role. The first is the role with the most permissions. Leaving a group
    /// therefore never moves a person up in this order.
    pub(super) fn rank(&self) -> Option<u8> {
        match self {
            Self::Owner => Some(0),
            Self::Admin => Some(1),
            Self::Legal => Some(2),
            Self::Approver => Some(3),
            Self::Auditor => Some(4),
            Self::Member => Some(5),
            Self::Viewer => Some(6),
            Self::Other(_) => None,
        }
    }
}

/// The text is compared exactly, like every text in a token.
impl From<&str> for Role {
    fn from(text: &str) -> Self {
        match text {
            "owner" => Self::Owner,
            "admin" => Self::Admin,
            "approver" => Self::Approver,
            "legal" => Self::Legal,
            "member" => Self::Member,
            "viewer" => Self::Viewer,
            "auditor" => Self::Auditor,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use authority_model::access::RULES;

    use super::*;

    #[test]
    fn a_role_is_written_as_it_was_read() {
        for text in ["owner", "admin", "approver", "legal", "member", "viewer", "auditor"] {
            assert!(!matches!(Role::from(text), Role::Other(_)), "{text}");
            assert_eq!(Role::from(text).as_str(), text);
        }
        for text in ["", "Owner", "owner ", "administrator"] {
            assert_eq!(Role::from(text), Role::Other(text.to_owned()));
            assert_eq!(Role::from(text).as_str(), text);
        }
    }

    #[test]
    fn every_role_that_opens_a_method_is_known() {
        let bindings = RULES.iter().flat_map(|(_, bindings)| bindings.iter());
        for role in bindings.flat_map(|binding| binding.access.roles) {
            assert!(!matches!(Role::from(*role), Role::Other(_)), "{role}");
        }
    }
}
