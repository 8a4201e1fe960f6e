//! The Cedar request and entities of one decision, which policies can refer to.
//!
//! They are built from the values of `cedar-policy-core`. The wrapper crate `cedar-policy` converts
//! each value to an expression, parses and evaluates the name of each extension function, and
//! checks a hierarchy of one level for cycles. That took a quarter of a decision's CPU time.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use cedar_policy_core::{
    ast::{
        Context, Eid, Entity, EntityType, EntityUID, EntityUIDEntry, ExtensionFunction, Name,
        PartialValue, Request, Value,
    },
    entities::{Entities, NoEntitiesSchema, TCComputation},
    evaluator::Evaluator,
    extensions::Extensions,
};
use chrono::{Datelike, SecondsFormat, Timelike};
use serde_json::{Map, Number, Value as Json};

use crate::{
    authority::{candidate::Candidate, case::Case, input_types::InputTypes},
    facts::{gate::Effective, shared_entities::RequestEntities},
    pattern::prefixes,
    policy::validation::InputType,
    request::{amount::Amount, input_schema::is_whole, jurisdiction},
};

/// The Cedar view of one case.
pub(crate) struct CedarRequest {
    entities: Arc<RequestEntities>,
    /// The fields of the context that do not depend on declarations.
    members: Attributes,
}

/// A type name, parsed once by Cedar.
struct Kind(LazyLock<Option<EntityType>>);

impl Kind {
    fn uid(&self, id: &str) -> Option<EntityUID> {
        let kind = self.0.as_ref()?.clone();
        Some(EntityUID::from_components(kind, Eid::new(id), None))
    }
}

static PRINCIPAL: Kind = Kind(LazyLock::new(|| "Svc::Principal".parse().ok()));
static TEAM: Kind = Kind(LazyLock::new(|| "Svc::Team".parse().ok()));
static ACTION: Kind = Kind(LazyLock::new(|| "Svc::Action".parse().ok()));
static RESOURCE: Kind = Kind(LazyLock::new(|| "Svc::Resource".parse().ok()));
static TENANT: Kind = Kind(LazyLock::new(|| "Svc::Tenant".parse().ok()));

/// An extension's constructor from text, looked up once.
struct Constructor(LazyLock<Option<&'static ExtensionFunction>>);

impl Constructor {
    fn of(&self, text: &str) -> Option<Value> {
        match (*self.0)?.call(&[Value::from(text)]) {
            Ok(PartialValue::Value(value)) => Some(value),
            Ok(PartialValue::Residual(_)) | Err(_) => None,
        }
    }
}

static DECIMAL: Constructor = Constructor(LazyLock::new(|| function("decimal")));
static DATETIME: Constructor = Constructor(LazyLock::new(|| function("datetime")));

fn function(name: &str) -> Option<&'static ExtensionFunction> {
    Extensions::all_available().func(&Name::parse_unqualified_name(name).ok()?).ok()
}

impl CedarRequest {
    /// Builds the request with the context fields for which `reads` returns true.
    ///
    /// Returns `None` if Cedar refuses a part of it. Policies can then not be evaluated.
    pub(crate) fn of(
        case: &Case<'_>,
        candidate: &Candidate<'_>,
        reads: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let shared = &case.gathered.entities;
        let entities = shared.get_or_make(texts(case), || entities(case))?;
        Some(Self { entities, members: members(case, candidate, reads)? })
    }

    /// Returns an evaluator of statements for this declaration.
    pub(crate) fn evaluator(&self, declared: Effective) -> Evaluator<'_> {
        let declared = declared_members(declared).into_iter();
        let declared = declared.filter_map(|(name, value)| Some((name, value?)));
        let members = self.members.iter().cloned().chain(declared);
        let members = members.map(|(name, value)| (name.into(), value));
        let context = Context::Value(Arc::new(members.collect()));
        let RequestEntities { scope, entities } = &*self.entities;
        let [principal, action, resource] = scope.clone();
        let request = Request::new_unchecked(principal, action, resource, Some(context));
        Evaluator::new(request, entities, Extensions::all_available())
    }
}

