//! The members of a question's context that name recipients and reasons. They are shown next to the
//! amount and distinguish requests of the same amount. An agent chooses names and texts. Its other
//! texts must not displace a payee or an account. Hidden members are counted.

use serde_json::{Map, Value};

use super::{
    amount::Amount,
    request::{Argument, members},
    tell::{Kind, LONGEST, Tell, kind},
};

/// The most payees, and the most accounts, in a list.
const MOST_OF_A_KIND: usize = 4;
/// The number of members in a list, if the context has that many.
const USUAL: usize = 4;
/// The maximum number of members in a second step that name neither a recipient nor an amount.
const OTHERS: usize = 20;

/// Members with little information.
const PLACES: [&str; 2] = ["jurisdiction", "subdivision"];

/// What stands beside a question's amount.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headline {
    /// Every payee and account, and some other members. The second step shows all of them, lists
    /// show some.
    pub(crate) rows: Vec<Tell>,
    /// All members that name a recipient or a reason, shown or not. Requests are compared by them.
    pub(crate) compared: Vec<Tell>,
    /// The number of members that lists hide, and the number that the second step hides.
    pub(crate) more_than_listed: usize,
    pub(crate) more: usize,
}

impl Headline {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.more == 0
    }

    /// Without a member of the context that stands elsewhere.
    pub(crate) fn without(&mut self, path: &str) {
        let listed = self.rows.iter().any(|row| row.path == path && row.listed);
        if !listed {
            self.more_than_listed = self.more_than_listed.saturating_sub(1);
        }
        self.rows.retain(|row| row.path != path);
    }
}

/// The members of a context in a fixed order: recipients, reasons, then the rest; names and numbers
/// before long texts, outer members before inner ones, by name.
pub(crate) fn headline(context: &Map<String, Value>) -> Headline {
    let is_said = Amount::of(context).is_some();
    let outer = |path: &str| is_said && matches!(path, "amount" | "currency");
    let mut rows: Vec<Tell> = members(context)
        .into_iter()
        .filter(|row| !outer(&row.path))
        .map(|row| {
            let path = row.path.clone();
            Tell::new(&path, visible(row))
        })
        .collect();
    rows.sort_by_cached_key(place);
    let all = rows.len();
    let compared = rows.iter().filter(|row| row.is_to_whom() || row.is_document());
    let compared = compared.cloned().collect();
    let mut counts = [0; 2];
    let to_whom = rows.iter().filter(|row| row.kind <= Kind::Account).count();
    let in_list = USUAL.saturating_sub(to_whom).max(1);
    let mut others = 0;
    rows.retain_mut(|row| {
        let count = match row.kind {
            Kind::Amount => return true,
            Kind::Payee => &mut counts[0],
            Kind::Account => &mut counts[1],
            Kind::Document | Kind::Other => {
                others += 1;
                row.listed = others <= in_list;
                return others <= OTHERS;
            }
        };
        *count += 1;
        row.listed = *count <= MOST_OF_A_KIND;
        true
    });
    let listed = rows.iter().filter(|row| row.listed).count();
    Headline { more: all - rows.len(), more_than_listed: all - listed, rows, compared }
}

/// A text that begins or ends with a blank, in quotes.
fn visible(row: Argument) -> String {
    let is_whole = !row.value.is_empty() && row.value.trim() == row.value;
    if is_whole { row.value } else { Value::from(row.value).to_string() }
}

/// The order within a headline.
fn place(row: &Tell) -> (Kind, u8, bool, usize, String) {
    let last = row.path.rsplit('.').next().unwrap_or(&row.path).to_lowercase();
    let names_it = last.contains("name") || kind(&last, "") == row.kind;
    let length = row.value.chars().count();
    let rank = match row.value.as_bytes().first() {
        _ if PLACES.contains(&row.path.as_str()) => 3,
        _ if length > LONGEST => 2,
        Some(b'[' | b'{') => 1,
        _ if matches!(row.value.as_str(), "true" | "false" | "null") => 1,
        _ => 0,
    };
    // A payee's or an account's own name is shown first, however long it is.
    let rank = if row.kind < Kind::Document { 0 } else { rank };
    (row.kind, rank, !names_it, row.path.matches(['.', '[']).count(), row.path.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(context: &Value) -> (Vec<(String, String)>, usize) {
        let found = headline(context.as_object().unwrap());
        let rows = found.rows.iter().filter(|row| row.listed);
        (rows.map(|row| (row.path.clone(), row.short())).collect(), found.more_than_listed)
    }

    #[track_caller]
    fn shows(context: &Value, expected: &[(&str, &str)], more: usize) {
        let expected: Vec<_> =
            expected.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
        assert_eq!(listed(context), (expected, more), "{context}");
    }

    #[test]
    fn it_says_to_whom_and_for_what() {
        shows(
            &json!({
                "amount": 5, "currency": "EUR", "jurisdiction": "DE", "approved": true, "count": 7,
                "supplier": {"name": "Müller", "iban": "DE89"}, "invoice": "RE-417",
            }),
            &[
                ("supplier.name", "Müller"),
                ("supplier.iban", "DE89"),
                ("invoice", "RE-417"),
                ("count", "7"),
            ],
            2,
        );
        // Without known names, outer members come first, by name. Members with little information
        // are last.
        shows(
            &json!({"b": {"a": "1"}, "c": "2", "a": "3", "z.\"": "4", "jurisdiction": "DE"}),
            &[("a", "3"), ("c", "2"), ("\"z.\\\"\"", "4"), ("b.a", "1")],
            1,
        );
        shows(&json!({"amount": 5}), &[], 0);
        // An amount that no sentence has stands here.
        shows(&json!({"amount": 0.00001}), &[("amount", "0.00001")], 0);
    }

    #[test]
    fn no_text_takes_the_place_of_a_payee_or_an_account() {
        let payee = "Müller Maschinenbau und Anlagentechnik GmbH & Co. KG, Werk Süd";
        let cut = format!("{}…", payee.chars().take(LONGEST).collect::<String>());
        shows(
            &json!({"payee": payee, "note": "pay \u{202e}321 EUR", "a": "1", "b": "2", "c": "3"}),
            &[("payee", &cut), ("a", "1"), ("b", "2"), ("c", "3")],
            1,
        );
        shows(
            &json!({"account": 12_345_678, "note": "for Müller GmbH"}),
            &[("account", "12345678"), ("note", "for Müller GmbH")],
            0,
        );
        // Many payees do not displace the account, which is found by its name or by its form.
        for name in ["iban", "x"] {
            let mut context = json!({name: "DE89 3704 0044 0532 0130 00"});
            for number in 0..9 {
                context[format!("beneficiary_{number}")] = json!(format!("B{number}"));
            }
            let (rows, more) = listed(&context);
            assert!(rows.iter().any(|(path, _)| path == name), "{rows:?}");
            assert_eq!((rows.len(), more), (5, 5));
            let second_step = headline(context.as_object().unwrap());
            assert_eq!((second_step.rows.len(), second_step.more), (10, 0));
        }
        shows(&json!({"payee": " "}), &[("payee", "\" \"")], 0);
        shows(
            &json!({"supplier": {"vat": "1", "city": "B", "address": "C", "email": "D",
                                   "name": "Müller"}}),
            &[
                ("supplier.name", "Müller"),
                ("supplier.address", "C"),
                ("supplier.city", "B"),
                ("supplier.email", "D"),
            ],
            1,
        );
    }
}
