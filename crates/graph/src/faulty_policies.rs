//! Finds stored policies and places that can never match as intended. They were stored before
//! writes refused them, and are logged at start.

use authority_decision::{jurisdiction, records::Constraints, validation::misplaced};

use super::tenant::TenantGraph;

impl TenantGraph {
    /// Describes each faulty statement and applies-to target, with its policy.
    pub fn faulty_policies(&self) -> Vec<String> {
        let statements = self.index.iter().flat_map(|policy| {
            let id = policy.reference.id.as_str();
            policy.faulty().map(move |(ordinal, fault)| {
                format!(
                    "`{id}`, statement {ordinal}: {fault}; it denies as rule_error where it applies"
                )
            })
        });
        let targets = self.policies.iter().flat_map(|policy| {
            self.applies_to.on(&policy.id).iter().filter_map(|row| {
                let fault = match row.target.parse::<authority_decision::Target>() {
                    Ok(target) => target.fault()?,
                    Err(problem) => problem.to_string(),
                };
                let (id, target) = (&policy.id, &row.target);
                Some(format!("`{id}`, target `{target}`: {fault}; it counts as matching"))
            })
        });
        let words = self.index.iter().flat_map(|policy| {
            let id = policy.reference.id.as_str();
            misplaced(policy).into_iter().map(move |(ordinal, problem)| {
                format!("`{id}`, statement {ordinal}: {problem}; no value matches it")
            })
        });
        let mut all: Vec<_> = statements.chain(targets).chain(words).collect();
        all.sort();
        all
    }

    /// Describes each place in a bound that is not in ISO 3166, with its record.
    pub fn faulty_places(&self) -> Vec<String> {
        let told = |id: &str, codes: &[String]| -> Vec<String> {
            let faults = codes.iter().filter_map(|code| jurisdiction::fault(code));
            faults.map(|fault| format!("`{id}`: {fault}; no place matches it")).collect()
        };
        let delegations = self.delegations.iter();
        let delegations = delegations.flat_map(|one| told(&one.id, &one.bounds.jurisdictions));
        let purposes = self.purposes.iter().flat_map(|one| told(&one.id, &one.jurisdictions));
        let uses = self.uses.iter().flat_map(|one| match &one.row.constraints {
            Constraints::Bounds(bounds) => told(&one.row.id, &bounds.jurisdictions),
            Constraints::Malformed(_) => Vec::new(),
        });
        let mut all: Vec<_> = delegations.chain(purposes).chain(uses).collect();
        all.sort();
        all
    }
}