/// Returns everything that [`entities`] depends on: nine texts, then the teams.
fn texts<'a>(case: &Case<'a>) -> impl Iterator<Item = Option<&'a str>> + Clone {
    let (request, subject, resource) = (case.request, case.subject(), case.resource());
    let texts = [
        Some(request.tenant_id.as_str()),
        Some(request.subject.as_str()),
        subject.map(|subject| subject.class.word()),
        subject.map(|subject| subject.name.as_str()),
        Some(request.action.as_str()),
        request.resource_id.as_deref(),
        resource.map(|resource| resource.kind.as_str()),
        resource.map(|resource| resource.name.as_str()),
        resource.and_then(|resource| resource.sensitivity.as_deref()),
    ];
    texts.into_iter().chain(case.teams().map(Some))
}

fn entities(case: &Case<'_>) -> Option<RequestEntities> {
    let entities = [principal(case)?, action(&case.request.action)?, resource(case)?];
    let scope = entities.each_ref().map(|entity| EntityUIDEntry::known(entity.uid().clone(), None));
    let entities = Entities::from_entities(
        entities,
        None::<&NoEntitiesSchema>,
        // Entities do not have indirect ancestors.
        TCComputation::AssumeAlreadyComputed,
        Extensions::all_available(),
    );
    Some(RequestEntities { scope, entities: entities.ok()? })
}

