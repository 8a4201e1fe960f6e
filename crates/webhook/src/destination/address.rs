//! Classifies IP addresses by their use.
//!
//! The classes follow the IANA registries of special-purpose addresses (IPv4, IPv6), plus the
//! addresses at which clouds serve a machine's credentials. In IPv6 only global unicast,
//! `2000::/3`, can be public: unassigned addresses are refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The use of an address. Only [`Public`](Self::Public) addresses are globally reachable and the
/// same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    Public,
    /// RFC 1918, and unique local IPv6 (RFC 4193).
    Private,
    Loopback,
    LinkLocal,
    /// Between a carrier's customers and its NAT (RFC 6598).
    CarrierNat,
    /// The address at which a cloud serves a machine's credentials and configuration.
    Metadata,
    Multicast,
    /// Documentation, benchmarks, protocol assignments, future use, and unassigned addresses.
    Reserved,
    /// IPv4 in IPv6: `::ffff:0:0/96`, and the deprecated `::/96`.
    Mapped,
    /// IPv4 behind a translator: `64:ff9b::/96` and `64:ff9b:1::/48` (RFC 6052, RFC 8215).
    Nat64,
    /// IPv4 behind a relay: `2002::/16` (RFC 3056) and its relays, 192.88.99.0/24.
    SixToFour,
    /// IPv4 behind a relay: `2001::/32` (RFC 4380).
    Teredo,
}

/// Metadata addresses, in this order: AWS, Google, Azure and others; AWS tasks; AWS pods; Alibaba;
/// Azure's host; Oracle.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// Metadata addresses, in this order: AWS; AWS pods; Google; `OpenStack`.
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

impl AddressKind {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Metadata;
    }
    match address.octets() {
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [127, ..] => AddressKind::Loopback,
        [169, 254, ..] => AddressKind::LinkLocal,
        [100, 64..=127, ..] => AddressKind::CarrierNat,
        [192, 88, 99, _] => AddressKind::SixToFour,
        [224..=239, ..] => AddressKind::Multicast,
        // In this order: "this network" (0) and future use including broadcast (240 to 255);
        // protocol assignments (192.0.0) and documentation (192.0.2); documentation, twice;
        // benchmarks.
        [0 | 240..=255, ..]
        | [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [198, 18 | 19, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    if METADATA_V6.contains(&address) {
        return AddressKind::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // Unspecified; protocol assignments, 2001::/23; documentation, 2001:db8::/32 and 3fff::/20.
        [0, 0, 0, 0, 0, 0, 0, 0] | [0x2001, 1..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            AddressKind::Reserved
        }
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] => AddressKind::Mapped,
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => AddressKind::Nat64,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        [0x2002, ..] => AddressKind::SixToFour,
        [0x2001, 0, ..] => AddressKind::Teredo,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}
