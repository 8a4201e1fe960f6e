//! Similar requests of the same agent for the same action. An agent may request a payment twice, or
//! a second time to another account.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use authority_model::{
    proto::approval::{Approval, ListApprovalsRequest, ListApprovalsResponse},
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};

use super::summary::{State, Summary};
use crate::{
    rpc,
    show::{Amount, Headline, Said, Tell},
    view::View,
};

/// The maximum number of requests to compare, newest first, and of pages to read for them.
const READ: i32 = 100;
const PAGES: usize = 5;
/// The maximum number of requests shown as possible doubles, and as similar requests.
const NAMED: usize = 8;
/// The maximum number of members listed as equal, and as different, for each request.
const SHOWN: usize = 8;
/// How long a permitted or declined request is compared with others.
const RECENT: TimeDelta = TimeDelta::days(30);

/// The newest requests of an agent for an action, without excluded ones.
#[derive(Default)]
pub(crate) struct Others {
    newest: Vec<Approval>,
    /// Whether there are older requests or unreadable ones, which were not compared.
    pub(super) is_partial: bool,
}

/// A similar request.
pub(crate) struct Alike {
    pub(crate) summary: Summary,
    pub(crate) likeness: Likeness,
    /// Why it was declined, if it was.
    pub(crate) declined: Option<String>,
}

/// The first of them, and how many more there are.
#[derive(Default)]
pub(crate) struct AlikeList {
    pub(crate) first: Vec<Alike>,
    pub(crate) more: usize,
}

impl AlikeList {
    fn first(mut all: Vec<Alike>) -> Self {
        let more = all.len().saturating_sub(NAMED);
        all.truncate(NAMED);
        Self { first: all, more }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

/// The similarities and differences of two questions.
#[derive(Debug, Default)]
pub(crate) struct Likeness {
    /// `amount, payee`.
    pub(crate) same: String,
    /// The first members of the other request that name a recipient or a reason and differ, and the
    /// number of further ones.
    pub(crate) differs: Vec<Tell>,
    pub(crate) more: usize,
    /// Whether both could be the same payment. Either the amount is the same, and a payee, an
    /// account or a document is the same or missing in both. Or the same bill is paid to the same
    /// payee, with any amount.
    pub(super) is_double: bool,
    is_same_amount: bool,
    /// How many members are the same.
    count: usize,
}

impl Likeness {
    /// `None` if amount, payee and bill all differ.
    pub(super) fn of(own: &Compared<'_>, other: &Compared<'_>) -> Option<Self> {
        let is_same_amount = own.amount.is_some() && own.amount == other.amount;
        let same =
            own.rows.iter().filter_map(|(row, named)| Some((*row, *other.named.get(named)?)));
        let same: Vec<(&Tell, &Tell)> = same.collect();
        let is_to_same = same.iter().any(|(row, _)| row.is_to_whom());
        let is_same_bill = same.iter().any(|(row, _)| row.is_bill());
        if !is_same_amount && !is_to_same && !is_same_bill {
            return None;
        }
        let words = is_same_amount.then(|| "amount".to_owned()).into_iter();
        let word = |(row, there): &(&Tell, &Tell)| {
            let path = row.short_path();
            if other.said.contains(&row.said()) {
                path
            } else if row.has_letters_of(there) {
                format!("{path} (written otherwise)")
            } else {
                format!("{path} (in other letters, which look alike)")
            }
        };
        let mut words: Vec<String> = words.chain(same.iter().take(SHOWN).map(word)).collect();
        let count = same.len() + usize::from(is_same_amount);
        if count > words.len() {
            words.push(format!("and {} more", count - words.len()));
        }
        let differs = other.rows.iter().filter(|(row, _)| !own.said.contains(&row.said()));
        let differs: Vec<&Tell> = differs.map(|(row, _)| *row).collect();
        let neither_has_any = own.rows.is_empty() && other.rows.is_empty();
        Some(Self {
            more: differs.len().saturating_sub(SHOWN),
            differs: differs.into_iter().take(SHOWN).cloned().collect(),
            is_double: (is_same_amount && (!same.is_empty() || neither_has_any))
                || (is_same_bill && is_to_same),
            count,
            same: words.join(", "),
            is_same_amount,
        })
    }
}

/// The compared parts of a question. An agent chooses their number. Each member is therefore read
/// once.
pub(super) struct Compared<'a> {
    amount: Option<&'a Amount>,
    /// The members that name a recipient or a reason.
    rows: Vec<(&'a Tell, Said<'a>)>,
    /// The normalised values, each with the first member that has it, and the exact values.
    named: HashMap<Said<'a>, &'a Tell>,
    said: HashSet<Said<'a>>,
}

impl<'a> Compared<'a> {
    pub(super) fn of(amount: Option<&'a Amount>, headline: &'a Headline) -> Self {
        let rows: Vec<_> = headline.compared.iter().map(|row| (row, row.named())).collect();
        let named = rows.iter().rev().map(|(row, named)| (named.clone(), *row)).collect();
        let said = rows.iter().map(|(row, _)| row.said()).collect();
        Self { amount, rows, named, said }
    }

