//! Finds names in a text that don't exist. A forbid on such a name never applies, and the mistake
//! would go unnoticed.
//!
//! Words of closed sets, such as risk tiers and countries, belong to the service: a word outside
//! its set is an error. Actions, teams, principals, resources, purposes and delegations may be
//! created later: if the tenant lacks the name, the result is a warning. A currency outside ISO
//! 4217 is also a warning. The id of a delegation that renews another one is an error, because it
//! can never match.

use std::collections::BTreeSet;

use authority_ids::DelegationId;
use cedar_policy_core::ast::{BinaryOp, Expr, ExprKind, Literal, Pattern, PatternElem, Var};

use super::{
    fault::{Fault, Severity},
    known::{Known, Name, NameKind},
    misspelt::nearest,
    uses::{self, Span},
};
use crate::{
    levels::{EffectClass, OversightMode, PrincipalClass, Reversibility, RiskTier},
    request::{currency, jurisdiction},
};

/// The maximum number of names of a text to look up. All delegations are looked up, because their
/// names can be errors.
const MOST: usize = 256;

/// The values that a text field may have.
#[derive(Clone, Copy)]
enum Words {
    /// A word of a closed set.
    Of(&'static str, fn() -> Vec<&'static str>),
    Country,
    Subdivision,
    Currency,
    Name(NameKind),
}

/// Returns the names in a text that the tenant may lack.
pub(super) fn named(conditions: &[Expr]) -> BTreeSet<Name> {
    let literals = conditions.iter().flat_map(literals).map(|(name, _)| name);
    let words =
        conditions.iter().flat_map(comparisons).filter_map(|(words, text, _)| match words {
            Words::Name(kind) => Some(Name::new(kind, text)),
            _ => None,
        });
    let patterns = conditions.iter().flat_map(delegation_patterns);
    let patterns = patterns.chain(conditions.iter().flat_map(delegation_texts));
    let patterns = patterns.map(|(text, _)| Name::new(NameKind::Delegation, text));
    // No name contains U+0000, and Postgres doesn't accept it.
    let names = literals.chain(words).chain(patterns).filter(|one| !one.name.contains('\0'));
    let mut others = 0;
    let is_looked_up = |one: &Name| {
        others += usize::from(one.kind != NameKind::Delegation);
        one.kind == NameKind::Delegation || others <= MOST
    };
    names.filter(is_looked_up).collect()
}

/// Returns the names that do not exist.
pub(super) fn unknown(conditions: &[Expr], known: &Known) -> Vec<Fault> {
    let missing = |name: &Name, span: Span| {
        let near = known.missing.get(name)?;
        let suggestion = near.as_ref().map(|near| format!("did you mean `{near}`?"));
        Some(Fault { span, severity: Severity::Warning, problem: name.problem(), suggestion })
    };
    let mut found = Vec::new();
    for condition in conditions {
        found.extend(literals(condition).filter_map(|(name, span)| missing(&name, span)));
        for (words, text, span) in comparisons(condition) {
            found.extend(match words {
                Words::Name(kind) => missing(&Name::new(kind, text), span),
                Words::Currency => foreign_money(&text, span),
                _ => None,
            });
        }
    }
    found
}

/// Reports the ids of renewals that a condition may compare with `context.delegation`.
///
/// Such a comparison never matches: policies see the first delegation of the line instead.
pub(super) fn renewed(conditions: &[Expr], known: &Known) -> Vec<Fault> {
    let compared = conditions.iter().flat_map(comparisons).filter_map(|(words, text, span)| {
        matches!(words, Words::Name(NameKind::Delegation)).then_some((text, span))
    });
    let others = conditions.iter().flat_map(delegation_patterns);
    let others = others.chain(conditions.iter().flat_map(delegation_texts));
    let mut spans = BTreeSet::new();
    let found = compared.chain(others).filter_map(|(text, span)| {
        let first = known.renewed.get(&text).filter(|_| spans.insert(span))?;
        Some(Fault {
            span,
            severity: Severity::Error,
            problem: format!(
                "the delegation `{text}` renews another one, and policies see the id of the \
                 first of its line"
            ),
            suggestion: Some(format!("write `{first}`, which applies to the whole line")),
        })
    });
    found.collect()
}

/// Returns the words outside their closed set.
pub(super) fn misplaced(conditions: &[Expr]) -> Vec<Fault> {
    let words = conditions.iter().flat_map(comparisons);
    let mut found: Vec<_> =
        words.filter_map(|(words, text, span)| closed(words, &text, span)).collect();
    found.extend(conditions.iter().flat_map(Expr::subexpressions).filter_map(unlike));
    found
}

