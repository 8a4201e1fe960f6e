//! Fills in how a request reads.

use std::collections::{BTreeSet, HashSet};

use authority_crypto::sha256;
use authority_model::proto::{
    approval::{ApprovalFact, ApprovalPresentation, ApprovalTable, ApprovalTableRow},
    registry::ToolPresentation,
};
use prost::Message;
use serde_json::{Map, Value};

use crate::{
    amount::Amount,
    check::resolved,
    letters::mixed_letters,
    path::{ALWAYS, input, quoted, value_at},
};

/// The maximum number of characters of a value in a title.
const IN_TITLE: usize = 60;
/// The maximum number of characters of a text that is shown as a fact without a declaration. Longer
/// texts are shown as the agent's words.
const SHORT: usize = 200;
/// The maximum number of facts, rows and tables. An agent chooses how many a request has; more are
/// counted as not shown.
const MOST_FACTS: usize = 200;
const MOST_ROWS: usize = 200;
const MOST_TABLES: usize = 20;
const MOST_COLUMNS: usize = 20;
/// The maximum number of characters of a label made from a path.
const LABEL: usize = 60;

/// What a tool declares about its input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declaration {
    pub presentation: Option<ToolPresentation>,
    pub input_schema: Option<Map<String, Value>>,
    /// Whether the input is the field `arguments` of the context, not the whole context.
    pub is_in_arguments: bool,
}

/// Fills in a request in its normal form.
pub fn fill(request: &Map<String, Value>, declared: &Declaration) -> ApprovalPresentation {
    let empty = Map::new();
    let context = request.get("context").and_then(Value::as_object).unwrap_or(&empty);
    let named = |member: &str| request.get(member).and_then(Value::as_str).unwrap_or_default();
    let agent = named("subject").rsplit(':').next().unwrap_or_default();
    let mut filled = ApprovalPresentation {
        title: format!("{agent} wants to run {}", named("action")),
        ..ApprovalPresentation::default()
    };
    let filler = Filler { context, declared, input: input(context, declared.is_in_arguments) };
    match &declared.presentation {
        Some(presentation) => filler.declared(presentation, &mut filled),
        None => filler.all(&mut filled),
    }
    filled.mixed_letters = mixed_letters(&filled.title);
    filled
}

/// Returns the version of a presentation: `sha256:` and its digest.
pub fn version(filled: &ApprovalPresentation) -> String {
    format!("sha256:{}", hex::encode(sha256(&filled.encode_to_vec())))
}

struct Filler<'a> {
    context: &'a Map<String, Value>,
    declared: &'a Declaration,
    input: Option<&'a Map<String, Value>>,
}

impl<'a> Filler<'a> {
    fn declared(&self, presentation: &ToolPresentation, filled: &mut ApprovalPresentation) {
        if let Some(title) = self.title(presentation) {
            (filled.title, filled.declared_title) = (title, true);
        }
        let mut shown = HashSet::new();
        for fact in &presentation.facts {
            let Some(value) = self.value(&fact.path, &mut shown) else { continue };
            filled.facts.push(self::fact(&fact.path, &fact.label, fact.role.clone(), value));
        }
        for list in &presentation.lists {
            match self.input.and_then(|input| value_at(input, &list.path)) {
                None => {}
                Some(Value::Array(items)) => {
                    shown.insert(self.place(&list.path));
                    let table = table(&list.path, items, &list.columns, &mut filled.not_shown);
                    filled.lists.push(table);
                }
                Some(_) => {
                    let Some(value) = self.value(&list.path, &mut shown) else { continue };
                    filled.facts.push(self::fact(&list.path, &label(&list.path), None, value));
                }
            }
        }
        for path in &presentation.agent_words {
            let Some(value) = self.value(path, &mut shown) else { continue };
            filled.agent_words.push(self::fact(path, &label(path), None, value));
        }
        let mut leaves = Vec::new();
        self::leaves(self.context, "", &mut leaves);
        let is_shown = |leaf: &String| {
            let mut ends = leaf.match_indices('.').map(|(end, _)| end).chain([leaf.len()]);
            ends.any(|end| leaf.get(..end).is_some_and(|place| shown.contains(place)))
        };
        add(&mut filled.not_shown, leaves.iter().filter(|leaf| !is_shown(leaf)).count());
    }

    /// A path of the input as a path of the context.
    fn place(&self, path: &str) -> String {
        let is_own = self.input.is_some_and(|input| value_at(input, path).is_some());
        if self.declared.is_in_arguments && is_own {
            format!("arguments.{path}")
        } else {
            path.to_owned()
        }
    }

