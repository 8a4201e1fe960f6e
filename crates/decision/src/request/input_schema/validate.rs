//! Checks a value against a schema, without allocating if it is valid.

use serde_json::{Map, Number, Value};

use super::{
    compile::Compiled,
    json::Json,
    node::{Id, Node, is_same},
    violation::{At, Validity},
};

/// Standard fields of a context. A schema that doesn't name them still accepts them.
const OWN: [&str; 3] = ["amount", "currency", "jurisdiction"];

impl Compiled {
    pub(super) fn judge(&self, value: Json<'_>, at: &At<'_>) -> Validity {
        self.apply(0, value, at)
    }

    fn apply(&self, id: Id, value: Json<'_>, at: &At<'_>) -> Validity {
        let Some(node) = self.nodes.get(id) else { return at.broken(|| "of no schema".to_owned()) };
        if node.never {
            return at.broken(|| "that there is no such member".to_owned());
        }
        if let Some(types) = node.types.filter(|types| !types.has(value)) {
            return at.broken(|| format!("`type` {}", types.words()));
        }
        if node.constant.as_ref().is_some_and(|constant| !is_same(constant, value)) {
            return at.broken(|| "`const`".to_owned());
        }
        if node.among.as_ref().is_some_and(|among| !among.has(value)) {
            return at.broken(|| "`enum`".to_owned());
        }
        match value {
            Json::Number(number) => of_number(node, number, at)?,
            Json::Text(text) => of_text(node, text, at)?,
            Json::Array(items) => self.of_items(node, items, at)?,
            Json::Object(members) => self.of_members(node, members, at)?,
            Json::Null | Json::Bool(_) => {}
        }
        for other in &node.all {
            self.apply(*other, value, at)?;
        }
        let untold = at.untold();
        if !node.any.is_empty()
            && node.any.iter().all(|one| self.apply(*one, value, &untold).is_err())
        {
            return at.broken(|| "`anyOf`".to_owned());
        }
        Ok(())
    }

    fn of_items(&self, node: &Node, items: &[Value], at: &At<'_>) -> Validity {
        if let Some(least) = node.min_items.filter(|least| items.len() < *least) {
            return at.broken(|| format!("`minItems` {least}"));
        }
        if let Some(most) = node.max_items.filter(|most| items.len() > *most) {
            return at.broken(|| format!("`maxItems` {most}"));
        }
        let Some(schema) = node.items else { return Ok(()) };
        for (place, item) in items.iter().enumerate() {
            self.apply(schema, item.into(), &at.item(place))?;
        }
        Ok(())
    }

    fn of_members(&self, node: &Node, members: &Map<String, Value>, at: &At<'_>) -> Validity {
        for name in &node.required {
            if members.get(name).is_none_or(Value::is_null) {
                return at.member(name).broken(|| "`required`".to_owned());
            }
        }
        if node.properties.is_empty() && node.additional.is_none() {
            return Ok(());
        }
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            if let Some(schema) = node.property(name) {
                self.apply(schema, value.into(), &at.member(name))?;
            } else if let Some(schema) = node.additional
                && !(at.is_context() && OWN.contains(&name.as_str()))
            {
                let at = at.member(name);
                if self.nodes.get(schema).is_some_and(|node| node.never) {
                    return at.broken(|| "`additionalProperties` false".to_owned());
                }
                self.apply(schema, value.into(), &at)?;
            }
        }
        Ok(())
    }
}

/// Whether a number is within a bound.
type Holds = fn(f64, f64) -> bool;

fn of_number(node: &Node, number: &Number, at: &At<'_>) -> Validity {
    // A double represents every number of a context exactly, which makes the comparisons exact.
    let Some(number) = number.as_f64() else { return at.broken(|| "of numbers".to_owned()) };
    let rules: [(&str, Option<f64>, Holds); 4] = [
        ("minimum", node.minimum, |number, bound| number >= bound),
        ("maximum", node.maximum, |number, bound| number <= bound),
        ("exclusiveMinimum", node.exclusive_minimum, |number, bound| number > bound),
        ("exclusiveMaximum", node.exclusive_maximum, |number, bound| number < bound),
    ];
    for (keyword, bound, holds) in rules {
        if let Some(bound) = bound.filter(|bound| !holds(number, *bound)) {
            return at.broken(|| format!("`{keyword}` {bound}"));
        }
    }
    Ok(())
}

fn of_text(node: &Node, text: &str, at: &At<'_>) -> Validity {
    // Lengths count characters. A text never has more characters than bytes.
    if let Some(least) =
        node.min_length.filter(|least| text.len() < *least || is_shorter(text, *least))
    {
        return at.broken(|| format!("`minLength` {least}"));
    }
    if let Some(most) = node.max_length
        && text.len() > most
        && !is_shorter(text, most.saturating_add(1))
    {
        return at.broken(|| format!("`maxLength` {most}"));
    }
    if node.pattern.as_ref().is_some_and(|pattern| !pattern.matches(text)) {
        return at.broken(|| "`pattern`".to_owned());
    }
    Ok(())
}

fn is_shorter(text: &str, length: usize) -> bool {
    text.chars().take(length).count() < length
}