fn closed(words: Words, text: &str, span: Span) -> Option<Fault> {
    let (problem, suggestion) = match words {
        Words::Of(what, all) => {
            let all = all();
            if all.contains(&text) {
                return None;
            }
            let near = nearest(text, all.iter().copied());
            let near = near.map(|near| format!("did you mean `{near}`?"));
            let each = || format!("write one of {}", all.join(", "));
            (format!("`{text}` is not a valid {what}"), near.unwrap_or_else(each))
        }
        // A text with a hyphen is reported as a fault of the statement.
        Words::Country if !text.contains('-') => of_place(text)?,
        Words::Subdivision if jurisdiction::subdivision(text).is_none() => {
            let problem = format!("`{text}` is not a subdivision of ISO 3166, such as `DE-BY`");
            (problem, "compare `context.jurisdiction` with a country".to_owned())
        }
        Words::Subdivision => of_place(text)?,
        _ => return None,
    };
    Some(Fault { span, severity: Severity::Error, problem, suggestion: Some(suggestion) })
}

fn of_place(text: &str) -> Option<(String, String)> {
    let likely = jurisdiction::likely(text);
    let meant =
        likely.map_or("write a country's code".to_owned(), |code| format!("write `{code}`"));
    Some((jurisdiction::problem(text)?, meant))
}

fn foreign_money(text: &str, span: Span) -> Option<Fault> {
    if currency::is_standard(text) {
        return None;
    }
    let upper = text.to_ascii_uppercase();
    let same = currency::is_standard(&upper).then_some(upper);
    let near = same.or_else(|| nearest(text, currency::standard()).map(str::to_owned));
    Some(Fault {
        span,
        severity: Severity::Warning,
        problem: format!("`{text}` is not a currency of ISO 4217"),
        suggestion: near.map(|near| format!("did you mean `{near}`?")),
    })
}

/// Reports a pattern that does not match any word of the closed set.
fn unlike(expression: &Expr) -> Option<Fault> {
    let ExprKind::Like { expr, pattern } = expression.expr_kind() else { return None };
    let Words::Of(what, all) = words_of(expr)? else { return None };
    let all = all();
    let matches = |pattern: &Pattern| all.iter().any(|word| pattern.wildcard_match(word));
    (!matches(pattern)).then(|| Fault {
        span: uses::span(expression),
        severity: Severity::Error,
        problem: format!("no {what} matches the pattern `{pattern}`"),
        suggestion: Some(format!("the known ones are {}", all.join(", "))),
    })
}

/// Returns the entities that an expression names.
fn literals(condition: &Expr) -> impl Iterator<Item = (Name, Span)> {
    // An action after `in` represents all actions below it.
    let groups = condition.subexpressions().filter_map(|one| match one.expr_kind() {
        ExprKind::BinaryApp { op: BinaryOp::In, arg2, .. } => Some(arg2),
        _ => None,
    });
    let groups: BTreeSet<*const Expr> =
        groups.flat_map(|arg| arg.subexpressions()).map(std::ptr::from_ref).collect();
    condition.subexpressions().filter_map(move |one| {
        let ExprKind::Lit(Literal::EntityUID(uid)) = one.expr_kind() else { return None };
        let kind = match uid.entity_type().to_string().as_str() {
            "Svc::Action" if groups.contains(&std::ptr::from_ref(one)) => NameKind::Actions,
            "Svc::Action" => NameKind::Action,
            "Svc::Team" => NameKind::Team,
            "Svc::Principal" => NameKind::Principal,
            "Svc::Resource" => NameKind::Resource,
            _ => return None,
        };
        let name: &str = uid.eid().as_ref();
        let own = uid.loc().map(|loc| (loc.start(), loc.end() - loc.start()));
        Some((Name::new(kind, name), own.unwrap_or_else(|| uses::span(one))))
    })
}

/// Returns the patterns that `context.delegation` is matched with, without their wildcards.
fn delegation_patterns(condition: &Expr) -> impl Iterator<Item = (String, Span)> {
    condition.subexpressions().filter_map(|one| {
        let ExprKind::Like { expr, pattern } = one.expr_kind() else { return None };
        let Words::Name(NameKind::Delegation) = words_of(expr)? else { return None };
        let letters = pattern.iter().filter_map(|part| match part {
            PatternElem::Char(letter) => Some(*letter),
            PatternElem::Wildcard => None,
        });
        Some((letters.collect(), uses::span(one)))
    })
}

