//! Fills in how a request reads.

use std::collections::{BTreeSet, HashSet};

use authority_crypto::sha256;
use authority_model::proto::{
    approval::{ApprovalFact, ApprovalPresentation, ApprovalTitle},
    registry::{PresentedFact, ToolPresentation},
};
use prost::Message;
use serde_json::{Map, Value};

use crate::{
    amount::Amount,
    label::label,
    letters::mixed_letters,
    path::{ALWAYS, input, is_covered, leaves, quoted, value_at},
    schema::resolved,
    table::{table, text},
    texts as t,
    title::{self, in_title},
};

/// The maximum number of characters of a text that is shown as a fact without a declaration. Longer
/// texts are shown as the agent's words.
const SHORT: usize = 200;
/// The maximum number of facts and tables. An agent chooses how many a request has; more are counted
/// as not shown.
const MOST_FACTS: usize = 200;
const MOST_TABLES: usize = 20;
/// The maximum number of columns that have their own name. The values of further ones share a column.
const MOST_COLUMNS: usize = 20;

/// The action of a coding agent that runs a shell command, and the path of the command. Without a
/// declaration, the command is the first fact, whole and in one block.
const SHELL: (&str, &str) = ("code.bash", "arguments.command");

/// A tool's declaration of its input.
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
    let general = ApprovalPresentation {
        title: t::wants_to_run(agent, named("action")),
        ..ApprovalPresentation::default()
    };
    let mut filled = general.clone();
    let filler = Filler {
        context,
        declared,
        input: input(context, declared.is_in_arguments),
        is_shell: named("action") == SHELL.0,
    };
    match &declared.presentation {
        Some(presentation) => {
            filler.declared(presentation, &mut filled);
            // If no declared path has a value, for example because `input_at` is wrong, people would
            // see less than without a declaration. The declared title is not for fields that an
            // agent chose.
            if declares_paths(presentation) && shows_nothing(&filled) {
                filled = general;
                filler.all(&mut filled);
            }
        }
        None => filler.all(&mut filled),
    }
    filled.mixed_letters = mixed_letters(&format!("{} {}", filled.title, filled.decline_title));
    filled
}

fn declares_paths(presentation: &ToolPresentation) -> bool {
    let ToolPresentation { facts, lists, agent_words, .. } = presentation;
    !(facts.is_empty() && lists.is_empty() && agent_words.is_empty())
}

fn shows_nothing(filled: &ApprovalPresentation) -> bool {
    filled.facts.is_empty() && filled.lists.is_empty() && filled.agent_words.is_empty()
}

/// Returns the version of a presentation: `sha256:` and its digest.
pub fn version(filled: &ApprovalPresentation) -> String {
    format!("sha256:{}", hex::encode(sha256(&filled.encode_to_vec())))
}

struct Filler<'a> {
    context: &'a Map<String, Value>,
    declared: &'a Declaration,
    input: Option<&'a Map<String, Value>>,
    /// Whether the request is for a shell command of a coding agent.
    is_shell: bool,
}

impl<'a> Filler<'a> {
    fn declared(&self, presentation: &ToolPresentation, filled: &mut ApprovalPresentation) {
        self.titles(presentation, filled);
        let mut shown = HashSet::new();
        for fact in &presentation.facts {
            self.add_fact(fact, &mut shown, filled);
        }
        for list in &presentation.lists {
            match self.input.and_then(|input| value_at(input, &list.path)) {
                None => {}
                Some(Value::Array(items)) => {
                    shown.insert(self.place(&list.path));
                    let (table, left_out) =
                        table(&list.path, items, &list.columns, list.total.as_deref());
                    filled.lists.push(table);
                    add(&mut filled.not_shown, left_out);
                }
                Some(_) => {
                    let Some(value) = self.value(&list.path, &mut shown) else { continue };
                    filled.facts.push(unnamed(&list.path, value));
                }
            }
        }
        for path in &presentation.agent_words {
            let Some(value) = self.value(path, &mut shown) else { continue };
            filled.agent_words.push(unnamed(path, value));
        }
        let mut leaves = Vec::new();
        self::leaves(self.context, "", &mut leaves);
        let is_shown = |leaf: &str| is_covered(leaf, |place| shown.contains(place));
        add(&mut filled.not_shown, leaves.iter().filter(|(leaf, _)| !is_shown(leaf)).count());
    }

