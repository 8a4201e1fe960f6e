//! Determines which identities belong to the same person, as far as possible.
//!
//! One human may have several subjects. Two identities are the same person if their issuer and
//! subject are equal, if their e-mail addresses are equal, or if they have a principal in common.
//! Human principals with the same recorded address belong to one person, regardless of the address
//! in a token. If an identity has no address, the same `sub` at another issuer is the same person:
//! before the end of an `are_one` setting, both issuers gave the same identity. A false match, such
//! as by an unverified address, can only prevent an approval. The names of erased people are
//! recorded as codes ([`ErasedNames`](authority_crypto::ErasedNames)). A token with an erased name
//! still matches the person.

use std::collections::BTreeSet;

use super::{people::normal_email, tenant::TenantGraph};

/// A person, as described in a token.
#[derive(Clone, Copy, Debug)]
pub struct Person<'a> {
    /// Issuer and subject: `<iss>|<sub>`.
    pub identity: &'a str,
    pub email: Option<&'a str>,
}

/// Several people, as described in tokens. Identities and addresses are not paired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persons {
    /// `<iss>|<sub>`.
    pub identities: Vec<String>,
    pub emails: Vec<String>,
}

impl From<Person<'_>> for Persons {
    fn from(one: Person<'_>) -> Self {
        let emails = one.email.map(str::to_owned).into_iter().collect();
        Self { identities: vec![one.identity.to_owned()], emails }
    }
}

impl Persons {
    pub fn add(&mut self, others: &Self) {
        self.identities.extend_from_slice(&others.identities);
        self.emails.extend_from_slice(&others.emails);
    }
}

impl TenantGraph {
    /// Whether the person is among these people.
    pub fn is_among(&self, who: Person<'_>, people: &Persons) -> bool {
        let erased = self.erased.identity(who.identity);
        let is_theirs =
            |identity: &String| *identity == who.identity || Some(identity) == erased.as_ref();
        let addresses: Vec<String> = self
            .emails(who.email)
            .iter()
            .map(|email| normal_email(email))
            .filter(|address| !address.is_empty())
            .collect();
        people.identities.iter().any(is_theirs)
            || people.emails.iter().any(|email| addresses.contains(&normal_email(email)))
            || (lacks_address(&who.into()) || lacks_address(people))
                && people.identities.iter().any(|identity| have_one_sub(identity, who.identity))
            || !self.principals_of_all(people).is_disjoint(&self.principals_of_one(who))
    }

    /// Whether `one` and `other` are the same person.
    pub fn are_one(&self, one: Person<'_>, other: Person<'_>) -> bool {
        self.is_among(one, &other.into())
    }

    /// Whether a principal of the person is suspended, revoked, pending or deleted
    /// ([`Self::excludes`]).
    pub fn is_inactive(&self, who: Person<'_>) -> bool {
        self.excludes(subject(who.identity), who.email)
    }

    pub(super) fn principals_of_one(&self, who: Person<'_>) -> BTreeSet<&str> {
        self.principals_of_all(&who.into())
    }

    pub(super) fn principals_of_all(&self, people: &Persons) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for subject in
            people.identities.iter().flat_map(|identity| self.subjects(subject(identity)))
        {
            found.extend(self.people.of_subject(&subject));
        }
        for email in people.emails.iter().flat_map(|email| self.emails(Some(email))) {
            found.extend(self.people.of_email(&email));
        }
        self.with_one_address(found.into_iter())
    }

    /// Returns the recorded forms of a `sub`: the `sub` itself, and its code after erasure.
    pub(super) fn subjects(&self, subject: &str) -> Vec<String> {
        [subject.to_owned()].into_iter().chain(self.erased.subject(subject)).collect()
    }

    /// Returns the recorded forms of an address.
    pub(super) fn emails(&self, email: Option<&str>) -> Vec<String> {
        let both = |email: &str| [Some(email.to_owned()), self.erased.email(email)];
        email.into_iter().flat_map(both).flatten().collect()
    }

    /// Adds the human principals with the same recorded address as any of these principals.
    pub(super) fn with_one_address<'t>(
        &'t self,
        found: impl Iterator<Item = &'t str>,
    ) -> BTreeSet<&'t str> {
        found.flat_map(|id| [id].into_iter().chain(self.people.of_the_address_of(id))).collect()
    }
}

