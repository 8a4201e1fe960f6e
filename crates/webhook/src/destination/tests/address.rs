//! Which addresses are refused, and which an installation can allow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use crate::destination::{AddressKind, AddressKind::*, AddressRules, Refused};

const TABLE: &[(&str, AddressKind)] = &[
    ("0.0.0.0", Reserved),
    ("0.1.2.3", Reserved),
    ("1.1.1.1", Public),
    ("9.255.255.255", Public),
    ("10.0.0.0", Private),
    ("10.255.255.255", Private),
    ("11.0.0.0", Public),
    ("100.63.255.255", Public),
    ("100.64.0.0", CarrierNat),
    ("100.127.255.255", CarrierNat),
    ("100.128.0.0", Public),
    ("100.100.100.200", Metadata),
    ("126.255.255.255", Public),
    ("127.0.0.1", Loopback),
    ("127.255.255.254", Loopback),
    ("128.0.0.0", Public),
    ("168.63.129.16", Metadata),
    ("169.253.255.255", Public),
    ("169.254.0.1", LinkLocal),
    ("169.254.169.254", Metadata),
    ("169.254.170.2", Metadata),
    ("169.254.170.23", Metadata),
    ("169.255.0.0", Public),
    ("172.15.255.255", Public),
    ("172.16.0.1", Private),
    ("172.31.255.255", Private),
    ("172.32.0.0", Public),
    ("192.0.0.1", Reserved),
    ("192.0.0.192", Metadata),
    ("192.0.1.1", Public),
    ("192.0.2.1", Reserved),
    ("192.88.99.1", SixToFour),
    ("192.168.0.1", Private),
    ("192.169.0.1", Public),
    ("198.17.255.255", Public),
    ("198.18.0.1", Reserved),
    ("198.19.255.255", Reserved),
    ("198.20.0.0", Public),
    ("198.51.100.1", Reserved),
    ("203.0.113.1", Reserved),
    ("223.255.255.255", Public),
    ("224.0.0.1", Multicast),
    ("239.255.255.255", Multicast),
    ("240.0.0.1", Reserved),
    ("255.255.255.255", Reserved),
    ("::", Reserved),
    ("::1", Loopback),
    ("::2", Mapped),
    ("::127.0.0.1", Mapped),
    ("::ffff:127.0.0.1", Mapped),
    ("::ffff:8.8.8.8", Mapped),
    ("::ffff:0:8.8.8.8", Reserved),
    ("64:ff9b::808:808", Nat64),
    ("64:ff9b::7f00:1", Nat64),
    ("64:ff9b:1::1", Nat64),
    ("64:ff9b:2::1", Reserved),
    ("100::1", Reserved),
    ("2001::1", Teredo),
    ("2001:0:7f00:1::", Teredo),
    ("2001:1::1", Reserved),
    ("2001:20::1", Reserved),
    ("2001:1ff::1", Reserved),
    ("2001:200::1", Public),
    ("2001:db8::1", Reserved),
    ("2001:4860:4860::8888", Public),
    ("2002:7f00:1::", SixToFour),
    ("2002:808:808::", SixToFour),
    ("2606:4700:4700::1111", Public),
    ("3fff::1", Reserved),
    ("3fff:1000::1", Public),
    ("4000::1", Reserved),
    ("5f00::1", Reserved),
    ("fc00::1", Private),
    ("fd12:3456::1", Private),
    ("fd00:ec2::254", Metadata),
    ("fd00:ec2::23", Metadata),
    ("fd20:ce::254", Metadata),
    ("fe80::1", LinkLocal),
    ("febf::1", LinkLocal),
    ("fe80::a9fe:a9fe", Metadata),
    ("fec0::1", Reserved),
    ("ff02::1", Multicast),
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn rules(allowed: &[&str], loopback: bool) -> AddressRules {
    let allowed: Vec<_> = allowed.iter().map(|text| (*text).to_owned()).collect();
    AddressRules::new(&allowed, loopback).unwrap()
}

#[test]
fn each_address_has_its_kind_and_only_public_ones_are_permitted() {
    for (text, kind) in TABLE {
        assert_eq!(AddressKind::of(ip(text)), *kind, "{text}");
        let permitted = AddressRules::default().check(ip(text)).is_ok();
        assert_eq!(permitted, *kind == Public, "{text}");
    }
}

#[test]
fn all_private_networks_allowed_open_private_ones_and_no_metadata() {
    let open = rules(
        &["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"],
        false,
    );
    for (text, kind) in TABLE {
        let permitted = matches!(kind, Public | Private | CarrierNat);
        assert_eq!(open.check(ip(text)).is_ok(), permitted, "{text}");
    }
    let narrow = rules(&["10.1.0.0/16"], false);
    assert!(narrow.check(ip("10.1.2.3")).is_ok() && narrow.check(ip("10.2.2.3")).is_err());
    let local = rules(&[], true);
    for (text, kind) in TABLE {
        assert_eq!(local.check(ip(text)).is_ok(), matches!(kind, Public | Loopback), "{text}");
    }
}

#[test]
fn only_private_networks_can_be_allowed() {
    for text in ["0.0.0.0/0", "127.0.0.0/8", "169.254.0.0/16", "8.8.8.0/24", "10.0.0.0/7", "::/0"] {
        let why = AddressRules::new(&[text.to_owned()], false).unwrap_err().to_string();
        assert!(why.contains("not within a private network"), "{text}: {why}");
    }
    for text in ["10.0.0.1", "ten", "", "10.0.0.0/33"] {
        let why = AddressRules::new(&[text.to_owned()], false).unwrap_err().to_string();
        assert!(why.contains("is not a network; write 10.1.0.0/16"), "{text}: {why}");
    }
}

#[test]
fn one_refused_address_refuses_the_attempt() {
    let rules = AddressRules::default();
    assert_eq!(rules.vet(&[]), Err(Refused::Unresolved));
    assert_eq!(rules.vet(&[ip("8.8.8.8"), ip("2606:4700::1")]), Ok(()));
    let refused = Refused::Address { address: ip("10.0.0.1"), kind: Private };
    assert_eq!(rules.vet(&[ip("8.8.8.8"), ip("10.0.0.1")]), Err(refused));
}

proptest! {
    /// An IPv4 address embedded in IPv6 in any form is never permitted.
    #[test]
    fn embedded_addresses_are_never_permitted(inner in any::<u32>(), rest in any::<u64>()) {
        let open = rules(&["10.0.0.0/8", "fc00::/7"], true);
        let inner = Ipv4Addr::from(inner);
        let [high, low] = [u128::from(u32::from(inner)), u128::from(rest)];
        let forms = [
            IpAddr::V6(inner.to_ipv6_mapped()),
            IpAddr::V6(Ipv6Addr::from((0x0064_ff9b_u128 << 96) | high)),
            IpAddr::V6(Ipv6Addr::from((0x2002_u128 << 112) | (high << 80) | low)),
            IpAddr::V6(Ipv6Addr::from((0x2001_0000_u128 << 96) | (high << 64) | low)),
        ];
        for form in forms {
            prop_assert!(open.check(form).is_err(), "{}", form);
        }
    }

    /// Compares our table with the standard library's stable predicates.
    #[test]
    fn what_is_public_is_nothing_that_the_standard_library_calls_special(bits in any::<u32>()) {
        let address = Ipv4Addr::from(bits);
        let special = address.is_private() || address.is_loopback() || address.is_link_local()
            || address.is_multicast() || address.is_broadcast() || address.is_documentation()
            || address.is_unspecified();
        let public = AddressKind::of(address.into()) == Public;
        prop_assert!(!(public && special), "{}", address);
    }
}