    fn found(&self, path: &str) -> Option<&'a Value> {
        let own = self.input.and_then(|input| value_at(input, path));
        let general = || self.context.get(path).filter(|_| ALWAYS.contains(&path));
        own.or_else(general).filter(|value| !value.is_null())
    }

    /// The amount with its currency, if the path is that of an amount.
    fn amount(&self, path: &str) -> Option<Amount> {
        if path != "amount" {
            return None;
        }
        let own = self.input.filter(|input| input.contains_key("amount"));
        Amount::of(own.unwrap_or(self.context))
    }

    /// The text of a value. `shown` gets the places that it covers.
    fn value(&self, path: &str, shown: &mut HashSet<String>) -> Option<String> {
        let value = self.found(path)?;
        shown.insert(self.place(path));
        if let Some(amount) = self.amount(path) {
            shown.insert(self.place("currency"));
            return Some(amount.plain());
        }
        Some(text(value))
    }

    /// The declared title. `None` if a field in it has no value.
    fn title(&self, presentation: &ToolPresentation) -> Option<String> {
        let mut title = String::new();
        for part in parts(&presentation.title)? {
            title.push_str(part.text);
            let Some(path) = part.path else { continue };
            if let Some(amount) = self.amount(path) {
                title.push_str(&amount.plain());
                continue;
            }
            let value = self.found(path)?;
            let is_free = value.is_string()
                && presentation.facts.iter().all(|fact| fact.path != path || fact.role.is_none());
            let line = one_line(&match value {
                Value::Object(_) | Value::Array(_) => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            if line.trim().is_empty() {
                return None;
            }
            if is_free && line.contains(' ') {
                title.extend(["“", &line.replace(['“', '”'], "\""), "”"]);
            } else {
                title.push_str(&line);
            }
        }
        Some(title)
    }

    /// All fields of the context, in the schema's order.
    fn all(&self, filled: &mut ApprovalPresentation) {
        let schema = self.declared.input_schema.as_ref();
        let own = schema.filter(|_| !self.declared.is_in_arguments);
        self.add_all(self.context, "", own, filled);
    }

    fn add_all(
        &self,
        fields: &Map<String, Value>,
        prefix: &str,
        schema: Option<&Map<String, Value>>,
        filled: &mut ApprovalPresentation,
    ) {
        let root = self.declared.input_schema.as_ref();
        let amount = if prefix.is_empty() { Amount::of(self.context) } else { None };
        for name in ordered(fields.keys(), root, schema) {
            let Some(value) = fields.get(name) else { continue };
            let path = format!("{prefix}{}", quoted(name));
            let inner = match (root, schema) {
                _ if self.declared.is_in_arguments && path == "arguments" => root,
                (Some(root), Some(schema)) => property(root, schema, name),
                _ => None,
            };
            match (value, &amount) {
                (_, Some(_)) if name == "currency" => {}
                (_, Some(amount)) if name == "amount" => {
                    filled.facts.push(fact(&path, "Amount", None, amount.plain()));
                }
                (Value::Object(fields), _) if !fields.is_empty() => {
                    self.add_all(fields, &format!("{path}."), inner, filled);
                }
                (Value::Array(items), _) if items.iter().any(Value::is_object) => {
                    self.add_table(&path, items, inner, filled);
                }
                (Value::String(words), _) if words.chars().count() > SHORT => {
                    let fact = fact(&path, &label(&path), None, words.clone());
                    put(fact, MOST_FACTS, &mut filled.agent_words, &mut filled.not_shown);
                }
                (value, _) => {
                    let fact = fact(&path, &label(&path), None, text(value));
                    put(fact, MOST_FACTS, &mut filled.facts, &mut filled.not_shown);
                }
            }
        }
    }

    fn add_table(
        &self,
        path: &str,
        items: &[Value],
        schema: Option<&Map<String, Value>>,
        filled: &mut ApprovalPresentation,
    ) {
        let root = self.declared.input_schema.as_ref();
        let of_items = schema.and_then(|schema| schema.get("items")?.as_object());
        let names: BTreeSet<&String> =
            items.iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
        let columns = ordered(names.into_iter(), root, of_items).into_iter().take(MOST_COLUMNS);
        let columns: Vec<String> = columns.map(|name| quoted(name)).collect();
        let table = table(path, items, &columns, &mut filled.not_shown);
        put(table, MOST_TABLES, &mut filled.lists, &mut filled.not_shown);
    }
}

fn put<T>(item: T, most: usize, list: &mut Vec<T>, not_shown: &mut i32) {
    if list.len() < most { list.push(item) } else { add(not_shown, 1) }
}

fn add(not_shown: &mut i32, count: usize) {
    *not_shown = not_shown.saturating_add(i32::try_from(count).unwrap_or(i32::MAX));
}

fn fact(path: &str, label: &str, role: Option<String>, value: String) -> ApprovalFact {
    ApprovalFact {
        path: path.to_owned(),
        label: label.to_owned(),
        role,
        mixed_letters: mixed_letters(&value),
        value,
    }
}

/// The text of a value. A text that begins or ends with a blank is in quotes.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && text.trim() == text => text.clone(),
        other => other.to_string(),
    }
}

