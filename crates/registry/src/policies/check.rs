//! Validates policy texts against the tenant's declarations of actions and input.
//!
//! A text is accepted or refused when it is written, validated or activated. An active policy stays
//! active when tools or declarations change. If its text would no longer be accepted, its
//! `problems` list the findings.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use authority_model::{
    proto::registry::{Policy, PolicyProblem},
    schema::{applies_to, tenants, tools},
    state::{PolicyState, ToolState},
};
use parking_lot::Mutex;
use serde_json::Value;

use super::name_lookup;
use crate::flow::prelude::*;
use authority_api::identity::Caller;
use authority_core::store;
use authority_crypto::sha256;
use authority_decision::{
    Pattern, Target,
    input_schema::InputAt,
    validation::{
        ContextSchema, Finding, Known as Records, Name, NameKind, Severity, Surroundings,
        ToolInput, named, validate,
    },
};

/// The maximum number of texts with cached findings. An entry is valid until its inputs change.
const REMEMBERED: usize = 512;
/// How long a list request waits for texts to be checked. The next list request continues with the
/// remaining texts.
const PATIENCE: Duration = Duration::from_secs(2);

type Findings = Arc<Vec<Finding>>;
/// A tool's actions, input schema, covered part of a request and requirements.
type ToolRow = (Vec<String>, Option<Value>, String, Vec<String>);
static KNOWN: LazyLock<Mutex<HashMap<[u8; 32], Findings>>> = LazyLock::new(Mutex::default);

/// The tenant's data that texts are checked against.
#[derive(Clone, Default)]
pub(crate) struct Ground {
    surroundings: Arc<Surroundings>,
    /// The tenant's data, without the names looked up for a text.
    known: Records,
    digest: [u8; 32],
    /// Whether violations of only the schema are warnings.
    lenient: bool,
    /// Whether the tenant exists. Without a tenant, every name counts as known.
    exists: bool,
}

