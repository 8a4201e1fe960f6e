//! Finds the person of a token among a tenant's principals.
//!
//! Principals are found by `external_subject` and by e-mail address. Deleted principals are
//! included: a deleted person must not be treated like a person who was never registered.

use authority_ids::PrincipalRef;
use authority_model::proto::registry;

use super::{
    indexed::{HasParent, Indexed, IndexedRow},
    node,
};
use authority_decision::levels::PrincipalClass;

/// The state of a principal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    /// Pending, suspended or revoked.
    Inactive,
    Deleted,
}

/// A principal, under a name that a token may contain.
struct Named {
    id: PrincipalRef,
    /// The `external_subject`, or the normalised e-mail address.
    name: String,
    state: State,
    human: bool,
}

impl IndexedRow for Named {
    fn id(&self) -> &str {
        &self.id
    }
}

impl HasParent for Named {
    fn on(&self) -> &str {
        &self.name
    }
}

/// Principals by their names in tokens. Most agents have no such name and are not listed.
#[derive(Default)]
pub(super) struct People {
    by_subject: Indexed<Named>,
    by_email: Indexed<Named>,
    /// Principals that are not people, by their contact address.
    by_contact: Indexed<Named>,
}

impl People {
    /// Replaces the entries of a principal.
    pub(super) fn put(&mut self, row: &registry::Principal, principal: &node::Principal) {
        self.remove(&row.id);
        let state = match (row.deleted_at.is_some(), principal.fact.active) {
            (true, _) => State::Deleted,
            (false, true) => State::Active,
            (false, false) => State::Inactive,
        };
        let human = principal.fact.class == PrincipalClass::Human;
        let named = |name: String| Named { id: row.id.as_str().into(), name, state, human }.into();
        // An empty name does not count.
        let present = |name: &String| !name.is_empty();
        if let Some(subject) = row.external_subject.clone().filter(present) {
            self.by_subject.put(named(subject));
        }
        // An agent's contact address is usually its owner's address. It does not identify the
        // agent.
        let emails = if human { &mut self.by_email } else { &mut self.by_contact };
        if let Some(email) = row.email.as_deref().map(normal_email).filter(present) {
            emails.put(named(email));
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.by_subject.remove(id);
        self.by_email.remove(id);
        self.by_contact.remove(id);
    }

    /// Returns the principals with this `sub`, in any class and state.
    pub(super) fn of_subject(&self, subject: &str) -> impl Iterator<Item = &str> {
        self.by_subject.on(subject).iter().map(|named| named.id.as_str())
    }

    /// Returns the principals with this e-mail address, in any class and state.
    pub(super) fn of_email(&self, email: &str) -> impl Iterator<Item = &str> {
        let email = normal_email(email);
        let named = self.by_email.on(&email).iter().chain(self.by_contact.on(&email));
        named.map(|named| named.id.as_str())
    }

    /// Returns the human principals with the same recorded address as this principal.
    ///
    /// Includes the principal itself. Empty if it is not a person or has no address.
    pub(super) fn of_the_address_of(&self, id: &str) -> impl Iterator<Item = &str> {
        let own = self.by_email.get(id).into_iter();
        own.flat_map(|own| self.by_email.on(own.on())).map(|named| named.id.as_str())
    }

    /// Returns the active principals of people that a token can match. A principal with two names
    /// is returned twice.
    pub(super) fn active_humans(&self) -> impl Iterator<Item = &str> {
        let named = self.by_subject.iter().chain(self.by_email.iter());
        let active = named.filter(|named| named.human && named.state == State::Active);
        active.map(|named| named.id.as_str())
    }

    /// Whether the principals with these names exclude the person who has all of the names.
    pub(super) fn exclude(&self, subjects: &[String], emails: &[String]) -> bool {
        let own = || subjects.iter().flat_map(|subject| self.by_subject.on(subject));
        let mut live = own().filter(|own| own.state != State::Deleted).peekable();
        if live.peek().is_some() {
            return live.any(|own| own.state != State::Active);
        }
        let of_emails = emails.iter().flat_map(|email| self.by_email.on(&normal_email(email)));
        own().chain(of_emails).any(|own| own.state != State::Active)
    }
}

/// Normalizes an address for comparison.
pub(super) fn normal_email(email: &str) -> String {
    email.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{authority::Authority, tenant::TenantGraph},
        *,
    };