    /// The declared titles. The general title stays if the declared one cannot be filled in.
    fn titles(&self, presentation: &ToolPresentation, filled: &mut ApprovalPresentation) {
        let decline =
            |title: Option<&str>| title.and_then(|title| self.title(title)).unwrap_or_default();
        if let Some(title) = self.title(&presentation.title) {
            (filled.title, filled.declared_title) = (title, true);
            filled.decline_title = decline(presentation.decline_title.as_deref());
            filled.language.clone_from(&presentation.language);
        }
        for own in &presentation.translations {
            let Some(title) = self.title(&own.title) else { continue };
            let decline_title = decline(own.decline_title.as_deref());
            filled.translations.push(ApprovalTitle {
                language: own.language.clone(),
                mixed_letters: mixed_letters(&format!("{title} {decline_title}")),
                title,
                decline_title,
            });
        }
    }

    /// Adds a declared fact, and a second one if the tool's own input has another value.
    fn add_fact(
        &self,
        declared: &PresentedFact,
        shown: &mut HashSet<String>,
        filled: &mut ApprovalPresentation,
    ) {
        let fact = |path: &str, label: &str, value| ApprovalFact {
            role: declared.role.clone(),
            block: declared.block == Some(true),
            ..named(path, label, value)
        };
        let path = declared.path.as_str();
        if let Some(value) = self.value(path, shown) {
            let block = self.found(path).and_then(Value::as_str);
            let block = block.filter(|text| declared.block == Some(true) && !text.is_empty());
            // A block keeps its first and last line breaks.
            let value = block.map_or(value, str::to_owned);
            filled.facts.push(fact(path, &declared.label, value));
        }
        if let Some(value) = self.differing(path) {
            let (own, label) = (argument(path), t::in_arguments(&declared.label));
            filled.facts.push(fact(&own, &label, value));
            shown.insert(own);
            if path == "amount" {
                shown.insert(argument("currency"));
            }
        }
    }

    /// A path of the input as a path of the context.
    fn place(&self, path: &str) -> String {
        let is_own = self.general(path).is_none() && self.own(path).is_some();
        if self.declared.is_in_arguments && is_own { argument(path) } else { path.to_owned() }
    }

    /// The value outside the tool's own input, for the fields that every tool accepts.
    fn general(&self, path: &str) -> Option<&'a Value> {
        let general = self.context.get(path).filter(|value| !value.is_null());
        general.filter(|_| ALWAYS.contains(&path))
    }

    /// The value in the tool's own input.
    fn own(&self, path: &str) -> Option<&'a Value> {
        value_at(self.input?, path).filter(|value| !value.is_null())
    }

    /// The value at a path. Bounds and policies use the general value of a field that has two.
    fn found(&self, path: &str) -> Option<&'a Value> {
        self.general(path).or_else(|| self.own(path))
    }

    /// The value in the tool's own input, if it differs from the general value.
    fn differing(&self, path: &str) -> Option<String> {
        let own = self.own(path)?;
        self.general(path).filter(|general| *general != own)?;
        let amount = self.input.filter(|_| path == "amount").and_then(Amount::of);
        Some(amount.map_or_else(|| text(own), |amount| amount.plain()))
    }

    /// The amount with its currency, if the path is `amount`.
    fn amount(&self, path: &str) -> Option<Amount> {
        if path != "amount" {
            return None;
        }
        let own = self.input.filter(|_| self.general("amount").is_none());
        Amount::of(own.unwrap_or(self.context))
    }

    /// The text of a value. `shown` gets the places that it covers.
    fn value(&self, path: &str, shown: &mut HashSet<String>) -> Option<String> {
        let value = self.found(path)?;
        shown.insert(self.place(path));
        if let Some(amount) = self.amount(path) {
            let is_own = self.declared.is_in_arguments && self.general("amount").is_none();
            shown.insert(if is_own { argument("currency") } else { "currency".to_owned() });
            return Some(amount.plain());
        }
        Some(text(value))
    }

    /// A title with its values. `None` if a field in it has no value.
    fn title(&self, title: &str) -> Option<String> {
        title::filled(title, |path| match self.amount(path) {
            Some(amount) => Some(amount.plain()),
            None => in_title(self.found(path)?),
        })
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
                    filled.facts.push(named(&path, t::AMOUNT, amount.plain()));
                }
                (Value::Object(fields), _) if !fields.is_empty() => {
                    self.add_all(fields, &format!("{path}."), inner, filled);
                }
                (Value::Array(items), _) if items.iter().any(Value::is_object) => {
                    self.add_table(&path, items, inner, filled);
                }
                (Value::String(command), _) if self.is_shell && path == SHELL.1 => {
                    let command = named(&path, t::COMMAND, command.clone());
                    filled.facts.insert(0, ApprovalFact { block: true, ..command });
                }
                (Value::String(words), _) if words.chars().count() > SHORT => {
                    let fact = unnamed(&path, words.clone());
                    put(fact, MOST_FACTS, &mut filled.agent_words, &mut filled.not_shown);
                }
                (value, _) => {
                    let fact = unnamed(&path, text(value));
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
        let (table, left_out) = table(path, items, &columns, None);
        add(&mut filled.not_shown, left_out);
        put(table, MOST_TABLES, &mut filled.lists, &mut filled.not_shown);
    }
}