impl Ground {
    pub(crate) async fn of(
        registry: &Registry,
        caller: &Caller,
        tenant_id: &str,
    ) -> Result<Self, Error> {
        let tenant_id = tenant_id.to_owned();
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(Self::read(db, &tenant_id).await?)
        });
        Ok(read.await?)
    }

    async fn read(db: &mut Db, tenant_id: &str) -> QueryResult<Self> {
        let tenant: Option<(String, Option<Value>)> = tenants::table
            .find(tenant_id)
            .select((tenants::policy_validation, tenants::context_schema))
            .first(db)
            .await
            .optional()?;
        let Some((validation, declared)) = tenant else { return Ok(Self::default()) };
        let rows: Vec<ToolRow> = tools::table
            .filter(tools::tenant_id.eq(tenant_id))
            .filter(tools::state.ne(ToolState::Deprecated))
            .order(tools::id)
            .select((tools::actions, tools::input_schema, tools::input_at, tools::requires))
            .load(db)
            .await?;
        let digest = sha256(serde_json::json!([declared, rows]).to_string().as_bytes());
        let patterns = |texts: &[String]| -> Vec<Pattern> {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        };
        let required = rows.iter().map(|(actions, .., own)| (patterns(actions), own.clone()));
        let known = Records { tools: required.collect(), ..Records::default() };
        let tools = rows.iter();
        let tools = tools.map(|(actions, schema, at, _)| {
            let at = InputAt::from_word(at).unwrap_or(InputAt::Context);
            ToolInput::of(patterns(actions), schema.as_ref(), at)
        });
        let declared = declared.and_then(|json| ContextSchema::of(json).ok()).unwrap_or_default();
        let surroundings = Arc::new(Surroundings::new(declared, tools.collect()));
        Ok(Self { surroundings, known, digest, lenient: validation == "warn", exists: true })
    }

    /// Returns a text's errors and warnings. The tenant's `policy_validation` is ignored.
    async fn strict(
        &self,
        registry: &Registry,
        tenant_id: &str,
        text: &str,
        records: &Records,
    ) -> Result<Findings, Error> {
        // The digest already covers the tools.
        let looked_up = format!("{:?}{:?}{:?}", records.missing, records.renewed, records.actions);
        let key = [&self.digest[..], &sha256(looked_up.as_bytes()), text.as_bytes()].concat();
        let key = sha256(&key);
        if let Some(known) = KNOWN.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let (surroundings, own) = (Arc::clone(&self.surroundings), text.to_owned());
        let records = records.clone();
        let checking =
            registry.pool.run(tenant_id, move |_| validate(&own, &surroundings, &records));
        let found = Arc::new(checking.await?);
        let mut all = KNOWN.lock();
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(key, Arc::clone(&found));
        Ok(found)
    }

    /// Returns the errors and warnings of a text, and the warnings of the targets. Unknown names
    /// are among the warnings.
    ///
    /// # Errors
    /// Too many checks are running already, or the store can't be read.
    pub(crate) async fn findings(
        &self,
        registry: &Registry,
        caller: &Caller,
        tenant_id: &str,
        (text, targets): (Option<&str>, &[String]),
    ) -> Result<(Vec<Finding>, Vec<PolicyProblem>), Error> {
        let own = text.unwrap_or_default().to_owned();
        let mut names = registry.pool.run(tenant_id, move |_| named(&own)).await?;
        let of_targets =
            targets.iter().map(|target| Name::of_target(&target.parse::<Target>().ok()?));
        let of_targets: Vec<_> = of_targets.collect();
        names.extend(of_targets.iter().flatten().cloned());
        if !self.exists {
            names.clear();
        }
        let (mut records, tenant) = (self.known.clone(), tenant_id.to_owned());
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            name_lookup::look_up(db, &tenant, &names, &mut records).await?;
            Ok::<_, store::Error>(records)
        });
        let records = read.await?;
        let mut found = match text {
            Some(text) => Vec::clone(&*self.strict(registry, tenant_id, text, &records).await?),
            None => Vec::new(),
        };
        self.soften(&mut found);
        let of_targets = of_targets.iter().enumerate();
        let doubts = of_targets.filter_map(|(place, name)| {
            let (name, near) = records.missing.get_key_value(name.as_ref()?)?;
            let suggestion = near.as_ref().map(|near| format!("did you mean `{near}`?"));
            let (field, summary) = (format!("applies_to[{place}]"), name.problem());
            let problem = match &suggestion {
                Some(near) => format!("{summary}; {near}"),
                None => summary.clone(),
            };
            Some(PolicyProblem { field, problem, suggestion, summary, ..PolicyProblem::default() })
        });
        Ok((found, doubts.collect()))
    }

    /// If the tenant is lenient, turns violations of only its declarations into warnings.
    fn soften(&self, found: &mut [Finding]) {
        for one in found.iter_mut().filter(|one| self.lenient && one.by_schema) {
            one.severity = Severity::Warning;
        }
    }

    /// Returns only the findings for which a text is refused.
    ///
    /// # Errors
    /// Too many checks are running already, or the store can't be read.
    pub(crate) async fn errors(
        &self,
        registry: &Registry,
        caller: &Caller,
        tenant_id: &str,
        text: &str,
    ) -> Result<Vec<Finding>, Error> {
        let records = self.with_renewed(registry, caller, tenant_id, text).await?;
        let mut found = Vec::clone(&*self.strict(registry, tenant_id, text, &records).await?);
        self.soften(&mut found);
        found.retain(|one| one.severity == Severity::Error);
        Ok(found)
    }

    /// Returns the tenant's data, extended by the renewals among the delegations in the text. Only
    /// the name of a renewal is an error; other names at most cause warnings.
    async fn with_renewed(
        &self,
        registry: &Registry,
        caller: &Caller,
        tenant_id: &str,
        text: &str,
    ) -> Result<Records, Error> {
        let mut records = self.known.clone();
        // `\` may begin an escaped letter.
        let may_compare = text.contains("delegation") || text.contains('\\');
        if !self.exists || !may_compare {
            return Ok(records);
        }
        let (own, tenant) = (text.to_owned(), tenant_id.to_owned());
        let names = registry.pool.run(tenant_id, move |_| named(&own)).await?;
        if names.iter().all(|one| one.kind != NameKind::Delegation) {
            return Ok(records);
        }
        let read = registry.store.read_tx(&caller.scope(), async move |db| {
            name_lookup::look_up_renewed(db, &tenant, &names, &mut records).await?;
            Ok::<_, store::Error>(records)
        });
        Ok(read.await?)
    }
}

