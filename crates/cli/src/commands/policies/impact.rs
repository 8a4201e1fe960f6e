//! `policies impact`: recent decisions that would change with other policies.

use authority_client::SURFACE;
use authority_ids::{EntityRef, TenantRef};
use clap::{Args, value_parser};
use serde_json::{Value, json};

use crate::{
    arguments::tenant,
    cells::with_short,
    connect::{Connector, ServerArgs},
    files::Candidate,
    list::RecordPage,
    narrow::word,
    outcome::{CommandOutput, Failure},
    server::Server,
    tenant::meant,
    text::{self, plain},
    times::moment,
};

#[derive(Debug, Args)]
pub struct Impact {
    /// A policy to add, or with `ID=FILE` a replacement for the policy with this id
    #[arg(value_name = "[ID=]FILE", value_parser = Candidate::parse, required_unless_present = "without")]
    policies: Vec<Candidate>,
    /// A policy to leave out; can be given several times
    #[arg(long = "without", value_name = "ID")]
    without: Vec<EntityRef>,
    /// The tenant of the decisions, by id or slug [default: the tenant of the first --without, or
    /// the owner's only tenant]
    #[arg(long = "tenant", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    /// The number of newest decisions to consider [default: 100]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u16).range(1..=1000))]
    last: Option<u16>,
    /// Only decisions at or after this time: RFC 3339, or a span before now, such as 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = moment)]
    since: Option<String>,
    /// Compare with the active policies, or with the recorded decisions
    #[arg(long, value_name = "WHAT", value_parser = ["present", "recorded"], default_value = "present")]
    compared_with: String,
    #[command(flatten)]
    server: ServerArgs,
}

const COLUMNS: [&str; 6] = ["decision_id", "evaluated_at", "subject", "action", "before", "after"];

impl Impact {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let policies = Candidate::bodies(&self.policies)?;
        let server = connector.connect(self.server).await?;
        let tenant_id = match self.tenant_id {
            None => meant(&server, self.without.first().map(EntityRef::as_str)).await,
            named => named,
        };
        let question = json!({"candidate_policies": policies, "without_policies": self.without,
            "tenant_id": tenant_id, "last": self.last, "since": self.since,
            "compared_with": self.compared_with});
        let DryRun { told, mut findings, found } = ask(&server, &question).await?;
        findings.push(told);
        let output = found.shown("changes", &COLUMNS);
        Ok(CommandOutput { aside: findings.join("\n"), ..output })
    }
}

/// The number of decisions considered before an activation; at most `LISTED` changed decisions are
/// listed.
const LAST: u16 = 200;
const LISTED: usize = 20;

/// Describes the newest decisions of the policy's tenant that would change with this text.
pub(super) async fn of_text(server: &Server, policy: &Value, cedar: &str) -> String {
    let candidate = json!({"policy_id": policy["id"], "cedar": cedar});
    let question = json!({"candidate_policies": [candidate], "tenant_id": policy["tenant_id"],
                          "last": LAST, "compared_with": "present"});
    // An activation shows the findings itself.
    let DryRun { told, mut found, .. } = match ask(server, &question).await {
        Ok(asked) => asked,
        Err(problem) => return format!("The impact could not be read: {problem}"),
    };
    let more = found.records.len().saturating_sub(LISTED);
    found.records.truncate(LISTED);
    if found.records.is_empty() {
        return format!("{told}.");
    }
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    format!("{told}:\n{}{more}", found.shown("changes", &COLUMNS).text)
}

/// The result of a dry run.
struct DryRun {
    /// The number of changed decisions, as text.
    told: String,
    /// The problems and warnings that a write of the candidates would return.
    findings: Vec<String>,
    /// The changes.
    found: RecordPage,
}

async fn ask(server: &Server, question: &Value) -> Result<DryRun, Failure> {
    let body = server.post(&server.path(&[SURFACE, "policies:impact"]), question).await?;
    let found = server.json(&body)?;
    let told = format!(
        "{} of {} decisions would change{}",
        found["changed_total"],
        found["considered"],
        match found["unreadable"].as_u64() {
            None | Some(0) => String::new(),
            Some(count) => format!("; {count} could not be decided again"),
        },
    );
    let findings = Candidate::findings(&found);
    let mut found = RecordPage::of(server, body, "changed")?;
    for changed in &mut found.records {
        for side in ["before", "after"] {
            changed[side] = outcome(&changed[side]);
        }
    }
    Ok(DryRun { told, findings, found })
}

/// Returns a cell with an outcome: the decision, the reason code and the number of people.
fn outcome(outcome: &Value) -> Value {
    let people = match outcome["approvals_needed"]["count"].as_u64() {
        None | Some(0) => String::new(),
        Some(1) => ", by 1 person".to_owned(),
        Some(count) => format!(", by {count} people"),
    };
    let (decision, code) = (text::of(outcome, "decision"), text::of(outcome, "reason_code"));
    let shown = |decision: &str| plain(&format!("{decision}: {code}{people}"));
    with_short(&shown(decision), &shown(word(decision)))
}
