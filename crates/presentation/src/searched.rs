//! The values by which decisions are found: of the declared roles, and the amount with its currency.

use serde_json::{Map, Value};

use crate::{
    amount::Amount,
    roles::{ROLES, RolePath, compared, has_value, role_values},
    typed_amount::read,
};

/// The word for the amount, which needs no declaration.
pub const AMOUNT: &str = "amount";

/// A role and a value, in the form in which values are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchedFact {
    pub role: String,
    pub value: String,
}

impl SearchedFact {
    /// Returns the facts of a request, each once. Empty if its tools declare no role.
    pub fn of_request<'p>(
        paths: impl ExactSizeIterator<Item = &'p RolePath>,
        context: &Map<String, Value>,
    ) -> Vec<Self> {
        if paths.len() == 0 {
            return Vec::new();
        }
        let values = role_values(paths, context).into_iter();
        let amounts = amounts(context).into_iter().map(|amount| (AMOUNT.to_owned(), amount));
        values.chain(amounts).map(|(role, value)| Self { role, value }).collect()
    }

    /// Returns the facts that a person may mean by a text: its value for each role, and the amounts
    /// that it can be read as. With `role`, only facts of this role.
    pub fn of_text(text: &str, role: Option<&str>) -> Vec<Self> {
        let of_role = |role: &'static str| (role, compared(role, text));
        let values = ROLES.into_iter().map(of_role).filter(|(_, value)| !value.is_empty());
        let amounts = read(text).into_iter().map(|amount| (AMOUNT, amount.compared()));
        let facts = values.chain(amounts).filter(|(own, _)| role.is_none_or(|role| role == *own));
        facts.map(|(role, value)| Self { role: role.to_owned(), value }).collect()
    }

    /// Whether the request with this context contains the value.
    pub fn is_in(&self, context: &Map<String, Value>) -> bool {
        match self.role.as_str() {
            AMOUNT => amounts(context).contains(&self.value),
            role => has_value(role, &self.value, context),
        }
    }
}

/// The amounts of a request in compared form: of the context, and of the tool's own input if that is
/// its field `arguments`.
fn amounts(context: &Map<String, Value>) -> Vec<String> {
    let own = context.get("arguments").and_then(Value::as_object);
    let found = [Some(context), own].into_iter().flatten().filter_map(Amount::of);
    let mut amounts: Vec<String> = found.map(|amount| amount.compared()).collect();
    amounts.dedup();
    amounts
}

#[cfg(test)]
mod tests {
    use authority_model::proto::registry::{PresentedFact, Tool, ToolPresentation};
    use serde_json::json;

    use super::*;
    use crate::roles::role_paths;

    fn paths() -> Vec<RolePath> {
        let fact = |path: &str, role: &str| PresentedFact {
            path: path.to_owned(),
            label: "X".to_owned(),
            role: Some(role.to_owned()),
            ..PresentedFact::default()
        };
        let facts = vec![fact("payee", "payee"), fact("iban", "account")];
        let presentation = Some(ToolPresentation { facts, ..ToolPresentation::default() });
        role_paths(&Tool { presentation, ..Tool::default() })
    }

    fn fact(role: &str, value: &str) -> SearchedFact {
        SearchedFact { role: role.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn a_request_has_declared_values_and_its_amount() {
        let context = json!({"payee": "Müller AG", "iban": "DE89 3704", "note": "x", "amount": 12400,
            "currency": "EUR"});
        let (paths, context) = (paths(), context.as_object().unwrap());
        let facts = SearchedFact::of_request(paths.iter(), context);
        assert_eq!(
            facts,
            [
                fact("account", "de893704"),
                fact("payee", "müller ag"),
                fact("amount", "124000000 EUR")
            ]
        );
        assert!(SearchedFact::of_request([].iter(), context).is_empty());
        assert!(facts.iter().all(|fact| fact.is_in(context)));
        for other in [fact("payee", "müller"), fact("amount", "124000000 CHF")] {
            assert!(!other.is_in(context), "{other:?}");
        }
    }

    #[test]
    fn a_typed_text_has_the_form_of_each_role() {
        let facts = SearchedFact::of_text(" de89  3704", None);
        assert_eq!(facts[0], fact("payee", "de89 3704"));
        assert_eq!(facts[1], fact("account", "de893704"));
        assert_eq!(facts.len(), ROLES.len());
        let amount = SearchedFact::of_text("12,400.00 EUR", Some(AMOUNT));
        assert_eq!(amount, [fact("amount", "124000000 EUR")]);
        assert!(SearchedFact::of_text("  ", None).is_empty());
    }
}