/// Returns the fields of a declaration, each with the name that it has in the context.
fn declared_members(declared: Effective) -> [(&'static str, Option<Value>); 5] {
    [
        ("effect_class", declared.effect_class.map(|class| class.word().into())),
        ("reversibility", declared.reversibility.map(|reversibility| reversibility.word().into())),
        ("rollback_available", declared.rollback_available.map(Value::from)),
        ("risk_tier", declared.risk_tier.map(|tier| tier.word().into())),
        ("oversight", declared.required.map(|mode| mode.word().into())),
    ]
}

/// Keeps only the fields of a declaration that policies read.
pub(crate) fn as_read(declared: Effective, reads: impl Fn(&str) -> bool) -> Effective {
    Effective {
        effect_class: declared.effect_class.filter(|_| reads("effect_class")),
        reversibility: declared.reversibility.filter(|_| reads("reversibility")),
        rollback_available: declared.rollback_available.filter(|_| reads("rollback_available")),
        risk_tier: declared.risk_tier.filter(|_| reads("risk_tier")),
        required: declared.required.filter(|_| reads("oversight")),
    }
}

/// Whether policies read any field of a declaration.
pub(crate) fn reads_declared(reads: impl Fn(&str) -> bool) -> bool {
    declared_members(Effective::default()).iter().any(|(name, _)| reads(name))
}

type Attributes = Vec<(&'static str, Value)>;

fn entity(uid: EntityUID, attributes: Attributes, parents: HashSet<EntityUID>) -> Entity {
    let attributes =
        attributes.into_iter().map(|(name, value)| (name.into(), PartialValue::Value(value)));
    Entity::new_with_attr_partial_value(uid, attributes, HashSet::new(), parents, [])
}

fn principal(case: &Case<'_>) -> Option<Entity> {
    let uid = PRINCIPAL.uid(&case.request.subject)?;
    let teams = case.teams().map(|team| TEAM.uid(team)).collect::<Option<_>>()?;
    let attributes = case.subject().map_or_else(Vec::new, |subject| {
        vec![("class", subject.class.word().into()), ("name", subject.name.as_str().into())]
    });
    Some(entity(uid, attributes, teams))
}

fn action(name: &str) -> Option<Entity> {
    let parents = prefixes(name).map(|prefix| ACTION.uid(prefix)).collect::<Option<_>>()?;
    Some(entity(ACTION.uid(name)?, Vec::new(), parents))
}

fn resource(case: &Case<'_>) -> Option<Entity> {
    let tenant = TENANT.uid(&case.request.tenant_id)?;
    let Some(id) = case.request.resource_id.as_deref() else {
        return Some(entity(tenant, Vec::new(), HashSet::new()));
    };
    let attributes = case.resource().map_or_else(Vec::new, |resource| {
        let sensitivity = resource.sensitivity.as_deref();
        let always =
            [("kind", resource.kind.as_str().into()), ("name", resource.name.as_str().into())];
        let sensitivity = sensitivity.map(|word| ("sensitivity", word.into()));
        always.into_iter().chain(sensitivity).collect()
    });
    Some(entity(RESOURCE.uid(id)?, attributes, HashSet::from([tenant])))
}

fn members(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    reads: impl Fn(&str) -> bool,
) -> Option<Attributes> {
    let request = case.request;
    let mut members = Attributes::new();
    if reads("now") {
        let now = case.asked_at.to_rfc3339_opts(SecondsFormat::Millis, true);
        members.push(("now", DATETIME.of(&now)?));
    }
    if reads("local") {
        members.push(("local", local(case)?));
    }
    if reads("input") {
        let types = InputTypes::of(case);
        let kind = |name: &str| types.get(name).map(|member| &member.kind);
        members.push(("input", record(&request.context, &kind)?));
    }
    if let Some(amount) = request.amount().filter(|_| reads("amount")) {
        members.push(("amount", decimal(amount)?));
    }
    let words = [
        ("purpose", request.purpose.as_deref()),
        ("jurisdiction", request.jurisdiction().map(jurisdiction::country)),
        ("subdivision", request.jurisdiction().and_then(jurisdiction::subdivision)),
        ("currency", request.currency()),
        ("delegation", candidate.links().first().map(|link| link.line())),
    ];
    let read = words.into_iter().filter(|(name, _)| reads(name));
    members.extend(read.filter_map(|(name, word)| Some((name, word?.into()))));
    Some(members)
}

/// Returns the time of the request in the tenant's zone, if its offset is known.
fn local(case: &Case<'_>) -> Option<Value> {
    let at = case.local_time()?;
    let members = [
        ("weekday", Value::from(i64::from(at.weekday().number_from_monday()))),
        ("date", Value::from(at.format("%Y-%m-%d").to_string())),
        ("hour", Value::from(i64::from(at.hour()))),
        ("minute", Value::from(i64::from(at.minute()))),
    ];
    Some(Value::record(members, None))
}

fn decimal(amount: Amount) -> Option<Value> {
    let written = amount.to_string();
    // Cedar's decimals need a point.
    DECIMAL.of(&if written.contains('.') { written } else { written + ".0" })
}

/// Builds a record. `kind` returns the types of its declared fields.
fn record<'t>(
    members: &Map<String, Json>,
    kind: &dyn Fn(&str) -> Option<&'t InputType>,
) -> Option<Value> {
    let pairs = members.iter().filter(|(_, value)| !value.is_null());
    let pairs = pairs.map(|(name, json)| Some((name.as_str(), value(json, kind(name))?)));
    Some(Value::record(pairs.collect::<Option<Vec<_>>>()?, None))
}

/// Converts a JSON value to Cedar.
///
/// Leaves out nulls in lists and objects. Returns `None` for a null, or if Cedar refuses a value.
fn value(json: &Json, declared: Option<&InputType>) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) if declared == Some(&InputType::Decimal) => {
            return Amount::from_number(number).ok().map_or_else(|| self::number(number), decimal);
        }
        Json::Number(number) if declared == Some(&InputType::Integer) && is_whole(number) => {
            return whole(number).map_or_else(|| self::number(number), |whole| Some(whole.into()));
        }
        Json::Number(number) => return self::number(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => {
            let of = match declared {
                Some(InputType::Set(of)) => Some(&**of),
                _ => None,
            };
            let items = items.iter().filter(|item| !item.is_null()).map(|item| value(item, of));
            Value::set(items.collect::<Option<Vec<_>>>()?, None)
        }
        Json::Object(members) => {
            let of = match declared {
                Some(InputType::Record(of)) => Some(of),
                _ => None,
            };
            let kind = |name: &str| of?.get(name).map(|member| &member.kind);
            return record(members, &kind);
        }
    })
}

/// Parses a number without a fraction, in any notation.
fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let whole = number.as_f64().filter(|double| double.fract() == 0.0)?;
        // Numbers in a context stay within 2^53.
        whole.to_string().parse().ok()
    })
}

/// Converts a number. Returns a string if Cedar cannot represent the number.
///
/// A policy that compares the string with a number then fails, which denies the request.
fn number(number: &Number) -> Option<Value> {
    match (number.as_i64(), Amount::from_number(number)) {
        (Some(whole), _) => Some(Value::from(whole)),
        (None, Ok(amount)) => decimal(amount),
        (None, Err(_)) => Some(Value::from(number.to_string())),
    }
}