    struct TestPrincipal<'a> {
        id: &'a str,
        class: &'a str,
        subject: Option<&'a str>,
        email: Option<&'a str>,
        state: &'a str,
        deleted: bool,
    }

    const ANN: TestPrincipal<'_> = TestPrincipal {
        id: "p-1",
        class: "human",
        subject: Some("sub-1"),
        email: Some("Ann@Acme.example"),
        state: "active",
        deleted: false,
    };

    fn graph(principals: &[TestPrincipal<'_>]) -> TenantGraph {
        let mut graph = TenantGraph::default();
        for one in principals {
            let row = registry::Principal {
                id: one.id.into(),
                tenant_id: "svc:tenant:acme".to_owned(),
                principal_class: one.class.to_owned(),
                state: Some(one.state.to_owned()),
                external_subject: one.subject.map(str::to_owned),
                email: one.email.map(str::to_owned),
                deleted_at: one.deleted.then(|| chrono::DateTime::UNIX_EPOCH.into()),
                ..Default::default()
            };
            row.put(&mut graph);
        }
        graph
    }

    #[test]
    fn only_an_active_person_is_let_in_and_a_stranger() {
        for (state, deleted, excluded) in [
            ("active", false, false),
            ("pending", false, true),
            ("suspended", false, true),
            ("revoked", false, true),
            ("", false, true),
            ("revoked", true, true),
        ] {
            let principal = || TestPrincipal { state, deleted, ..ANN };
            let graph = graph(&[
                principal(),
                TestPrincipal { id: "p-2", subject: None, email: None, ..principal() },
            ]);
            assert_eq!(graph.excludes("sub-1", None), excluded, "{state}, by subject");
            let email = Some(" ann@acme.EXAMPLE ");
            assert_eq!(graph.excludes("sub-9", email), excluded, "{state}, by e-mail");
            assert!(!graph.excludes("sub-9", Some("bob@acme.example")));
            assert!(!graph.excludes("", Some("")), "an empty name does not match");
            assert!(!graph.excludes("SUB-1", None), "subjects are compared exactly");
        }
    }

    #[test]
    fn a_live_principal_of_the_subject_answers_alone() {
        let gone = || TestPrincipal { deleted: true, state: "revoked", ..ANN };
        let again = || TestPrincipal { id: "p-2", ..ANN };
        let email = ANN.email;
        // The earlier principal of the address does not matter for a person found by subject.
        let other = || TestPrincipal { subject: Some("sub-0"), ..gone() };
        assert!(!graph(&[other(), again()]).excludes("sub-1", email));
        assert!(!graph(&[gone(), again()]).excludes("sub-1", email));
        let suspended = || TestPrincipal { id: "p-3", subject: None, state: "suspended", ..ANN };
        assert!(!graph(&[suspended(), again()]).excludes("sub-1", email));
        // Without a live principal of the subject, any inactive principal excludes.
        assert!(graph(&[other(), again()]).excludes("sub-9", email));
        assert!(
            graph(&[gone(), TestPrincipal { subject: None, ..again() }]).excludes("sub-1", email)
        );
        assert!(
            graph(&[other(), TestPrincipal { state: "suspended", ..again() }])
                .excludes("sub-1", email)
        );
    }

    #[test]
    fn an_agents_address_names_nobody() {
        let agent = || TestPrincipal { class: "agent", state: "suspended", ..ANN };
        assert!(!graph(&[agent()]).excludes("sub-9", ANN.email));
        assert!(graph(&[agent()]).excludes("sub-1", None), "the agent's subject excludes");
    }

    #[test]
    fn a_changed_principal_is_found_by_its_present_names() {
        let mut graph = graph(&[TestPrincipal { state: "suspended", ..ANN }]);
        let row = registry::Principal {
            id: ANN.id.into(),
            principal_class: "human".to_owned(),
            state: Some("suspended".to_owned()),
            email: Some("bob@acme.example".to_owned()),
            ..Default::default()
        };
        row.put(&mut graph);
        assert!(!graph.excludes("sub-1", ANN.email));
        assert!(graph.excludes("sub-1", Some("bob@acme.example")));
        <registry::Principal as Authority>::remove(&mut graph, ANN.id);
        assert!(!graph.excludes("sub-1", Some("bob@acme.example")));
    }
}
