//! Stored policies and places that can never match as intended, from before writes refused them. Logged at start.

use authority_decision::{jurisdiction, records::Constraints, validation::misplaced};

use super::tenant::TenantGraph;

impl TenantGraph {
    /// Each faulty statement and applies-to target, with its policy, for people.
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

    /// Each place in a bound that isn't in ISO 3166, with its record, for people.
    pub fn faulty_places(&self) -> Vec<String> {
        let told = |id: &str, codes: &[String]| -> Vec<String> {
            let faults = codes.iter().filter_map(|code| jurisdiction::fault(code));
            faults.map(|fault| format!("`{id}`: {fault}; nothing is within it")).collect()
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
