//! A Cedar statement of a policy record: its scope, and its effect if it matches.

use std::{ops::Range, sync::Arc};

use authority_ids::EntityRef;
use cedar_policy_core::{
    ast::{self, ActionConstraint, EntityUID, PolicyID, StaticPolicy},
    evaluator::Evaluator,
    parser::{Loc, parse_policy, parse_template},
};

use super::{
    cost::Cost,
    error::PolicyError,
    jurisdiction_comparison,
    reads::{Reads, json_form},
};
use crate::{
    pattern::{check_action, prefixes},
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
    /// Exactly this action.
    Eq(String),
    /// Any of these actions, or an action below any of them.
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

/// The effect of a statement that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A permit. Everything is permitted implicitly: a permit only adds constraints.
    Permit,
    /// A forbid.
    Deny(Reason),
    /// A forbid that holds until this many people have approved.
    Hold(Reason, u32),
}

/// The result of evaluating a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluated {
    Matches,
    Silent,
    /// The statement could not be evaluated. Contains the error text.
    Failed(String),
}

impl Evaluated {
    /// Returns the stricter of two results. An error denies.
    pub(crate) fn stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Failed(_), _) | (Self::Matches, Self::Matches | Self::Silent) => self,
            (Self::Silent, _) | (Self::Matches, Self::Failed(_)) => other,
        }
    }
}

/// A statement that is ready for evaluation.
#[derive(Debug)]
pub struct Statement {
    /// The `@id`, or the record's id.
    pub id: String,
    pub policy_id: EntityRef,
    /// The statement's index among the record's statements, from 0.
    pub ordinal: usize,
    pub action: ActionScope,
    pub effect: Effect,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    pub advice: Option<String>,
    /// The statement's scope and conditions, as one expression.
    condition: ast::Expr,
    reads: Reads,
    pub(crate) cost: Cost,
    /// The reason why the statement can never have its apparent meaning. Such a statement is
    /// refused on write. If it is already stored, its evaluation fails.
    pub fault: Option<String>,
}

/// Why a statement cannot be compiled, at a byte of the policy's text.
pub(crate) struct StatementFault {
    offset: usize,
    problem: String,
    /// Whether the statement names an entity type that does not exist.
    pub(crate) unknown_type: bool,
}

impl StatementFault {
    pub(crate) fn error(self, text: &str) -> PolicyError {
        PolicyError::at(text, self.offset, self.problem)
    }
}

impl Statement {
    pub(crate) fn compile(
        policy_id: &EntityRef,
        ordinal: usize,
        text: &str,
        span: Range<usize>,
    ) -> Result<Self, Vec<StatementFault>> {
        let start = span.start;
        let at = |place: Option<usize>, problem: String| StatementFault {
            offset: start + place.unwrap_or_default(),
            problem,
            unknown_type: false,
        };
        let fault = |problem: String| vec![at(None, problem)];
        let own = text.get(span).unwrap_or_default();
        let name = PolicyID::from_string(format!("{policy_id}#{ordinal}"));
        let policy = parse_policy(Some(name), own).map_err(|why| {
            let template = parse_template(None, own).is_ok();
            let problem =
                if template { "templates are not supported".into() } else { why.to_string() };
            fault(problem)
        })?;
        let json = json_form(own).map_err(fault)?;
        let condition = policy.condition();
        let mut faults = entity_faults(&condition, start);
        let notes = Notes::read(&policy, policy.effect() == ast::Effect::Forbid);
        let notes =
            notes.map_err(|(key, problem)| faults.push(at(place_of(&policy, &key), problem)));
        let action = scope(&policy).map_err(|problem| faults.push(at(None, problem)));
        let (Ok(notes), Ok(action), true) = (notes, action, faults.is_empty()) else {
            return Err(faults);
        };
        Ok(Self {
            id: notes.id.unwrap_or_else(|| policy_id.to_string()),
            policy_id: policy_id.clone(),
            ordinal,
            action,
            effect: notes.effect,
            obligations: notes.obligations,
            stop_conditions: notes.stop_conditions,
            advice: notes.advice,
            cost: Cost::of(&condition),
            condition,
            reads: Reads::of(&json),
            fault: jurisdiction_comparison::fault(&json),
        })
    }

