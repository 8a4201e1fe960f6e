//! Stored policies that can never have their apparent meaning, from before the rule that refuses them on write.
//! They deny where they apply, and are logged at start.

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
                    Ok(target) => target.fault()?.to_owned(),
                    Err(problem) => problem.to_string(),
                };
                let (id, target) = (&policy.id, &row.target);
                Some(format!("`{id}`, target `{target}`: {fault}; it counts as matching"))
            })
        });
        let mut all: Vec<_> = statements.chain(targets).collect();
        all.sort();
        all
    }
}
