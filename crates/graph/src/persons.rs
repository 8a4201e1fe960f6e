//! Determines which identities belong to the same person, as far as possible.
//!
//! One human may have several subjects. Two identities are the same person if their issuer and
//! subject are equal, if their e-mail addresses are equal, or if they have a principal in common.
//! Human principals with the same recorded address belong to one person, regardless of the address
//! in a token. An address may be unverified: a false match can only prevent an approval. The names
//! of erased people are recorded as codes ([`ErasedNames`](authority_crypto::ErasedNames)). A
//! token with an erased name still matches the person.

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

/// Returns the `sub` of an identity.
pub(super) fn subject(identity: &str) -> &str {
    identity.split_once('|').map_or(identity, |(_, subject)| subject)
}