/// A table of the items of a list. Rows and fields that it leaves out are counted.
fn table(path: &str, items: &[Value], columns: &[String], not_shown: &mut i32) -> ApprovalTable {
    let shown: HashSet<&str> = columns.iter().map(|column| outer(column)).collect();
    let fields = items.iter().filter_map(Value::as_object).flat_map(Map::keys);
    let hidden: HashSet<&String> =
        fields.filter(|name| !shown.contains(quoted(name).as_str())).collect();
    add(not_shown, hidden.len() + items.len().saturating_sub(MOST_ROWS));
    let row = |item: &Value| {
        let cell = |(number, column): (usize, &String)| match item {
            Value::Object(fields) => cell(fields, column),
            other if number == 0 => text(other),
            _ => String::new(),
        };
        ApprovalTableRow { cells: columns.iter().enumerate().map(cell).collect() }
    };
    ApprovalTable {
        path: path.to_owned(),
        label: label(path),
        columns: columns.iter().map(|column| label(column)).collect(),
        rows: items.iter().take(MOST_ROWS).map(row).collect(),
    }
}

fn cell(fields: &Map<String, Value>, column: &str) -> String {
    let by_name =
        || fields.iter().find(|(name, _)| quoted(name) == *column).map(|(_, value)| value);
    value_at(fields, column).or_else(by_name).map(text).unwrap_or_default()
}

/// The first name of a path, which may be quoted.
fn outer(column: &str) -> &str {
    if column.starts_with('"') { column } else { column.split('.').next().unwrap_or(column) }
}

/// The paths of all values in a context. A list is one value.
fn leaves(fields: &Map<String, Value>, prefix: &str, found: &mut Vec<String>) {
    for (name, value) in fields {
        let path = format!("{prefix}{}", quoted(name));
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                leaves(fields, &format!("{path}."), found);
            }
            Value::Null => {}
            _ => found.push(path),
        }
    }
}

/// The names in the schema's order: required fields in their order, then other fields by name, then
/// fields that the schema does not have, by name.
fn ordered<'n>(
    names: impl Iterator<Item = &'n String>,
    root: Option<&Map<String, Value>>,
    schema: Option<&Map<String, Value>>,
) -> Vec<&'n String> {
    let mut names: Vec<&String> = names.collect();
    let required: Vec<&str> = schema
        .and_then(|schema| schema.get("required")?.as_array())
        .map(|required| required.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let rank = |name: &str| {
        let place = required.iter().position(|own| *own == name).unwrap_or(usize::MAX);
        let is_known = place != usize::MAX
            || root.zip(schema).is_some_and(|(root, schema)| has_property(root, schema, name));
        (place, !is_known)
    };
    names.sort_by_cached_key(|name| (rank(name), (*name).clone()));
    names
}

/// How many references within a schema are followed.
const DEEPEST: usize = 16;

fn has_property(root: &Map<String, Value>, schema: &Map<String, Value>, name: &str) -> bool {
    let mut all = resolved(root, schema, DEEPEST);
    all.any(|schema| schema.get("properties").is_some_and(|all| all.get(name).is_some()))
}

fn property<'s>(
    root: &'s Map<String, Value>,
    schema: &'s Map<String, Value>,
    name: &str,
) -> Option<&'s Map<String, Value>> {
    let mut all = resolved(root, schema, DEEPEST);
    let found = all.find_map(|schema| schema.get("properties")?.get(name)?.as_object())?;
    resolved(root, found, DEEPEST).last()
}