fn put<T>(item: T, most: usize, list: &mut Vec<T>, not_shown: &mut i32) {
    if list.len() < most { list.push(item) } else { add(not_shown, 1) }
}

fn add(not_shown: &mut i32, count: usize) {
    *not_shown = not_shown.saturating_add(i32::try_from(count).unwrap_or(i32::MAX));
}

/// A fact with a declared label.
fn named(path: &str, label: &str, value: String) -> ApprovalFact {
    ApprovalFact {
        path: path.to_owned(),
        label: label.to_owned(),
        role: None,
        mixed_letters: mixed_letters(&value),
        value,
        block: false,
    }
}

/// A fact with a label that is made from its path. An agent can choose the path.
fn unnamed(path: &str, value: String) -> ApprovalFact {
    let mixed_letters = mixed_letters(&format!("{path} {value}"));
    ApprovalFact { mixed_letters, ..named(path, &label(path), value) }
}

/// The path of a field of the tool's own input, within the context.
fn argument(path: &str) -> String {
    format!("arguments.{path}")
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

fn has_property(root: &Map<String, Value>, schema: &Map<String, Value>, name: &str) -> bool {
    let mut all = resolved(root, schema);
    all.any(|schema| schema.get("properties").is_some_and(|all| all.get(name).is_some()))
}

fn property<'s>(
    root: &'s Map<String, Value>,
    schema: &'s Map<String, Value>,
    name: &str,
) -> Option<&'s Map<String, Value>> {
    let mut all = resolved(root, schema);
    let found = all.find_map(|schema| schema.get("properties")?.get(name)?.as_object())?;
    resolved(root, found).last()
}