/// Sets the warnings of a policy's newest text and of its targets.
///
/// The write has been committed. If a name can't be looked up now, its warning is omitted.
pub(crate) async fn warn(registry: &Registry, caller: &Caller, policy: &mut Policy) {
    if policy.known_state() == Some(PolicyState::Retired) {
        return;
    }
    let text = policy.draft_cedar.as_deref().or(policy.cedar.as_deref());
    let named = (text, policy.applies_to.as_slice());
    let found = async {
        let ground = Ground::of(registry, caller, &policy.tenant_id).await?;
        ground.findings(registry, caller, &policy.tenant_id, named).await
    };
    let Ok((found, of_targets)) = found.await else { return };
    let found = found.iter().filter(|one| one.severity == Severity::Warning);
    policy.warnings = found.map(problem_of).chain(of_targets).collect();
}

/// Converts a finding to an API message.
pub(crate) fn problem_of(finding: &Finding) -> PolicyProblem {
    let number = |number: usize| i32::try_from(number).ok();
    PolicyProblem {
        field: "cedar".to_owned(),
        problem: finding.to_string(),
        line: number(finding.line),
        column: number(finding.column),
        suggestion: finding.suggestion.clone(),
        summary: finding.problem.clone(),
    }
}

/// Returns a problem without a place in the text.
pub(crate) fn problem_at(field: &str, problem: String) -> PolicyProblem {
    let (field, summary) = (field.to_owned(), problem.clone());
    PolicyProblem { field, problem, summary, ..PolicyProblem::default() }
}

/// Sets the fields that policies' rows lack. These are the targets, and the current problems of
/// active policies.
///
/// # Errors
/// The store can't be read, or too many checks are running already.
pub(crate) async fn fill_computed(
    registry: &Registry,
    caller: &Caller,
    policies: &mut [Policy],
) -> Result<(), Error> {
    let ids: Vec<String> = policies.iter().map(|policy| policy.id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let rows: Vec<(String, String)> = applies_to::table
            .filter(applies_to::policy_id.eq_any(&ids))
            .order((applies_to::created_at, applies_to::id))
            .select((applies_to::policy_id, applies_to::target_class))
            .load(db)
            .await?;
        Ok::<_, store::Error>(rows)
    });
    let mut targets: HashMap<String, Vec<String>> = HashMap::new();
    for (policy_id, target) in read.await? {
        targets.entry(policy_id).or_default().push(target);
    }
    let mut grounds: HashMap<String, Ground> = HashMap::new();
    let started = Instant::now();
    for policy in policies {
        policy.applies_to = targets.remove(&policy.id).unwrap_or_default();
        let is_checked =
            policy.known_state() == Some(PolicyState::Active) && started.elapsed() < PATIENCE;
        let Some(text) = policy.cedar.as_deref().filter(|_| is_checked) else { continue };
        if !grounds.contains_key(&policy.tenant_id) {
            let ground = Ground::of(registry, caller, &policy.tenant_id).await?;
            grounds.insert(policy.tenant_id.clone(), ground);
        }
        let Some(ground) = grounds.get(&policy.tenant_id) else { continue };
        let tenant_id = &policy.tenant_id;
        let Ok(records) = ground.with_renewed(registry, caller, tenant_id, text).await else {
            continue;
        };
        let Ok(found) = ground.strict(registry, tenant_id, text, &records).await else {
            continue;
        };
        let errors = found.iter().filter(|one| one.severity == Severity::Error);
        let problems: Vec<_> = errors.map(problem_of).collect();
        if !problems.is_empty() {
            let faults = problems.len();
            tracing::warn!(policy.id = policy.id, faults, "found an active policy with faults");
        }
        policy.problems = problems;
    }
    Ok(())
}
