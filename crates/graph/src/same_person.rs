//! The people who made a request, and the identities that belong to one person in any tenant.

use authority_ids::ApiKeyId;
use authority_model::proto::approval::Asker;

use super::{
    graph::{Error, Graph, TenantHandle},
    persons::{Person, Persons},
    tenant::TenantGraph,
};

impl Graph {
    /// Returns the people who made a request, with their addresses, and those behind its API keys.
    ///
    /// Returns `None` if an API key does not exist.
    pub fn persons(&self, askers: &[Asker], emails: &[String]) -> Option<Persons> {
        let mut persons = Persons { identities: Vec::new(), emails: emails.to_vec() };
        for asker in askers {
            if asker.kind == "person" {
                persons.identities.push(asker.id.clone());
            } else {
                let id = ApiKeyId::parse(&asker.id).ok()?;
                persons.add(&self.api_key(id.public_id())?.people);
            }
        }
        Some(persons)
    }

    /// Whether `one` and `other` are the same person in any tenant.
    ///
    /// # Errors
    /// The graph is too old to decide on.
    pub fn are_one(&self, one: Person<'_>, other: Person<'_>) -> Result<bool, Error> {
        self.fresh()?;
        let tenants: Vec<TenantHandle> = self.tenants.read().values().cloned().collect();
        // The empty graph also covers an installation without tenants.
        Ok(TenantGraph::default().are_one(one, other)
            || tenants.iter().any(|tenant| tenant.read().are_one(one, other)))
    }
}