/// A path as a readable label: `line_items` becomes `Line items`.
fn label(path: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for letter in path.chars().take(LABEL) {
        match letter {
            '.' | '_' | '-' => words.push(' '),
            '"' => {}
            letter if letter.is_uppercase() && was_lower => {
                words.push(' ');
                words.extend(letter.to_lowercase());
            }
            letter => words.push(letter),
        }
        was_lower = letter.is_lowercase();
    }
    let words = words.trim();
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A text on one line, cut at the maximum length.
fn one_line(text: &str) -> String {
    let line: String =
        text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.chars().count() <= IN_TITLE {
        return line;
    }
    line.chars().take(IN_TITLE).chain(['…']).collect()
}

/// A part of a title: a text, and the path of the field that follows it.
pub(crate) struct Part<'t> {
    pub(crate) text: &'t str,
    pub(crate) path: Option<&'t str>,
}

/// The parts of a title. `None` if its braces do not match.
pub(crate) fn parts(title: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = title;
    while let Some((text, after)) = rest.split_once('{') {
        let (path, after) = after.split_once('}')?;
        if text.contains('}') || path.contains('{') {
            return None;
        }
        parts.push(Part { text, path: Some(path) });
        rest = after;
    }
    if rest.contains('}') {
        return None;
    }
    parts.push(Part { text: rest, path: None });
    Some(parts)
}

#[cfg(test)]
mod tests {
    use authority_model::proto::registry::{PresentedFact, PresentedList};
    use serde_json::json;

    use super::*;

    fn request(context: &Value) -> Map<String, Value> {
        let request = json!({"subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
            "context": context});
        request.as_object().unwrap().clone()
    }

    fn presentation(title: &str) -> ToolPresentation {
        let fact = |path: &str, label: &str, role: Option<&str>| PresentedFact {
            path: path.to_owned(),
            label: label.to_owned(),
            role: role.map(str::to_owned),
        };
        ToolPresentation {
            title: title.to_owned(),
            facts: vec![
                fact("payee", "To", Some("payee")),
                fact("iban", "Account", Some("account")),
                fact("amount", "Amount", None),
            ],
            lists: vec![PresentedList {
                path: "line_items".to_owned(),
                columns: ["text", "net"].map(str::to_owned).to_vec(),
            }],
            agent_words: vec!["agent_note".to_owned()],
        }
    }

    fn declared(title: &str) -> Declaration {
        Declaration { presentation: Some(presentation(title)), ..Declaration::default() }
    }

    fn facts(filled: &ApprovalPresentation) -> Vec<(&str, &str)> {
        filled.facts.iter().map(|fact| (fact.label.as_str(), fact.value.as_str())).collect()
    }

    fn title(title: &str, context: &Value) -> String {
        fill(&request(context), &declared(title)).title
    }

    #[test]
    fn a_declaration_is_filled_in() {
        let context = json!({"amount": 12400, "currency": "EUR", "payee": "Müller & Söhne",
            "iban": "DE89", "agent_note": "approved by CFO", "cost_centre": 7, "empty": null,
            "line_items": [{"text": "Pipes", "net": 400}, {"net": 12000, "tax": 19}, "odd"]});
        let filled = fill(&request(&context), &declared("Pay {amount} to {payee}"));
        assert_eq!(filled.title, "Pay 12 400.00 EUR to Müller & Söhne");
        assert!(filled.declared_title);
        assert_eq!(
            facts(&filled),
            [("To", "Müller & Söhne"), ("Account", "DE89"), ("Amount", "12 400.00 EUR")]
        );
        assert_eq!(filled.facts[0].role.as_deref(), Some("payee"));
        let table = &filled.lists[0];
        assert_eq!(
            (table.label.as_str(), &*table.columns),
            ("Line items", &["Text".to_owned(), "Net".to_owned()][..])
        );
        let rows: Vec<_> = table.rows.iter().map(|row| row.cells.join("|")).collect();
        assert_eq!(rows, ["Pipes|400", "|12000", "odd|"]);
        assert_eq!(filled.agent_words[0].value, "approved by CFO");
        // The cost centre, and the tax of the items.
        assert_eq!(filled.not_shown, 2);
    }

    #[test]
    fn a_title_never_has_an_empty_place() {
        let general = "invoice-bot wants to run payment.execute";
        for context in [
            json!({"amount": 5}),
            json!({"amount": 5, "payee": null}),
            json!({"amount": 5, "payee": " "}),
            json!({"amount": 5, "payee": ["A"]}),
            json!({"payee": "A"}),
        ] {
            assert_eq!(title("Pay {amount} to {payee}", &context), general, "{context}");
        }
        // An amount that is no number, or has another currency's words, is shown as it is.
        assert_eq!(title("Pay {amount}", &json!({"amount": "5 EUR"})), "Pay “5 EUR”");
    }