    /// Returns the sort key for the order of evaluation.
    pub fn order(&self) -> (&str, &str, usize) {
        (&self.id, &self.policy_id, self.ordinal)
    }

    pub(crate) fn condition(&self) -> &ast::Expr {
        &self.condition
    }

    /// Whether the statement reads this field of the context.
    pub(crate) fn reads(&self, member: &str) -> bool {
        self.reads.reads(member)
    }

    /// Evaluates the statement.
    ///
    /// Cedar's authorizer skips a policy with an error. Here the error is a result, because a
    /// skipped forbid would permit.
    pub(crate) fn evaluate(&self, cedar: &Evaluator<'_>) -> Evaluated {
        if let Some(fault) = &self.fault {
            return Evaluated::Failed(fault.clone());
        }
        // A statement is not a template: its slots are empty.
        match cedar.interpret(&self.condition, &ast::SlotEnv::new()).map(|value| value.value) {
            Ok(ast::ValueKind::Lit(ast::Literal::Bool(true))) => Evaluated::Matches,
            Ok(ast::ValueKind::Lit(ast::Literal::Bool(false))) => Evaluated::Silent,
            Ok(other) => Evaluated::Failed(format!("the condition is {other}, not true or false")),
            Err(error) => Evaluated::Failed(error.to_string()),
        }
    }
}

/// The annotations of a statement.
struct Notes {
    id: Option<String>,
    effect: Effect,
    obligations: Vec<String>,
    stop_conditions: Vec<String>,
    advice: Option<String>,
}

impl Notes {
    /// Reads the annotations. The error is the invalid annotation and its problem.
    fn read(policy: &StaticPolicy, forbids: bool) -> Result<Self, (String, String)> {
        for (key, _) in annotations(policy) {
            if !ANNOTATIONS.contains(&key) {
                let known = ANNOTATIONS.map(|word| format!("@{word}")).join(", ");
                let problem = format!("unknown annotation `@{key}`; the known ones are {known}");
                return Err((key.to_owned(), problem));
            }
        }
        let note = |key| annotations(policy).find_map(|(name, note)| (name == key).then_some(note));
        Ok(Self {
            id: note("id").map(|id| label("id", id)).transpose().map_err(of("id"))?,
            effect: effect(&note, forbids)?,
            obligations: note("obligation")
                .map_or(Ok(Vec::new()), |v| labels("obligation", v))
                .map_err(of("obligation"))?,
            stop_conditions: note("stop_condition")
                .map_or(Ok(Vec::new()), |v| labels("stop_condition", v))
                .map_err(of("stop_condition"))?,
            advice: note("advice").map(str::to_owned),
        })
    }
}

/// Returns the keys and the texts of the annotations.
fn annotations(policy: &StaticPolicy) -> impl Iterator<Item = (&str, &str)> {
    policy.annotations().map(|(key, note)| (key.as_ref(), note.as_ref()))
}

/// Adds this annotation's key to a problem.
fn of(key: &'static str) -> impl Fn(String) -> (String, String) {
    move |problem| (key.to_owned(), problem)
}

/// Returns the position of the annotation in the statement, in bytes.
fn place_of(policy: &StaticPolicy, key: &str) -> Option<usize> {
    let mut notes = policy.annotations();
    let (_, note) = notes.find(|(name, _)| AsRef::<str>::as_ref(*name) == key)?;
    note.loc.as_ref().map(Loc::start)
}

