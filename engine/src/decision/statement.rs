//! One Cedar statement of a policy record: what it is bound to, and what it says when it matches.

use std::ops::Range;

use cedar_policy::{ActionConstraint, Effect, Policy, PolicyId, Template};
use cedar_policy_core::{ast, evaluator::Evaluator};
use serde_json::Value;

use super::{
    pattern::{check_action, prefixes},
    policy::PolicyError,
    reads::Reads,
    reason::Reason,
};

/// The entity types that a policy may name.
pub const ENTITY_TYPES: [&str; 5] =
    ["Svc::Principal", "Svc::Team", "Svc::Action", "Svc::Resource", "Svc::Tenant"];
const ANNOTATIONS: [&str; 7] =
    ["id", "reason", "decision", "approvals", "obligation", "stop_condition", "advice"];
const MOST_APPROVALS: u32 = 16;

/// The action constraint in a statement's scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionScope {
    Any,
    /// This action.
    Eq(String),
    /// One of these, or below one of them.
    In(Vec<String>),
}

impl ActionScope {
    pub fn admits(&self, action: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Eq(name) => name == action,
            Self::In(names) => names
                .iter()
                .any(|name| name == action || prefixes(action).any(|prefix| prefix == name)),
        }
    }
}

/// What a statement does when it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// A permit: it stands over an implicit permit of everything, so it only adds constraints.
    Permit,
    /// A forbid.
    Deny(Reason),
    /// A forbid that holds for this many people's approval.
    Hold(Reason, u32),
}

/// How evaluating a statement came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluated {
    Matches,
    Silent,
    /// It could not be evaluated: its text for people.
    Failed(String),
}

/// One statement, ready to be evaluated.
#[derive(Debug)]
pub struct Statement {
    /// `@id`, or the record's id.
    pub id: String,
    pub policy_id: String,
    /// Its place among the record's statements, from 0.
    pub ordinal: usize,
    pub action: ActionScope,
    pub says: Says,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    pub advice: Option<String>,
    /// What it says of principal, action, resource and context, as one expression.
    condition: ast::Expr,
    reads: Reads,
}

impl Statement {
    pub(super) fn compile(
        policy_id: &str,
        ordinal: usize,
        text: &str,
        span: Range<usize>,
    ) -> Result<Self, PolicyError> {
        let start = span.start;
        let fault = |problem: String| PolicyError::at(text, start, problem);
        let own = text.get(span).unwrap_or_default();
        let name = Some(PolicyId::new(format!("{policy_id}#{ordinal}")));
        let policy = Policy::parse(name, own).map_err(|why| {
            let template = Template::parse(None, own).is_ok();
            let problem =
                if template { "templates are not supported".into() } else { why.to_string() };
            fault(problem)
        })?;
        let json = policy.to_json().map_err(|why| fault(why.to_string()))?;
        check_entities(&json).map_err(fault)?;
        let forbids = policy.effect() == Effect::Forbid;
        let notes = Notes::read(&policy, forbids).map_err(fault)?;
        let action = scope(&policy).map_err(fault)?;
        Ok(Self {
            id: notes.id.unwrap_or_else(|| policy_id.to_owned()),
            policy_id: policy_id.to_owned(),
            ordinal,
            action,
            says: notes.says,
            obligations: notes.obligations,
            stop_conditions: notes.stop_conditions,
            advice: notes.advice,
            condition: AsRef::<ast::Policy>::as_ref(&policy).condition(),
            reads: Reads::of(&json),
        })
    }

    /// The order in which statements are heard.
    pub fn order(&self) -> (&str, &str, usize) {
        (&self.id, &self.policy_id, self.ordinal)
    }

    /// Whether it reads this member of the context.
    pub(super) fn reads(&self, member: &str) -> bool {
        self.reads.reads(member)
    }

    /// Cedar's authorizer skips a policy that errs; here that is told apart, since a skipped forbid
    /// would open the door.
    pub(super) fn evaluate(&self, cedar: &Evaluator<'_>) -> Evaluated {
        // A statement is no template, so there is no slot to fill.
        match cedar.interpret(&self.condition, &ast::SlotEnv::new()).map(|value| value.value) {
            Ok(ast::ValueKind::Lit(ast::Literal::Bool(true))) => Evaluated::Matches,
            Ok(ast::ValueKind::Lit(ast::Literal::Bool(false))) => Evaluated::Silent,
            Ok(other) => Evaluated::Failed(format!("the condition is {other}, not true or false")),
            Err(error) => Evaluated::Failed(error.to_string()),
        }
    }
}

/// What a statement's annotations say.
struct Notes {
    id: Option<String>,
    says: Says,
    obligations: Vec<String>,
    stop_conditions: Vec<String>,
    advice: Option<String>,
}