    #[test]
    fn a_value_in_a_title_is_short_on_one_line_and_marked_where_it_is_free_text() {
        let payee = "A".repeat(61);
        let shown = title("To {payee}", &json!({"payee": payee}));
        assert_eq!(shown, format!("To {}…", "A".repeat(60)));
        assert_eq!(title("To {payee}", &json!({"payee": "A\nB"})), "To A B");
        assert_eq!(title("{text}!", &json!({"text": "a ”b“"})), "“a \"b\"”!");
        assert_eq!(title("{text}!", &json!({"text": "RE-1"})), "RE-1!");
        let filled = fill(&request(&json!({"payee": "N\u{43e}rd"})), &declared("To {payee}"));
        assert_eq!(
            (filled.mixed_letters.as_str(), filled.facts[0].mixed_letters.as_str()),
            ("\u{43e}", "\u{43e}")
        );
    }

    #[test]
    fn without_a_declaration_all_fields_are_shown_in_the_schemas_order() {
        let long = "x".repeat(201);
        let context = json!({"zeta": "1", "amount": 5, "currency": "JPY", "payee": "A",
            "a": true, "note": long, "supplier": {"vatId": "V", "iban": "I"}, "none": null,
            "tags": ["x", "y"], "lines": [{"b": 1, "a": {"c": 2}}], "blank": " a "});
        let filled = fill(&request(&context), &Declaration::default());
        assert_eq!(filled.title, "invoice-bot wants to run payment.execute");
        assert!(!filled.declared_title);
        let by_name = [
            ("A", "true"),
            ("Amount", "5 JPY"),
            ("Blank", "\" a \""),
            ("None", "null"),
            ("Payee", "A"),
            ("Supplier iban", "I"),
            ("Supplier vat id", "V"),
            ("Tags", "[\"x\",\"y\"]"),
            ("Zeta", "1"),
        ];
        assert_eq!(facts(&filled), by_name);
        assert_eq!(filled.agent_words[0].value, long);
        assert_eq!(filled.lists[0].columns, ["A", "B"]);
        assert_eq!(filled.lists[0].rows[0].cells, ["{\"c\":2}", "1"]);
        assert_eq!(filled.not_shown, 0);
        let schema = json!({"required": ["payee", "amount"], "properties": {
            "zeta": {}, "payee": {}, "amount": {}, "supplier": {"required": ["vatId"]},
            "lines": {"items": {"required": ["b"]}}}});
        let declared =
            Declaration { input_schema: schema.as_object().cloned(), ..Declaration::default() };
        let filled = fill(&request(&context), &declared);
        let labels: Vec<_> = filled.facts.iter().map(|fact| fact.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "Payee",
                "Amount",
                "Supplier vat id",
                "Supplier iban",
                "Zeta",
                "A",
                "Blank",
                "None",
                "Tags"
            ]
        );
        assert_eq!(filled.lists[0].columns, ["B", "A"]);
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let mut context = json!({"lines": vec![json!({"a": 1}); 205]});
        for number in 0..210 {
            context[format!("m{number}")] = json!(number);
        }
        let filled = fill(&request(&context), &Declaration::default());
        assert_eq!(
            (filled.facts.len(), filled.lists[0].rows.len(), filled.not_shown),
            (200, 200, 15)
        );
    }

    #[test]
    fn paths_are_within_the_tools_own_input() {
        let declared = Declaration { is_in_arguments: true, ..declared("Pay {amount} to {payee}") };
        let context = json!({"amount": 5, "currency": "EUR", "payee": "outer", "arguments": {"payee": "inner"}});
        let filled = fill(&request(&context), &declared);
        assert_eq!(filled.title, "Pay 5.00 EUR to inner");
        assert_eq!(filled.not_shown, 1, "the outer payee");
        // An own amount is shown, and the other one is counted.
        let context = json!({"amount": 5, "arguments": {"amount": 7, "payee": "A"}});
        let filled = fill(&request(&context), &declared);
        assert_eq!((filled.title.as_str(), filled.not_shown), ("Pay 7.00 to A", 1));
    }

    #[test]
    fn the_version_is_that_of_what_is_shown() {
        let request = request(&json!({"payee": "A", "amount": 5}));
        let of = |declared: &Declaration| version(&fill(&request, declared));
        let one = of(&declared("Pay {payee}"));
        assert!(one.starts_with("sha256:") && one.len() == 71);
        assert_eq!(one, of(&declared("Pay {payee}")));
        assert_ne!(one, of(&declared("Send {payee}")));
        assert_ne!(one, of(&Declaration::default()));
    }
}
