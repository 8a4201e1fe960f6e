//! Checks policy texts against the tenant's declarations of actions and input, and against the
//! names that the tenant has.
//!
//! Writes, validations and dry runs use the same check: they report the same problems.

mod name_lookup;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, LazyLock},
};

use authority_crypto::sha256;
use authority_decision::{
    Pattern, Target,
    input_schema::InputAt,
    validation::{
        ContextSchema, Finding, Known as Records, Name, NameKind, Severity, Surroundings,
        ToolInput, named, validate,
    },
};
use authority_model::{
    proto::registry::PolicyProblem,
    schema::{tenants, tools},
    state::ToolState,
};
use diesel::{QueryResult, prelude::*};
use parking_lot::Mutex;
use serde_json::Value;

use authority_process::compute::{self, ComputePool};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};

/// The maximum number of texts with cached findings. An entry is valid until its inputs change.
const REMEMBERED: usize = 512;

type Findings = Arc<Vec<Finding>>;
/// A tool's actions, input schema, covered part of a request, whether it belongs to an MCP server, and
/// its requirements.
type ToolRow = (Vec<String>, Option<Value>, String, bool, Vec<String>);
static KNOWN: LazyLock<Mutex<HashMap<[u8; 32], Findings>>> = LazyLock::new(Mutex::default);

/// The reason why a text cannot be checked now.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Too many checks are running already.
    #[error(transparent)]
    Compute(#[from] compute::Error),
}

/// The check of one tenant's texts.
pub struct PolicyCheck {
    store: Store,
    pool: ComputePool,
    scope: Scope,
    tenant_id: String,
    ground: Ground,
}

/// The tenant's data that texts are checked against.
#[derive(Default)]
struct Ground {
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
            .select((
                tools::actions,
                tools::input_schema,
                tools::input_at,
                tools::mcp.is_not_null(),
                tools::requires,
            ))
            .load(db)
            .await?;
        let digest = sha256(serde_json::json!([declared, rows]).to_string().as_bytes());
        let patterns = |texts: &[String]| -> Vec<Pattern> {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        };
        let required = rows.iter().map(|(actions, .., own)| (patterns(actions), own.clone()));
        let known = Records { tools: required.collect(), ..Records::default() };
        let tools = rows.iter();
        let tools = tools.map(|(actions, schema, at, is_mcp, _)| {
            let at = InputAt::from_word(at).unwrap_or(InputAt::Context);
            if *is_mcp {
                return ToolInput::of_mcp(patterns(actions), schema.as_ref());
            }
            ToolInput::of(patterns(actions), schema.as_ref(), at)
        });
        let declared = declared.and_then(|json| ContextSchema::of(json).ok()).unwrap_or_default();
        let surroundings = Arc::new(Surroundings::new(declared, tools.collect()));
        Ok(Self { surroundings, known, digest, lenient: validation == "warn", exists: true })
    }
}