/// Whether the address of an identity may be unknown. A name without an `@` is not an address.
///
/// Of several identities, one may have two addresses and another none.
fn lacks_address(people: &Persons) -> bool {
    let addresses = people.emails.iter().filter(|email| email.contains('@'));
    people.identities.windows(2).any(|two| two[0] != two[1])
        || addresses.count() < people.identities.len()
}

/// Whether two identities have the same `sub` at two issuers. The subject of some issuers begins
/// with the issuer's name and a `|`.
fn have_one_sub(one: &str, other: &str) -> bool {
    let (Some((issuer, own)), Some((another, theirs))) =
        (one.split_once('|'), other.split_once('|'))
    else {
        return false;
    };
    let forms = |subject| [subject, self::subject(subject)];
    issuer != another && forms(own).iter().any(|sub| !sub.is_empty() && forms(theirs).contains(sub))
}

/// Returns the `sub` of an identity.
pub(super) fn subject(identity: &str) -> &str {
    identity.split_once('|').map_or(identity, |(_, subject)| subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "https://id.example.org|ann";
    const OKTA: &str = "https://acme.okta.com|okta|ann";
    const ENTRA: &str = "https://login.example|entra|ann";

    fn are_one(one: (&str, Option<&str>), other: (&str, Option<&str>)) -> bool {
        let person = |(identity, email)| Person { identity, email };
        let graph = TenantGraph::default();
        let found = graph.are_one(person(one), person(other));
        assert_eq!(graph.are_one(person(other), person(one)), found, "{one:?} {other:?}");
        found
    }

    /// After the end of `are_one`, the identities of a person differ, but an earlier act may have no
    /// address.
    #[test]
    fn a_sub_at_two_issuers_is_one_person_unless_both_have_an_address() {
        let (ann, other) = (Some("ann@acme.example"), Some("other@acme.example"));
        for (one, another) in [(FIRST, OKTA), (OKTA, ENTRA), (FIRST, ENTRA)] {
            for email in [None, Some(""), Some("Ann")] {
                assert!(are_one((one, email), (another, ann)), "{one} {another} {email:?}");
            }
            assert!(are_one((one, None), (another, None)));
            assert!(!are_one((one, other), (another, ann)), "{one} {another}");
        }
        assert!(!are_one((FIRST, None), ("https://acme.okta.com|okta|bob", ann)));
        // One issuer's subjects with a `|` are different people.
        assert!(!are_one(
            ("https://a.example|auth0|1", None),
            ("https://a.example|google|1", None)
        ));
        assert!(!are_one(("https://a.example|", None), ("https://b.example|b|", None)));
    }

    /// Two requests of one person may have two addresses, and another requester none.
    #[test]
    fn a_sub_at_two_issuers_is_one_person_if_one_of_several_may_lack_an_address() {
        const BOB: &str = "https://id.example.org|bob";
        let among = |email: Option<&str>, identities: &[&str], emails: &[&str]| {
            let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
            let people = Persons { identities: texts(identities), emails: texts(emails) };
            TenantGraph::default().is_among(Person { identity: OKTA, email }, &people)
        };
        let own = Some("ann@acme.example");
        let (b1, b2) = ("bob@acme.example", "bob@globex.example");
        assert!(among(own, &[FIRST, BOB], &[b1, b2]));
        assert!(among(own, &[BOB, FIRST], &[b1, b2]));
        // A person who asks with two identities excludes only people who may be the same person.
        assert!(!among(own, &[BOB, "https://login.example|entra|rob"], &[b1]));
        // A person who asks with a token and with an API key has one identity.
        assert!(!among(own, &[FIRST, FIRST], &[b1, b2]));
        assert!(!among(own, &[FIRST], &[b1]));
    }
}
