//! The Cedar request and entities of one decision: what policies can talk about.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};
use chrono::SecondsFormat;
use serde_json::{Number, Value};

use super::{
    amount::Amount,
    candidate::Candidate,
    case::Case,
    levels::{EffectClass, OversightMode, Reversibility, RiskTier},
    pattern::prefixes,
};

/// The Cedar view of one case.
pub(super) struct World {
    pub(super) request: Request,
    pub(super) entities: Entities,
}

/// A type name that Cedar has parsed, once.
struct Kind(LazyLock<Option<EntityTypeName>>);

impl Kind {
    fn uid(&self, id: &str) -> Option<EntityUid> {
        let name = self.0.as_ref()?.clone();
        Some(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
    }
}

static PRINCIPAL: Kind = Kind(LazyLock::new(|| "Svc::Principal".parse().ok()));
static TEAM: Kind = Kind(LazyLock::new(|| "Svc::Team".parse().ok()));
static ACTION: Kind = Kind(LazyLock::new(|| "Svc::Action".parse().ok()));
static RESOURCE: Kind = Kind(LazyLock::new(|| "Svc::Resource".parse().ok()));
static TENANT: Kind = Kind(LazyLock::new(|| "Svc::Tenant".parse().ok()));

impl World {
    /// None where Cedar refuses a part of it: then no policy can be evaluated.
    pub(super) fn of(case: &Case<'_>, candidate: &Candidate<'_>) -> Option<Self> {
        let principal = principal(case)?;
        let action = action(&case.request.action)?;
        let resource = resource(case)?;
        let context = context(case, candidate)?;
        let uids = (principal.uid(), action.uid(), resource.uid());
        let request = Request::new(uids.0, uids.1, uids.2, context, None).ok()?;
        let entities = Entities::from_entities([principal, action, resource], None).ok()?;
        Some(Self { request, entities })
    }
}

fn principal(case: &Case<'_>) -> Option<Entity> {
    let uid = PRINCIPAL.uid(&case.request.subject)?;
    let teams = case.teams().map(|team| TEAM.uid(team)).collect::<Option<HashSet<_>>>()?;
    let attributes = case.subject().map_or_else(HashMap::new, |subject| {
        HashMap::from([
            ("class".to_owned(), text(subject.class.word())),
            ("name".to_owned(), text(&subject.name)),
        ])
    });
    Entity::new(uid, attributes, teams).ok()
}

fn action(name: &str) -> Option<Entity> {
    let parents =
        prefixes(name).map(|prefix| ACTION.uid(prefix)).collect::<Option<HashSet<_>>>()?;
    Some(Entity::new_no_attrs(ACTION.uid(name)?, parents))
}

fn resource(case: &Case<'_>) -> Option<Entity> {
    let tenant = TENANT.uid(&case.request.tenant_id)?;
    let Some(id) = case.request.resource_id.as_deref() else {
        return Some(Entity::new_no_attrs(tenant, HashSet::new()));
    };
    let mut attributes = HashMap::new();
    if let Some(resource) = case.resource() {
        attributes.insert("kind".to_owned(), text(&resource.kind));
        attributes.insert("name".to_owned(), text(&resource.name));
        if let Some(sensitivity) = &resource.sensitivity {
            attributes.insert("sensitivity".to_owned(), text(sensitivity));
        }
    }
    Entity::new(RESOURCE.uid(id)?, attributes, HashSet::from([tenant])).ok()
}

fn context(case: &Case<'_>, candidate: &Candidate<'_>) -> Option<Context> {
    let request = case.request;
    let now = case.at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let mut members = vec![
        ("now", RestrictedExpression::new_datetime(now)),
        ("input", record(request.context.iter())?),
    ];
    let mut add = |name, word: Option<&str>| members.extend(word.map(|word| (name, text(word))));
    let declared = &candidate.declared;
    add("purpose", request.purpose.as_deref());
    add("jurisdiction", request.jurisdiction());
    add("currency", request.currency());
    add("effect_class", declared.effect_class.map(EffectClass::word));
    add("reversibility", declared.reversibility.map(Reversibility::word));
    add("risk_tier", declared.risk_tier.map(RiskTier::word));
    add("oversight", declared.required.map(OversightMode::word));
    add("delegation", candidate.delegation_id());
    let rollback = declared.rollback_available.map(RestrictedExpression::new_bool);
    members.extend(rollback.map(|value| ("rollback_available", value)));
    members.extend(request.amount().map(|amount| ("amount", decimal(amount))));
    Context::from_pairs(members.into_iter().map(|(name, value)| (name.to_owned(), value))).ok()
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

fn decimal(amount: Amount) -> RestrictedExpression {
    let written = amount.to_string();
    // Cedar's decimals have a point.
    let pointed = if written.contains('.') { written } else { written + ".0" };
    RestrictedExpression::new_decimal(pointed)
}

fn record<'v>(
    members: impl Iterator<Item = (&'v String, &'v Value)>,
) -> Option<RestrictedExpression> {
    let pairs = members.filter_map(|(name, value)| Some((name.clone(), expression(value)?)));
    RestrictedExpression::new_record(pairs).ok()
}

/// A JSON value in Cedar; nulls are absent.
fn expression(value: &Value) -> Option<RestrictedExpression> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(value) => number(value),
        Value::String(value) => text(value),
        Value::Array(items) => RestrictedExpression::new_set(items.iter().filter_map(expression)),
        Value::Object(members) => return record(members.iter()),
    })
}

/// What Cedar cannot hold becomes a text, so that comparing its size errs, and denies.
fn number(value: &Number) -> RestrictedExpression {
    match (value.as_i64(), Amount::from_number(value)) {
        (Some(whole), _) => RestrictedExpression::new_long(whole),
        (None, Ok(amount)) => decimal(amount),
        (None, Err(_)) => text(&value.to_string()),
    }
}