/// Returns the ids of delegations in a condition that reads `context.delegation`. The condition may
/// compare the ids with this field in many ways, such as through a record.
fn delegation_texts(condition: &Expr) -> impl Iterator<Item = (String, Span)> {
    let reads = condition.subexpressions().any(reads_delegation);
    condition.subexpressions().filter(move |_| reads).filter_map(|one| match one.expr_kind() {
        ExprKind::Lit(Literal::String(text)) if DelegationId::parse(text).is_ok() => {
            Some((text.to_string(), uses::span(one)))
        }
        _ => None,
    })
}

/// Whether the expression reads `context.delegation`, also of a context inside a record or an `if`.
/// A field `delegation` of the request's own context, `context.input`, is another one.
fn reads_delegation(expression: &Expr) -> bool {
    let ExprKind::GetAttr { expr, attr } = expression.expr_kind() else { return false };
    let is_input = |one: &Expr| match one.expr_kind() {
        ExprKind::GetAttr { attr, .. } => attr.as_str() == "input",
        _ => false,
    };
    let is_context = |one: &Expr| matches!(one.expr_kind(), ExprKind::Var(Var::Context));
    attr.as_str() == "delegation"
        && expr.subexpressions().any(is_context)
        && !expr.subexpressions().any(is_input)
}

/// Returns each text that is compared with a field of words.
fn comparisons(condition: &Expr) -> impl Iterator<Item = (Words, String, Span)> {
    condition.subexpressions().flat_map(|one| {
        let ExprKind::BinaryApp { op, arg1, arg2 } = one.expr_kind() else { return Vec::new() };
        let compares = matches!(
            op,
            BinaryOp::Eq | BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny
        );
        if !compares {
            return Vec::new();
        }
        let (left, right) = (Side::of(arg1), Side::of(arg2));
        [left.compared_with(&right), right.compared_with(&left)].concat()
    })
}

/// The fields and the texts that are possible values of one side of a comparison.
#[derive(Default)]
struct Side {
    words: Vec<Words>,
    texts: Vec<(String, Span)>,
}

impl Side {
    fn of(expression: &Expr) -> Self {
        let mut side = Self::default();
        side.take(expression);
        side
    }

    fn take(&mut self, expression: &Expr) {
        self.words.extend(words_of(expression));
        match expression.expr_kind() {
            ExprKind::Lit(Literal::String(text)) => {
                self.texts.push((text.to_string(), uses::span(expression)));
            }
            ExprKind::Set(items) => items.iter().for_each(|item| self.take(item)),
            ExprKind::If { then_expr, else_expr, .. } => {
                self.take(then_expr);
                self.take(else_expr);
            }
            _ => {}
        }
    }

    /// Pairs each field with the other side's texts.
    ///
    /// A text on the field's own side is a replacement for an absent field. If the other side
    /// compares with this text, the text is not paired with the field.
    fn compared_with(&self, other: &Self) -> Vec<(Words, String, Span)> {
        let own = |text: &str| self.texts.iter().any(|(own, _)| own == text);
        let texts = other.texts.iter().filter(|(text, _)| !own(text));
        let each = texts.flat_map(|(text, span)| {
            self.words.iter().map(move |words| (*words, text.clone(), *span))
        });
        each.collect()
    }
}

fn words_of(expression: &Expr) -> Option<Words> {
    let ExprKind::GetAttr { expr, attr } = expression.expr_kind() else { return None };
    let ExprKind::Var(var) = expr.expr_kind() else { return None };
    Some(match (var, attr.as_str()) {
        (Var::Principal, "class") => Words::Of("class of a principal", || {
            PrincipalClass::ALL.iter().map(|one| one.word()).collect()
        }),
        (Var::Resource, "kind") => Words::Name(NameKind::ResourceKind),
        (Var::Context, "purpose") => Words::Name(NameKind::Purpose),
        (Var::Context, "delegation") => Words::Name(NameKind::Delegation),
        (Var::Context, "currency") => Words::Currency,
        (Var::Context, "jurisdiction") => Words::Country,
        (Var::Context, "subdivision") => Words::Subdivision,
        (Var::Context, "risk_tier") => {
            Words::Of("risk tier", || RiskTier::ALL.iter().map(|one| one.word()).collect())
        }
        (Var::Context, "effect_class") => {
            Words::Of("effect class", || EffectClass::ALL.iter().map(|one| one.word()).collect())
        }
        (Var::Context, "reversibility") => {
            Words::Of("reversibility", || Reversibility::ALL.iter().map(|one| one.word()).collect())
        }
        (Var::Context, "oversight") => {
            Words::Of("oversight", || OversightMode::ALL.iter().map(|one| one.word()).collect())
        }
        _ => return None,
    })
}
