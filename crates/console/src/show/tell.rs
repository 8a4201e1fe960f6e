//! A member of a question, classified: a recipient, a reason, or other information.

use std::borrow::Cow;

use authority_decision::hidden::is_hidden;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_security::{MixedScript, confusable_detection::skeleton};

/// The maximum length of a name and of a value in a list, in characters. Longer texts are cut with
/// `…`.
pub(super) const LONGEST: usize = 48;
/// The maximum length of other texts in a second step, in characters: texts that name neither a
/// recipient nor an amount.
const LONG: usize = 240;
/// The number of final characters that a cut account number shows, since people recognise it by
/// them.
const ENDING: usize = 12;

/// Words in names of members for recipients.
const PAYEES: [&str; 11] = [
    "payee",
    "beneficiary",
    "recipient",
    "receiver",
    "creditor",
    "supplier",
    "vendor",
    "merchant",
    "customer",
    "counterparty",
    "contractor",
];
/// Words in names of members that have the number of an account.
const ACCOUNTS: [&str; 8] =
    ["iban", "bban", "account", "swift", "routing", "sort_code", "sortcode", "wallet"];
/// Words in names of members for documents.
const DOCUMENTS: [&str; 5] = ["invoice", "bill", "order", "reference", "contract"];

/// The class of a member, the most informative first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An amount or a currency that is not part of the sentence, because it cannot be shown
    /// exactly.
    Amount,
    Payee,
    Account,
    Document,
    Other,
}

/// A value, and whether it names a recipient. Members of different names can have the same account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Said<'a>(bool, Cow<'a, str>);

/// A member of a headline.
#[derive(Clone, Debug)]
pub(crate) struct Tell {
    pub(crate) path: String,
    /// All of it.
    pub(crate) value: String,
    pub(super) kind: Kind,
    /// Whether lists also show it.
    pub(crate) listed: bool,
}

impl Tell {
    /// Creates a member. The paths of the context's members are without `context.`.
    pub(crate) fn new(path: &str, value: String) -> Self {
        let path = path.strip_prefix("context.").unwrap_or(path).to_owned();
        let kind = kind(&path, &value);
        Self { path, value, kind, listed: true }
    }

    pub(crate) fn short_path(&self) -> String {
        cut(&self.path, 0)
    }

    /// The value as lists show it.
    pub(crate) fn short(&self) -> String {
        cut(&self.value, if self.kind == Kind::Account { ENDING } else { 0 })
    }

    /// The value as a second step shows it. Payees and accounts are complete, other long texts are cut.
    pub(crate) fn long(&self) -> String {
        if self.kind < Kind::Document || self.value.chars().count() <= LONG {
            return self.value.clone();
        }
        self.value.chars().take(LONG).chain(['…']).collect()
    }

    /// The value for a comparison, long enough to show the difference.
    pub(crate) fn compared(&self) -> String {
        cut_to(LONG, &self.value, if self.kind == Kind::Account { LONG / 2 } else { ENDING })
    }

    /// Whether it names a recipient: a payee or an account.
    pub(crate) fn is_to_whom(&self) -> bool {
        matches!(self.kind, Kind::Payee | Kind::Account)
    }

    /// Whether it names a bill. A bill is paid only once, unlike a contract.
    pub(crate) fn is_bill(&self) -> bool {
        self.kind == Kind::Document && !self.path.to_lowercase().contains("contract")
    }

    /// Whether its letters belong to several scripts. Real names use one script; a mixture is often
    /// an imitation of another name.
    pub(crate) fn has_mixed_letters(&self) -> bool {
        self.kind < Kind::Other && !self.value.as_str().is_single_script()
    }

    /// Whether it names a document: an invoice or an order.
    pub(crate) fn is_document(&self) -> bool {
        self.kind == Kind::Document
    }

    /// The exact value, for comparison with other members.
    pub(crate) fn said(&self) -> Said<'_> {
        Said(self.is_to_whom(), Cow::Borrowed(&self.value))
    }

    /// Whether another one has the same letters and digits, without case.
    pub(crate) fn has_letters_of(&self, other: &Self) -> bool {
        seen(&self.value).to_lowercase() == seen(&other.value).to_lowercase()
    }

    /// The value in a normal form: only visible letters and digits count, and letters that look
    /// alike are equal. Different names can have the same normal form. People therefore see both
    /// values.
    pub(crate) fn named(&self) -> Said<'_> {
        let look = look(&self.value);
        if look.is_empty() { self.said() } else { Said(self.is_to_whom(), Cow::Owned(look)) }
    }
}

/// The visible letters and digits of a text. Full-width forms count as the usual form.
fn seen(text: &str) -> String {
    text.nfkc().filter(|letter| letter.is_alphanumeric() && !is_hidden(*letter)).collect()
}

/// The appearance of a text's letters and digits without case. Characters that are easily confused
/// are equal (UTS 39, section 4).
fn look(text: &str) -> String {
    // Some letters look alike only as capitals, others only as small letters. A capital i looks like
    // a small l.
    let lower = skeleton(&seen(text)).collect::<String>().to_lowercase();
    skeleton(&lower).map(|letter| if letter == 'i' { 'l' } else { letter }).collect()
}

/// The class of a member with this path and value.
pub(super) fn kind(path: &str, value: &str) -> Kind {
    let path = latin(path);
    // The word "border" does not contain an order.
    let words_in = path.replace("border", "");
    let names = |words: &[&str]| words.iter().any(|word| words_in.contains(word));
    let mut words = path.split(|letter: char| !letter.is_alphanumeric());
    match path.as_str() {
        "amount" | "currency" => Kind::Amount,
        _ if names(&ACCOUNTS) || is_iban(value) => Kind::Account,
        _ if names(&PAYEES) => Kind::Payee,
        _ if words.any(|word| matches!(word, "to" | "bic")) => Kind::Payee,
        _ if names(&DOCUMENTS) => Kind::Document,
        _ => Kind::Other,
    }
}

