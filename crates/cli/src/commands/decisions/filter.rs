//! The filter of decisions.

use authority_client::Surface;
use authority_ids::TenantRef;
use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use serde::Serialize;

use crate::{
    actor::resolve,
    arguments::{exact_action, tenant},
    outcome::Failure,
    server::Server,
    tenant::meant,
    times::moment,
};

/// The filter of decisions.
#[derive(Debug, Args, Serialize)]
pub(crate) struct Which {
    /// Only decisions of this tenant, by id or slug [default: the subject's, or the only tenant]
    #[arg(long = "tenant", visible_alias = "tenant-id", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// Only decisions for this principal: an agent's name, or an id
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only decisions on exactly this action
    #[arg(long, value_parser = exact_action)]
    action: Option<String>,
    /// Only decisions with this result; `allow` also finds decisions with constraints, and `held`
    /// is `require_approval`
    #[arg(long, value_parser = decision())]
    decision: Option<String>,
    /// Only decisions with this decisive reason code
    #[arg(long, value_name = "CODE")]
    reason_code: Option<String>,
    /// Only decisions at or after this time: RFC 3339, or a span before now, such as 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    since: Option<String>,
    /// Only decisions before this time, in the same forms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    until: Option<String>,
}

/// Decisions and their names in lists.
const DECISIONS: [(&str, &str); 4] = [
    ("allow", "allowed"),
    ("allow_with_constraints", "constrained"),
    ("require_approval", "held"),
    ("deny", "denied"),
];

/// Parses a decision, including its name in lists.
fn decision() -> impl TypedValueParser<Value = String> {
    let words = DECISIONS.map(|(word, shown)| PossibleValue::new(word).alias(shown));
    PossibleValuesParser::new(words).map(|typed| {
        let known = DECISIONS.iter().find(|(_, shown)| *shown == typed);
        known.map_or(typed, |(word, _)| (*word).to_owned())
    })
}

impl Which {
    /// Replaces the agent's name by its id, and adds the owner's tenant: with a filter the service
    /// requires a tenant from the owner.
    pub(super) async fn complete(&mut self, server: &Server) -> Result<(), Failure> {
        resolve(server, &mut self.subject).await?;
        let filters = [&self.subject, &self.action, &self.decision, &self.reason_code];
        let is_filtered = filters.iter().any(|filter| filter.is_some());
        if self.tenant_id.is_none() && self.since.is_none() && is_filtered {
            self.tenant_id = meant(server, self.subject.as_deref()).await;
            if self.tenant_id.is_none() && server.opens(Surface::Owner) {
                return Err(Failure::usage(
                    "there are several tenants: give --tenant, or limit the time with --since",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        which: Which,
    }

    #[test]
    fn a_decision_has_the_word_that_lists_show_too() {
        for (typed, decision) in
            [("held", "require_approval"), ("deny", "deny"), ("allowed", "allow")]
        {
            let typed = Typed::try_parse_from(["x", "--decision", typed]).unwrap();
            assert_eq!(typed.which.decision.as_deref(), Some(decision));
        }
        assert!(Typed::try_parse_from(["x", "--decision", "hold"]).is_err());
        assert!(Typed::try_parse_from(["x", "--action", "payment.*"]).is_err());
    }
}