#[cfg(test)]
mod tests {
    use authority_model::proto::registry::{PresentedFact, PresentedList, PresentedTitle};
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
            block: None,
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
                total: Some("net".to_owned()),
            }],
            agent_words: vec!["agent_note".to_owned()],
            ..ToolPresentation::default()
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
        assert_eq!(filled.title, "Pay 12 400.00 EUR to “Müller & Söhne”");
        assert!(filled.declared_title);
        assert_eq!(
            facts(&filled),
            [("To", "Müller & Söhne"), ("Account", "DE89"), ("Amount", "12 400.00 EUR")]
        );
        assert_eq!(filled.facts[0].role.as_deref(), Some("payee"));
        let table = &filled.lists[0];
        assert_eq!(table.label, "Line items");
        assert_eq!(table.columns, ["Text", "Net", "Other fields"]);
        let rows: Vec<_> = table.rows.iter().map(|row| row.cells.join("|")).collect();
        assert_eq!(rows, ["Pipes|400|", r#"|12000|{"tax":19}"#, "odd||"]);
        assert_eq!(table.total, None, "one item has no number");
        assert_eq!(filled.agent_words[0].value, "approved by CFO");
        assert_eq!(filled.not_shown, 1, "the cost centre");
    }

    #[test]
    fn a_declaration_whose_paths_lead_nowhere_hides_nothing() {
        let context = json!({"arguments": {"to": "jane@example.org", "subject": "Your order"}});
        let presentation = ToolPresentation {
            decline_title: Some("Payment".to_owned()),
            language: Some("en".to_owned()),
            translations: vec![PresentedTitle {
                language: "de".to_owned(),
                title: "Zahlen".to_owned(),
                decline_title: None,
            }],
            ..presentation("Pay")
        };
        let declared = Declaration { presentation: Some(presentation), ..Declaration::default() };
        let filled = fill(&request(&context), &declared);
        assert_eq!(filled, fill(&request(&context), &Declaration::default()));
        assert_eq!(filled.title, "invoice-bot wants to run payment.execute");
        assert_eq!((facts(&filled).len(), filled.not_shown), (2, 0), "{filled:#?}");
    }

    #[test]
    fn each_language_has_its_titles() {
        let title = |language: &str, title: &str, decline_title: Option<&str>| PresentedTitle {
            language: language.to_owned(),
            title: title.to_owned(),
            decline_title: decline_title.map(str::to_owned),
        };
        let presentation = ToolPresentation {
            decline_title: Some("Payment of {amount}".to_owned()),
            language: Some("en".to_owned()),
            translations: vec![
                title("de", "{amount} an {payee} zahlen", Some("Zahlung von {amount}")),
                title("fr", "Payer {amount} à {payee}", None),
                title("it", "Pagare {none}", None),
            ],
            ..presentation("Pay {amount} to {payee}")
        };
        let declared = Declaration { presentation: Some(presentation), ..Declaration::default() };
        let filled = fill(&request(&json!({"amount": 5, "payee": "A"})), &declared);
        assert_eq!(filled.title, "Pay 5.00 to A");
        assert_eq!(filled.decline_title, "Payment of 5.00");
        assert_eq!(filled.language.as_deref(), Some("en"));
        let titles = filled.translations.iter();
        let titles: Vec<_> =
            titles.map(|own| [&*own.language, &*own.title, &*own.decline_title]).collect();
        assert_eq!(
            titles,
            [["de", "5.00 an A zahlen", "Zahlung von 5.00"], ["fr", "Payer 5.00 à A", ""]]
        );
        // A title without a value is left out. The others stay.
        let filled = fill(&request(&json!({"amount": 5, "none": 1})), &declared);
        assert_eq!(filled.title, "invoice-bot wants to run payment.execute");
        assert_eq!((filled.decline_title.as_str(), filled.language), ("", None));
        assert_eq!(filled.translations[0].title, "Pagare 1");
    }

    #[test]
    fn a_block_keeps_its_text_and_its_place() {
        let mut own = presentation("Run");
        own.facts[1].block = Some(true);
        let declared = Declaration { presentation: Some(own), ..Declaration::default() };
        let script = format!("#!/bin/sh\n{}\n", "echo 1\n".repeat(100));
        let filled = fill(&request(&json!({"iban": script, "payee": "A\n"})), &declared);
        assert!(filled.facts[1].block && !filled.facts[0].block);
        assert_eq!(facts(&filled), [("To", r#""A\n""#), ("Account", script.as_str())]);
        let filled = fill(&request(&json!({"iban": ""})), &declared);
        assert_eq!(facts(&filled), [("Account", "\"\"")]);
    }

    #[test]
    fn a_shell_command_is_first_and_whole() {
        let command = format!("cd build &&\n{}rm -rf .", "echo 1 &&\n".repeat(100));
        let context =
            json!({"arguments": {"aside": "A", "command": command}, "session": {"cwd": "/w"}});
        let mut request = request(&context);
        request.insert("action".to_owned(), "code.bash".into());
        let filled = fill(&request, &Declaration::default());
        assert_eq!(facts(&filled)[0], ("Command", command.as_str()));
        assert!(filled.facts[0].block && filled.agent_words.is_empty());
        // Only the argument itself is the command.
        let context = json!({"arguments": {"a": {"command": "A\n"}}, "command": "B\n"});
        request.insert("context".to_owned(), context);
        let filled = fill(&request, &Declaration::default());
        assert!(filled.facts.iter().all(|fact| !fact.block), "{filled:#?}");
    }

    /// An agent chooses the names of fields that no tool declares.
    #[test]
    fn names_of_mixed_letters_are_marked_as_values_are() {
        let context = json!({"n\u{435}t": 1, "plainИмя": "B", "net": 2, "Номер": 3});
        let filled = fill(&request(&context), &Declaration::default());
        let marked: Vec<_> =
            filled.facts.iter().filter(|fact| !fact.mixed_letters.is_empty()).collect();
        let marked: Vec<_> =
            marked.iter().map(|fact| (fact.path.as_str(), fact.mixed_letters.as_str())).collect();
        assert_eq!(marked, [("n\u{435}t", "\u{435}"), ("plainИмя", "Имя")]);
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
        // An amount that is not a number is shown unchanged.
        assert_eq!(title("Pay {amount}", &json!({"amount": "5 EUR"})), "Pay “5 EUR”");
    }

    #[test]
    fn a_value_in_a_title_is_short_on_one_line_and_marked_where_it_is_free_text() {
        let payee = "A".repeat(61);
        let shown = title("To {payee}", &json!({"payee": payee}));
        assert_eq!(shown, format!("To {}…", "A".repeat(60)));
        assert_eq!(title("To {payee}", &json!({"payee": "A\nB"})), "To “A B”");
        let text = |text: &str| title("{text}!", &json!({"text": text, "payee": "A"}));
        assert_eq!(text("a ”b“"), "“a \"b\"”!");
        assert_eq!(text("RE-1"), "RE-1!");
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
        // Bounds and policies use the general amount. The tool may use its own one: both are shown.
        let context =
            json!({"amount": 5, "arguments": {"amount": 7, "currency": "USD", "payee": "A"}});
        let filled = fill(&request(&context), &declared);
        assert_eq!(filled.title, "Pay 5.00 to A");
        assert_eq!(
            facts(&filled),
            [("To", "A"), ("Amount", "5.00"), ("Amount in arguments", "7.00 USD")]
        );
        assert_eq!(filled.not_shown, 0);
        let context = json!({"amount": 5, "arguments": {"currency": "USD", "payee": "A"}});
        let filled = fill(&request(&context), &declared);
        assert_eq!((filled.title.as_str(), filled.not_shown), ("Pay 5.00 to A", 1));
        let context = json!({"arguments": {"amount": 7, "payee": "A"}});
        assert_eq!(fill(&request(&context), &declared).title, "Pay 7.00 to A");
    }

    /// An agent chooses the names of fields. No column shows the value of another field.
    #[test]
    fn a_cell_has_the_value_of_its_column() {
        let context = json!({"items": [{"unit price": 50000, "\"unit price\"": 1}],
            "more": [{"net.amount": 50000, "\"net": {"amount\"": 1}}, {"net": {"amount": 2}}]});
        let filled = fill(&request(&context), &Declaration::default());
        let cells = |table: usize, row: usize| {
            let table = &filled.lists[table];
            let cells = table.columns.iter().zip(&table.rows[row].cells);
            cells.map(|(column, cell)| format!("{column}={cell}")).collect::<Vec<_>>()
        };
        assert_eq!(cells(0, 0).iter().filter(|cell| cell.ends_with("=50000")).count(), 1);
        assert_eq!(cells(1, 0).iter().filter(|cell| cell.ends_with("=50000")).count(), 1);
        assert_eq!(cells(1, 1), ["\\net=", "Net={\"amount\":2}", "Net amount="]);
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