/// A member's name in small Latin letters: look-alike letters are replaced and invisible ones
/// removed.
fn latin(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    let mut latin = String::new();
    for letter in path.nfkc().filter(|letter| !is_hidden(*letter)) {
        let mut letters = [0; 4];
        match letter {
            letter if letter.is_ascii() => latin.push(letter),
            letter => latin.extend(skeleton(letter.encode_utf8(&mut letters))),
        }
    }
    latin.to_lowercase()
}

/// Whether a member with this path names a payee or an account.
fn says_to_whom(path: &str) -> bool {
    matches!(kind(path, ""), Kind::Payee | Kind::Account)
}

/// Whether a list names recipients: by its name, or because an item has the form of an IBAN.
pub(super) fn lists_whom(path: &str, items: &[Value]) -> bool {
    says_to_whom(path) || items.iter().filter_map(Value::as_str).any(is_iban)
}

/// Whether a text has the form of an IBAN, whatever its member is called.
fn is_iban(value: &str) -> bool {
    let text: Vec<char> = value.chars().filter(|letter| !letter.is_whitespace()).collect();
    let is_of = |from: usize, to: usize, is: fn(&char) -> bool| {
        text.get(from..to).is_some_and(|part| part.iter().all(is))
    };
    (15..=34).contains(&text.len())
        && is_of(0, 2, char::is_ascii_alphabetic)
        && is_of(2, 4, char::is_ascii_digit)
        && is_of(4, text.len(), char::is_ascii_alphanumeric)
}

/// The text as a list shows it. `…` replaces the part before the last `ending` characters.
fn cut(text: &str, ending: usize) -> String {
    cut_to(LONGEST, text, ending)
}

fn cut_to(longest: usize, text: &str, ending: usize) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.to_owned();
    }
    let start = text.chars().take(longest - ending);
    let end = text.chars().skip(length - ending);
    start.chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_account_keeps_its_end() {
        let account = Tell::new("context.wallet", format!("0x{}", "ab".repeat(40)));
        assert_eq!(account.path, "wallet");
        let short = account.short();
        assert!(short.starts_with("0xab") && short.ends_with("…abababababab"), "{short}");
        assert!(
            !is_iban("RE-417-2026-000123") && !is_iban("DE89") && is_iban("GB29NWBK60161331926819")
        );
    }

    #[test]
    fn a_members_name_is_known_in_other_letters() {
        for payee in ["p\u{430}yee", "pay\u{200b}ee", "\u{ff50}ayee", "PAYEE"] {
            assert_eq!(kind(payee, ""), Kind::Payee, "{payee}");
        }
        assert_eq!(kind("inv\u{43e}ice", ""), Kind::Document);
        assert_eq!((kind("border", ""), kind("order", "")), (Kind::Other, Kind::Document));
        // The account is the same under any member name.
        let tell = |path: &str| Tell::new(path, "DE89370400440532013000".to_owned());
        assert_eq!(tell("iban").named(), tell("payee").named());
        assert!(
            lists_whom("split", &["DE89370400440532013000".into()])
                && !lists_whom("tags", &["a".into()])
        );
    }

    #[test]
    fn letters_of_several_scripts_are_noticed() {
        let mixed = |path: &str, value: &str| Tell::new(path, value.to_owned()).has_mixed_letters();
        assert!(mixed("payee", "N\u{43e}rdwind") && mixed("iban", "DE89\u{410}"));
        for whole in
            ["Nordwind", "\u{41d}\u{43e}\u{440}\u{434} 24", "M\u{fc}ller & Co.", "\u{6771}\u{4eac}"]
        {
            assert!(!mixed("payee", whole), "{whole}");
        }
        assert!(!mixed("note", "N\u{43e}rdwind"));
    }

    #[test]
    fn the_same_account_is_known_however_it_is_written() {
        let tell = |path: &str, value: &str| Tell::new(path, value.to_owned());
        let is_same = |one: &Tell, other: &Tell| one.named() == other.named();
        assert!(is_same(&tell("iban", "DE89 3704"), &tell("supplier.iban", "de893704")));
        assert!(!is_same(&tell("iban", "DE89 3704"), &tell("iban", "DE89 3705")));
        let invoice = tell("invoice", "RE 417");
        for spelt in ["RE-417", "re/417", "RE\u{200b}417", "R\u{3164}E 4.17", "(RE) 417"] {
            assert!(is_same(&invoice, &tell("invoice", spelt)), "{spelt:?}");
        }
        assert!(!is_same(&invoice, &tell("invoice", "RE-418")));
        // Cyrillic and full width, in capitals and small letters.
        let payee = tell("payee", "Acme Copper");
        for spelt in [
            "\u{410}\u{421}\u{41c}\u{415} COPPER",
            "\u{430}cm\u{435} \u{441}opper",
            "\u{ff21}\u{ff43}\u{ff4d}\u{ff45} Copper",
            "Acrne Copper",
        ] {
            assert!(is_same(&payee, &tell("payee", spelt)), "{spelt:?}");
        }
        assert!(!is_same(&payee, &tell("payee", "Acme Cooper")));
        // Without a letter or a digit the text itself counts.
        assert!(!is_same(&tell("payee", "—"), &tell("payee", "…")));
        assert!(is_same(&tell("payee", "—"), &tell("payee", "—")));
        assert!(!is_same(&tell("payee", "A"), &tell("note", "A")));
    }
}