    fn of_summary(summary: &'a Summary) -> Self {
        Self::of(summary.amount.as_ref(), &summary.headline)
    }
}

impl Others {
    /// Those beside a request; none if they cannot be read now.
    pub(super) async fn of(view: &View, approval: &Approval) -> Self {
        Self::beside(view, std::slice::from_ref(approval)).await
    }

    /// Those beside several requests of one agent for one action.
    pub(super) async fn beside(view: &View, approvals: &[Approval]) -> Self {
        let Some(first) = approvals.first().filter(|_| view.may(rpc::LIST_APPROVALS)) else {
            return Self { newest: Vec::new(), is_partial: true };
        };
        let mut request = ListApprovalsRequest {
            tenant_id: Some(first.tenant_id.clone()),
            subject: Some(first.subject.clone()),
            action: Some(first.action.clone()),
            order: Some("newest".to_owned()),
            limit: Some(READ),
            ..ListApprovalsRequest::default()
        };
        let mut newest = Vec::new();
        // A page of large contexts ends before its limit.
        for _ in 0..PAGES {
            let listed = view.calls.call(rpc::LIST_APPROVALS, &request).await;
            let Ok(ListApprovalsResponse { approvals: listed, next_page_token, .. }) = listed
            else {
                break;
            };
            newest.extend(listed);
            let Some(next) = next_page_token else {
                return Self::among(newest, approvals);
            };
            if newest.len() >= usize::try_from(READ).unwrap_or_default() {
                break;
            }
            request.page_token = next;
        }
        Self { is_partial: true, ..Self::among(newest, approvals) }
    }

    /// The requests of a list, without the given ones.
    pub(crate) fn among(mut listed: Vec<Approval>, approvals: &[Approval]) -> Self {
        listed.retain(|other| approvals.iter().all(|own| own.id != other.id));
        Self { newest: listed, is_partial: false }
    }

    /// The newest of them.
    pub(super) fn newest(&self, now: DateTime<Utc>, count: usize) -> Vec<Summary> {
        self.newest.iter().take(count).map(|other| Summary::of(other, now)).collect()
    }

    /// The possible doubles of a request, and other similar requests: permitted requests first,
    /// then pending and declined ones, each group by similarity.
    pub(super) fn alike(&self, now: DateTime<Utc>, own: &Summary) -> (AlikeList, AlikeList) {
        let compared = self.newest.iter().filter(|other| is_compared(now, other));
        let own = Compared::of_summary(own);
        let mut alike: Vec<Alike> = compared
            .filter_map(|other| {
                let summary = Summary::of(other, now);
                let likeness = Likeness::of(&own, &Compared::of_summary(&summary))?;
                Some(Alike { summary, likeness, declined: declined(other) })
            })
            .collect();
        // The sort is stable: the newest of equally similar requests is first.
        alike.sort_by_key(|Alike { summary, likeness, .. }| {
            (summary.state.rank(), !likeness.is_same_amount, Reverse(likeness.count))
        });
        let (doubles, rest) = alike.into_iter().partition(|one| one.likeness.is_double);
        (AlikeList::first(doubles), AlikeList::first(rest))
    }