fn effect<'a>(
    note: &impl Fn(&'static str) -> Option<&'a str>,
    forbids: bool,
) -> Result<Effect, (String, String)> {
    let holds = match note("decision") {
        None => Ok(false),
        Some(_) if !forbids => Err("`@decision` belongs on a forbid".to_owned()),
        Some("require_approval") => Ok(true),
        Some(other) => Err(format!("`@decision(\"{other}\")`: write \"require_approval\"")),
    };
    let holds = holds.map_err(of("decision"))?;
    let approvals = match note("approvals") {
        None => Ok(1),
        Some(_) if !holds => {
            Err("`@approvals` belongs beside `@decision(\"require_approval\")`".to_owned())
        }
        Some(text) => text
            .parse()
            .ok()
            .filter(|count| (1..=MOST_APPROVALS).contains(count))
            .ok_or_else(|| format!("`@approvals(\"{text}\")`: write a number from 1 to 16")),
    };
    let approvals = approvals.map_err(of("approvals"))?;
    let reason = note("reason").map(|word| {
        Reason::from_word(word)
            .filter(|reason| *reason != Reason::PermissionGranted)
            .ok_or_else(|| {
                format!(
                    "`@reason(\"{word}\")` is not a reason code; write one of /v1/reason-codes, or one \
                     of your own that begins with `x_`"
                )
            })
    });
    let reason = reason.transpose().map_err(of("reason"))?;
    Ok(match (forbids, holds) {
        (false, _) => Effect::Permit,
        (true, false) => Effect::Deny(reason.unwrap_or(Reason::PolicyDenied)),
        (true, true) => Effect::Hold(reason.unwrap_or(Reason::ApprovalThresholdBreach), approvals),
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

fn scope(policy: &StaticPolicy) -> Result<ActionScope, String> {
    let name = |uid: &Arc<EntityUID>| {
        if uid.entity_type().to_string() == "Svc::Action" {
            let id: &str = uid.eid().as_ref();
            Ok(id.to_owned())
        } else {
            Err(format!("the action is compared with `{uid}`; write Svc::Action::\"<name>\""))
        }
    };
    Ok(match policy.action_constraint() {
        ActionConstraint::Any => ActionScope::Any,
        ActionConstraint::Eq(uid) => ActionScope::Eq(name(uid)?),
        ActionConstraint::In(uids) => {
            ActionScope::In(uids.iter().map(name).collect::<Result<_, _>>()?)
        }
    })
}

/// Checks that every entity type is known and every action is possible.
///
/// A forbid on `Svc::Action::"payment.*"` would otherwise never match, and the mistake would go
/// unnoticed. The statement begins at the byte `begin` of the policy's text.
fn entity_faults(condition: &ast::Expr, begin: usize) -> Vec<StatementFault> {
    let unknown = |kind: &ast::EntityType| {
        let name = kind.to_string();
        let known = ENTITY_TYPES.join(", ");
        let is_known = ENTITY_TYPES.contains(&name.as_str());
        (!is_known).then(|| format!("unknown entity type `{name}`; the known ones are {known}"))
    };
    let start = |loc: Option<&Loc>| loc.map(Loc::start);
    let fault = |place: Option<usize>, problem, unknown_type| StatementFault {
        offset: begin + place.unwrap_or_default(),
        problem,
        unknown_type,
    };
    let faults = condition.subexpressions().filter_map(|expression| match expression.expr_kind() {
        ast::ExprKind::Is { entity_type, .. } => {
            let place = start(entity_type.loc()).or_else(|| start(expression.source_loc()));
            Some(fault(place, unknown(entity_type)?, true))
        }
        ast::ExprKind::Lit(ast::Literal::EntityUID(uid)) => {
            let place = start(uid.loc());
            if let Some(problem) = unknown(uid.entity_type()) {
                return Some(fault(place, problem, true));
            }
            let id: &str = uid.eid().as_ref();
            let no_action =
                uid.entity_type().to_string() == "Svc::Action" && check_action(id).is_err();
            no_action.then(|| {
                let problem = format!(
                    "`{id}` is not an action; for all below a prefix write `action in \
                     Svc::Action::\"<prefix>\"`"
                );
                fault(place, problem, false)
            })
        }
        _ => None,
    });
    faults.collect()
}
