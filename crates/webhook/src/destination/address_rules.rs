//! The addresses that an attempt may connect to.

use std::net::IpAddr;

use ipnet::IpNet;

use super::address::AddressKind;

/// Networks that an installation can allow: private, unique local, and carrier NAT.
const CAN_BE_ALLOWED: [&str; 5] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/// The addresses that an installation permits in addition to public addresses. By default none.
#[derive(Clone, Debug, Default)]
pub struct AddressRules {
    allowed: Vec<IpNet>,
    loopback: bool,
}

/// The reason an attempt is not made. An endpoint's owner sees the same error for both variants.
/// Different errors would let the owner map an internal network by trying names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the name resolves to no address")]
    Unresolved,
    #[error("{address} is refused: {kind:?}")]
    Address { address: IpAddr, kind: AddressKind },
}

/// The reason a network cannot be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("`{0}` is not a network; write 10.1.0.0/16 or fd00:1::/32")]
    Unreadable(String),
    #[error(
        "`{0}` is not within a private network; only parts of 10.0.0.0/8, 172.16.0.0/12, \
         192.168.0.0/16, 100.64.0.0/10 and fc00::/7 can be allowed"
    )]
    NotPrivate(String),
}

impl AddressRules {
    /// Creates rules that also permit the private networks of `allow_cidrs` and, for development,
    /// loopback.
    pub fn new(allow_cidrs: &[String], loopback: bool) -> Result<Self, RuleError> {
        let allowed = allow_cidrs.iter().map(|text| network(text)).collect::<Result<_, _>>()?;
        Ok(Self { allowed, loopback })
    }

    /// The same rules without private networks.
    #[must_use]
    pub fn public_only(&self) -> Self {
        Self { allowed: Vec::new(), loopback: self.loopback }
    }

    /// Checks one address.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let kind = AddressKind::of(address);
        let permitted = match kind {
            AddressKind::Public => true,
            AddressKind::Loopback => self.loopback,
            AddressKind::Private | AddressKind::CarrierNat => {
                self.allowed.iter().any(|network| network.contains(&address))
            }
            AddressKind::LinkLocal
            | AddressKind::Metadata
            | AddressKind::Multicast
            | AddressKind::Reserved
            | AddressKind::Mapped
            | AddressKind::Nat64
            | AddressKind::SixToFour
            | AddressKind::Teredo => false,
        };
        if permitted { Ok(()) } else { Err(Refused::Address { address, kind }) }
    }

    /// Checks all addresses that a name resolved to.
    ///
    /// One refused address refuses the attempt: a name that also resolves to an internal address is
    /// not a public receiver, and a second connection must not reach that address. An accepted
    /// attempt connects to a checked address, without resolving the name again.
    pub fn vet(&self, resolved: &[IpAddr]) -> Result<(), Refused> {
        if resolved.is_empty() {
            return Err(Refused::Unresolved);
        }
        resolved.iter().try_for_each(|address| self.check(*address))
    }
}

fn network(text: &str) -> Result<IpNet, RuleError> {
    let network: IpNet = text.trim().parse().map_err(|_| RuleError::Unreadable(text.to_owned()))?;
    let outer = CAN_BE_ALLOWED.iter().filter_map(|outer| outer.parse::<IpNet>().ok());
    if outer.into_iter().any(|outer| outer.contains(&network)) {
        Ok(network)
    } else {
        Err(RuleError::NotPrivate(text.to_owned()))
    }
}