    /// The possible doubles.
    pub(crate) fn doubles(&self, now: DateTime<Utc>, own: &Summary) -> AlikeList {
        self.alike(now, own).0
    }
}

/// The reason given for the decline.
fn declined(other: &Approval) -> Option<String> {
    let act = other.acts.iter().rev().find(|act| act.verdict == "decline")?;
    act.comment.clone()
}

/// Whether it waits, or was permitted or declined of late.
fn is_compared(now: DateTime<Utc>, other: &Approval) -> bool {
    let asked = other.created_at.and_then(Time::moment);
    let is_recent = asked.is_some_and(|asked| now - asked <= RECENT);
    let word = State::of(other, now).word;
    word == "pending" || (is_recent && matches!(word.as_str(), "approved" | "used" | "declined"))
}

/// For each request, the indexes of the other requests that could be the same payment.
pub(super) fn twins(summaries: &[Summary]) -> Vec<Vec<usize>> {
    let compared: Vec<_> = summaries.iter().map(Compared::of_summary).collect();
    let is_double = |one, other| Likeness::of(one, other).is_some_and(|like| like.is_double);
    let twins = |(at, one)| {
        let others = compared.iter().enumerate();
        let doubles = others.filter(|(place, other)| *place != at && is_double(one, *other));
        doubles.map(|(place, _)| place).collect()
    };
    compared.iter().enumerate().map(twins).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::show::headline;

    fn likeness(one: &Value, other: &Value) -> Option<Likeness> {
        let of = |context: &Value| {
            let context = context.as_object().unwrap().clone();
            (Amount::of(&context), headline(&context))
        };
        let ((amount, own), (other_amount, other)) = (of(one), of(other));
        let own = Compared::of(amount.as_ref(), &own);
        Likeness::of(&own, &Compared::of(other_amount.as_ref(), &other))
    }

    #[test]
    fn another_account_is_named_and_a_double_payment_too() {
        let one = json!({"amount": 20_005, "payee": "Same AG", "iban": "DE89", "invoice": "X-1"});
        let mut other = one.clone();
        other["iban"] = json!("DE88");
        let found = likeness(&one, &other).unwrap();
        assert_eq!((found.same.as_str(), found.is_double), ("amount, payee, invoice", true));
        assert_eq!(found.differs.len(), 1);
        assert_eq!((found.differs[0].path.as_str(), &*found.differs[0].value), ("iban", "DE88"));
        // A further attempt is the same payment; another one to the same payee is not.
        other = one.clone();
        other["attempt"] = json!(2);
        assert!(likeness(&one, &other).unwrap().is_double);
        other["amount"] = json!(7);
        let found = likeness(&one, &other).unwrap();
        // The same bill and the same payee: an amount that differs by a cent still counts as a
        // double.
        assert_eq!((found.same.as_str(), found.is_double), ("payee, iban, invoice", true));
        other["invoice"] = json!("X-2");
        let found = likeness(&one, &other).unwrap();
        assert_eq!((found.same.as_str(), found.is_double), ("payee, iban", false));
        // A part of a contract, and the same bill to somebody else.
        let part = |amount: u32| json!({"amount": amount, "payee": "A", "contract": "C-1"});
        assert!(!likeness(&part(5), &part(6)).unwrap().is_double);
        let to =
            |amount: u32, payee: &str| json!({"amount": amount, "payee": payee, "invoice": "X"});
        assert!(!likeness(&to(5, "A"), &to(6, "B")).unwrap().is_double);
        // Similarities that cannot be seen are named.
        other =
            json!({"amount": 20_005, "payee": "S\u{430}me AG", "invoice": "x 1", "iban": "DE89"});
        assert_eq!(
            likeness(&one, &other).unwrap().same,
            "amount, payee (in other letters, which look alike), iban, invoice (written otherwise)"
        );
        // The same amount to another payee, and a request without a payee.
        let (five, six) = (json!({"amount": 5, "payee": "A"}), json!({"amount": 5, "payee": "B"}));
        assert!(!likeness(&five, &six).unwrap().is_double);
        assert!(likeness(&json!({"amount": 5}), &json!({"amount": 5})).unwrap().is_double);
        assert!(likeness(&five, &json!({"amount": 6, "payee": "B"})).is_none());
        assert!(likeness(&json!({}), &json!({})).is_none());
    }

    /// Hidden members and members with other names are also compared.
    #[test]
    fn no_other_member_hides_an_invoice() {
        let one = json!({"amount": 5, "payee": "A", "invoice": "RE-55"});
        let mut other = json!({"amount": 5, "payee": "B", "invoice": "RE-55"});
        for number in 10..50 {
            other[format!("aorder{number}")] = json!(number);
        }
        assert!(likeness(&other, &one).unwrap().is_double);
        let written = json!({"amount": 5, "p\u{430}yee": "A", "inv\u{43e}ice": "RE-55"});
        assert!(likeness(&written, &one).unwrap().is_double);
    }

    /// An agent chooses how many there are.
    #[test]
    fn of_many_payees_some_are_named_and_the_rest_is_counted() {
        let batch = |upper: bool, from: usize| {
            let payee = |number: usize| format!("{}-{number}", if upper { "ACME" } else { "acme" });
            json!({"amount": 5, "payees": (from..from + 20).map(payee).collect::<Vec<_>>()})
        };
        let found = likeness(&batch(true, 0), &batch(false, 10)).unwrap();
        assert!(
            found.same.starts_with("amount, payees[10] (written otherwise), "),
            "{}",
            found.same
        );
        assert!(
            found.same.ends_with("payees[17] (written otherwise), and 2 more"),
            "{}",
            found.same
        );
        assert_eq!((found.differs.len(), found.more), (SHOWN, 12));
    }
}