impl PolicyCheck {
    /// Reads the tenant's data, in the caller's scope.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn of(
        store: &Store,
        pool: &ComputePool,
        scope: Scope,
        tenant_id: &str,
    ) -> Result<Self, Error> {
        let tenant = tenant_id.to_owned();
        let read = store.read_tx(&scope, async move |db| {
            Ok::<_, store::Error>(Ground::read(db, &tenant).await?)
        });
        let ground = read.await?;
        let (store, pool, tenant_id) = (store.clone(), pool.clone(), tenant_id.to_owned());
        Ok(Self { store, pool, scope, tenant_id, ground })
    }

    /// Returns the errors and warnings of a text, and the warnings of the targets. Unknown names
    /// are among the warnings.
    ///
    /// # Errors
    /// Too many checks are running already, or the store can't be read.
    pub async fn findings(
        &self,
        text: Option<&str>,
        targets: &[String],
    ) -> Result<(Vec<Finding>, Vec<PolicyProblem>), Error> {
        let mut names = self.named(text.unwrap_or_default()).await?;
        let of_targets =
            targets.iter().map(|target| Name::of_target(&target.parse::<Target>().ok()?));
        let of_targets: Vec<_> = of_targets.collect();
        names.extend(of_targets.iter().flatten().cloned());
        if !self.ground.exists {
            names.clear();
        }
        let (mut records, tenant) = (self.ground.known.clone(), self.tenant_id.clone());
        let read = self.store.read_tx(&self.scope, async move |db| {
            name_lookup::look_up(db, &tenant, &names, &mut records).await?;
            Ok::<_, store::Error>(records)
        });
        let records = read.await?;
        let mut found = match text {
            Some(text) => Vec::clone(&*self.strict(text, &records).await?),
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

    /// Returns only the findings for which a text is refused.
    ///
    /// # Errors
    /// Too many checks are running already, or the store can't be read.
    pub async fn errors(&self, text: &str) -> Result<Vec<Finding>, Error> {
        let records = self.with_renewed(text).await?;
        let mut found = Vec::clone(&*self.strict(text, &records).await?);
        self.soften(&mut found);
        found.retain(|one| one.severity == Severity::Error);
        Ok(found)
    }

    /// Returns the errors of a text. The tenant's `policy_validation` is ignored.
    ///
    /// # Errors
    /// Too many checks are running already, or the store can't be read.
    pub async fn faults(&self, text: &str) -> Result<Vec<Finding>, Error> {
        let records = self.with_renewed(text).await?;
        let found = self.strict(text, &records).await?;
        Ok(found.iter().filter(|one| one.severity == Severity::Error).cloned().collect())
    }

    /// Returns a text's errors and warnings. The tenant's `policy_validation` is ignored.
    async fn strict(&self, text: &str, records: &Records) -> Result<Findings, Error> {
        // The digest already covers the tools.
        let looked_up = format!("{:?}{:?}{:?}", records.missing, records.renewed, records.actions);
        let key =
            [&self.ground.digest[..], &sha256(looked_up.as_bytes()), text.as_bytes()].concat();
        let key = sha256(&key);
        if let Some(known) = KNOWN.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let (surroundings, own) = (Arc::clone(&self.ground.surroundings), text.to_owned());
        let records = records.clone();
        let checking =
            self.pool.run(&self.tenant_id, move |_| validate(&own, &surroundings, &records));
        let found = Arc::new(checking.await?);
        let mut all = KNOWN.lock();
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(key, Arc::clone(&found));
        Ok(found)
    }

    async fn named(&self, text: &str) -> Result<BTreeSet<Name>, Error> {
        let own = text.to_owned();
        Ok(self.pool.run(&self.tenant_id, move |_| named(&own)).await?)
    }

    /// If the tenant is lenient, turns violations of only its declarations into warnings.
    fn soften(&self, found: &mut [Finding]) {
        for one in found.iter_mut().filter(|one| self.ground.lenient && one.by_schema) {
            one.severity = Severity::Warning;
        }
    }

    /// Returns the tenant's data, extended by the renewals among the delegations in the text. Only
    /// the name of a renewal is an error; other names at most cause warnings.
    async fn with_renewed(&self, text: &str) -> Result<Records, Error> {
        let mut records = self.ground.known.clone();
        // `\` may begin an escaped letter.
        let may_compare = text.contains("delegation") || text.contains('\\');
        if !self.ground.exists || !may_compare {
            return Ok(records);
        }
        let names = self.named(text).await?;
        if names.iter().all(|one| one.kind != NameKind::Delegation) {
            return Ok(records);
        }
        let tenant = self.tenant_id.clone();
        let read = self.store.read_tx(&self.scope, async move |db| {
            name_lookup::look_up_renewed(db, &tenant, &names, &mut records).await?;
            Ok::<_, store::Error>(records)
        });
        Ok(read.await?)
    }
}

/// Converts a finding to an API message.
pub fn problem_of(finding: &Finding) -> PolicyProblem {
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