impl Notes {
    fn read(policy: &Policy, forbids: bool) -> Result<Self, String> {
        for (key, _) in policy.annotations() {
            if !ANNOTATIONS.contains(&key) {
                let known = ANNOTATIONS.map(|word| format!("@{word}")).join(", ");
                return Err(format!("unknown annotation `@{key}`; the known ones are {known}"));
            }
        }
        let note = |key| policy.annotation(key);
        Ok(Self {
            id: note("id").map(|id| label("id", id)).transpose()?,
            says: says(&note, forbids)?,
            obligations: note("obligation").map_or(Ok(Vec::new()), |v| labels("obligation", v))?,
            stop_conditions: note("stop_condition")
                .map_or(Ok(Vec::new()), |v| labels("stop_condition", v))?,
            advice: note("advice").map(str::to_owned),
        })
    }
}

fn says<'a>(
    note: &impl Fn(&'static str) -> Option<&'a str>,
    forbids: bool,
) -> Result<Says, String> {
    let holds = match note("decision") {
        None => false,
        Some(_) if !forbids => return Err("`@decision` belongs on a forbid".to_owned()),
        Some("require_approval") => true,
        Some(other) => return Err(format!("`@decision(\"{other}\")`: write \"require_approval\"")),
    };
    let approvals = match note("approvals") {
        None => 1,
        Some(_) if !holds => {
            return Err("`@approvals` belongs beside `@decision(\"require_approval\")`".to_owned());
        }
        Some(text) => text
            .parse()
            .ok()
            .filter(|count| (1..=MOST_APPROVALS).contains(count))
            .ok_or_else(|| format!("`@approvals(\"{text}\")`: write a number from 1 to 16"))?,
    };
    let reason = note("reason").map(|word| {
        Reason::from_word(word)
            .filter(|reason| *reason != Reason::PermissionGranted)
            .ok_or_else(|| format!("`@reason(\"{word}\")` is no reason code; see /v1/reason-codes"))
    });
    let reason = reason.transpose()?;
    Ok(match (forbids, holds) {
        (false, _) => Says::Permit,
        (true, false) => Says::Deny(reason.unwrap_or(Reason::PolicyDenied)),
        (true, true) => Says::Hold(reason.unwrap_or(Reason::ApprovalThresholdBreach), approvals),
    })
}

fn label(key: &str, text: &str) -> Result<String, String> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"._:-".contains(&c);
    let sound = (1..=128).contains(&text.len()) && text.bytes().all(plain);
    let fault = || format!("`@{key}(\"{text}\")`: write words of letters, digits and `._:-`");
    if sound { Ok(text.to_owned()) } else { Err(fault()) }
}

fn labels(key: &str, text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(|part| label(key, part.trim())).collect()
}

fn scope(policy: &Policy) -> Result<ActionScope, String> {
    let name = |uid: &cedar_policy::EntityUid| {
        if uid.type_name().to_string() == "Svc::Action" {
            Ok(uid.id().unescaped().to_owned())
        } else {
            Err(format!("the action is compared with `{uid}`; write Svc::Action::\"<name>\""))
        }
    };
    Ok(match policy.action_constraint() {
        ActionConstraint::Any => ActionScope::Any,
        ActionConstraint::Eq(uid) => ActionScope::Eq(name(&uid)?),
        ActionConstraint::In(uids) => {
            ActionScope::In(uids.iter().map(name).collect::<Result<_, _>>()?)
        }
    })
}

/// Every entity type that the statement names must be known, and every action must be one that can
/// occur: a forbid on `Svc::Action::"payment.*"` would never match, and nobody would notice.
fn check_entities(policy: &Value) -> Result<(), String> {
    let mut fault = None;
    walk(policy, &mut |type_name, id| {
        let problem = if !ENTITY_TYPES.contains(&type_name) {
            let known = ENTITY_TYPES.join(", ");
            format!("unknown entity type `{type_name}`; the known ones are {known}")
        } else if type_name == "Svc::Action" && id.is_some_and(|id| check_action(id).is_err()) {
            let id = id.unwrap_or_default();
            format!(
                "`{id}` is no action; for all below a prefix write `action in \
                 Svc::Action::\"<prefix>\"`"
            )
        } else {
            return;
        };
        fault.get_or_insert(problem);
    });
    fault.map_or(Ok(()), Err)
}

/// Visits each entity type and literal in a policy's JSON form.
fn walk(json: &Value, visit: &mut impl FnMut(&str, Option<&str>)) {
    match json {
        Value::Object(members) => {
            let text = |key| members.get(key).and_then(Value::as_str);
            if let Some(type_name) = text("entity_type") {
                visit(type_name, None);
            }
            if let (Some(type_name), Some(id)) = (text("type"), text("id")) {
                visit(type_name, Some(id));
            }
            members.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}
