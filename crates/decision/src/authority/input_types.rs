//! Checks a request's context against the types that policies rely on.

use serde_json::{Map, Value};

use super::case::Case;
use crate::{
    policy::validation::{ContextSchema, InputType, Member, Members},
    request::{
        amount::Amount,
        input_schema::{
            is_whole,
            violation::{At, Validity},
        },
    },
};

/// The fields of an action's input, as the tenant declares them or as the action's tools agree.
#[derive(Clone, Copy)]
pub(crate) struct InputTypes<'a> {
    action: &'a str,
    by_tenant: Option<&'a ContextSchema>,
    by_tools: Option<&'a Members>,
}

impl<'a> InputTypes<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let tenant = case.gathered.tenant.as_deref();
        Self {
            action: &case.request.action,
            by_tenant: tenant.and_then(|tenant| tenant.context_schema.as_deref()),
            by_tools: case.gathered.input_types.as_deref(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Member> {
        self.of_tenant(name).or_else(|| self.by_tools?.get(name))
    }

    fn of_tenant(&self, name: &str) -> Option<&'a Member> {
        self.by_tenant?.member(self.action, name)
    }

    /// Whether the fields that the tenant declares have the declared types or, if optional, are
    /// absent.
    pub(crate) fn hold_by_tenant(&self, context: &Map<String, Value>, at: &At<'_>) -> Validity {
        let Some(declared) = self.by_tenant else { return Ok(()) };
        if !declared.is_readable() {
            return at.broken(|| "of a `context_schema` that cannot be read".to_owned());
        }
        let mut members = declared.declared(self.action);
        members.try_for_each(|(name, member)| member_holds(name, member, context, at))
    }

    /// Checks the fields that tools declare and the tenant doesn't.
    pub(crate) fn hold_by_tools(&self, context: &Map<String, Value>, at: &At<'_>) -> Validity {
        let members = self.by_tools.into_iter().flatten();
        let mut own = members.filter(|(name, _)| self.of_tenant(name).is_none());
        own.try_for_each(|(name, member)| member_holds(name, member, context, at))
    }
}

fn member_holds(name: &str, member: &Member, within: &Map<String, Value>, at: &At<'_>) -> Validity {
    let at = at.member(name);
    match within.get(name).filter(|value| !value.is_null()) {
        Some(value) => kind_holds(&member.kind, value, &at),
        None if member.required => at.broken(|| "`required`".to_owned()),
        None => Ok(()),
    }
}

fn kind_holds(kind: &InputType, value: &Value, at: &At<'_>) -> Validity {
    match (kind, value) {
        (InputType::Boolean, Value::Bool(_)) | (InputType::String, Value::String(_)) => Ok(()),
        (InputType::Integer, Value::Number(number)) if is_whole(number) => Ok(()),
        (InputType::Decimal, Value::Number(number)) if Amount::from_number(number).is_ok() => {
            Ok(())
        }
        (InputType::Set(of), Value::Array(items)) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(place, item)| kind_holds(of, item, &at.item(place)))
        }
        (InputType::Record(of), Value::Object(members)) => {
            let mut of = of.iter();
            of.try_for_each(|(name, member)| member_holds(name, member, members, at))
        }
        _ => at.broken(|| format!("`type` {}", word(kind))),
    }
}

const fn word(kind: &InputType) -> &'static str {
    match kind {
        InputType::Boolean => "boolean",
        InputType::Integer => "integer",
        InputType::Decimal => "decimal: a number of at most 4 decimals",
        InputType::String => "string",
        InputType::Set(_) => "set",
        InputType::Record(_) => "object",
    }
}
