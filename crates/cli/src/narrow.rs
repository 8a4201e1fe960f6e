//! Formats a table that is wider than the terminal, without omitting values.
//!
//! The most important columns come first, in short form. Values without room in the row, and the
//! full id, follow below the row.

use authority_ids::IdParts;
use authority_process::clock::Clock;
use serde_json::Value;

use crate::{
    cells::{GAP, aligned, cell, each, short_form, widths},
    text::{NOTHING, plain},
    view::View,
};

/// The most important members, in order. Other members follow in the list's own order.
const FIRST: [&str; 25] = [
    "evaluated_at",
    "until",
    "created_at",
    "before",
    "after",
    "decision",
    "state",
    "status",
    "who",
    "subject",
    "subject_id",
    "actor_id",
    "delegate_id",
    "display_name",
    "what",
    "about",
    "name",
    "action",
    "actions",
    "reason_code",
    "why",
    "reason",
    "approvals",
    "version",
    "delegator_id",
];
const INDENT: &str = "  ";
/// Decisions and their short names.
const WORDS: [(&str, &str); 2] =
    [("allow_with_constraints", "allow"), ("require_approval", "held")];

/// Formats these members of the records for a terminal of `width` columns. The first member is the
/// id.
pub(crate) fn text(columns: &[&str], records: &[Value], width: u16, view: View) -> String {
    let Some((id, others)) = columns.split_first() else { return String::new() };
    let mut names = others.to_vec();
    // The sort is stable: members that are not in `FIRST` keep their order.
    names.sort_by_key(|name| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    let shown = |record: &Value| names.iter().map(|name| short(&record[*name], view)).collect();
    let rows: Vec<Vec<String>> = records.iter().map(shown).collect();
    let header: Vec<_> = names.iter().map(|name| heading(name).to_uppercase()).collect();
    let beside = beside(&widths(&header, &rows), width);
    let chosen = |row: &Vec<String>| pick(row, &beside, true);
    let main = aligned(&chosen(&header), &rows.iter().map(chosen).collect::<Vec<_>>());
    let mut main = main.lines();
    let mut lines: Vec<_> = main.next().map(str::to_owned).into_iter().collect();
    for (record, row) in records.iter().zip(&rows) {
        // The table has no lines if the terminal has no room for any column.
        lines.extend(main.next().map(str::to_owned));
        let names: Vec<_> = names.iter().map(|name| heading(name).to_owned()).collect();
        let values = pick(row, &beside, false);
        let below = pick(&names, &beside, false).into_iter().zip(values);
        let below = below.filter(|(_, value)| value != NOTHING);
        lines.extend(flowing(below.map(|(name, value)| format!("{name}: {value}")), width));
        lines.push(format!("{INDENT}{}", cell(&record[*id], view)));
    }
    lines.join("\n")
}

/// Selects the columns that fit next to each other, each with its longest value.
fn beside(widths: &[u16], width: u16) -> Vec<bool> {
    let mut used = 0_u16;
    let fits = |natural: &u16| {
        let with_it = used.saturating_add(*natural);
        let is_room = with_it <= width;
        if is_room {
            used = with_it.saturating_add(GAP);
        }
        is_room
    };
    widths.iter().map(fits).collect()
}

fn pick(of: &[String], beside: &[bool], wanted: bool) -> Vec<String> {
    let chosen = of.iter().zip(beside).filter(|(_, is_beside)| **is_beside == wanted);
    chosen.map(|(text, _)| text.clone()).collect()
}

/// Arranges texts one after the other on indented lines, without breaking words.
fn flowing(texts: impl Iterator<Item = String>, width: u16) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let room = |line: &String, text: &str, gap: usize| {
        line.chars().count() + gap + text.chars().count() <= usize::from(width)
    };
    // A text that takes several lines is the last text on its last line.
    let mut is_open = false;
    for text in texts {
        if let Some(line) =
            lines.last_mut().filter(|line| is_open && room(line, &text, INDENT.len()))
        {
            line.extend([INDENT, &text]);
            continue;
        }

        let before = lines.len() + 1;
        let mut words = text.split(' ');
        lines.push(format!("{INDENT}{}", words.next().unwrap_or_default()));
        for word in words {
            match lines.last_mut().filter(|line| room(line, word, 1)) {
                Some(line) => line.extend([" ", word]),
                None => lines.push(format!("{INDENT}{INDENT}{word}")),
            }
        }
        is_open = lines.len() == before;
    }
    lines
}

/// The member's name without a suffix for its type.
fn heading(name: &str) -> &str {
    let ending = ["_at", "_id", "_code"].into_iter().find(|ending| name.ends_with(ending));
    ending.and_then(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

fn short(value: &Value, view: View) -> String {
    each(short_form(value), &|text| shortened(text, view))
}

/// Shortens a time, an agent, a tenant or a decision; other text is unchanged.
fn shortened(text: &str, view: View) -> String {
    if let Some(time) = view.near(text, Clock::default().now()) {
        return time;
    }
    plain(named(text).unwrap_or_else(|| word(text)))
}

/// The short name of a decision. Any other text is unchanged.
pub(crate) fn word(text: &str) -> &str {
    WORDS.iter().find(|(long, _)| *long == text).map_or(text, |(_, short)| short)
}

/// The name in the id of an agent or a tenant. Other ids have none.
pub(crate) fn named(id: &str) -> Option<&str> {
    match (IdParts::of(id)?.kind, id.split(':').count()) {
        ("agent", 4) | ("tenant", 3) => id.rsplit(':').next(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::cells::with_short, *};

    const VIEW: View = View { json: false, utc: true };

    #[test]
    fn at_80_columns_a_decision_says_when_what_of_whom_and_why() {
        let columns =
            ["decision_id", "decision", "reason_code", "subject", "action", "evaluated_at"];
        let id = format!("svc:decision:01a1fb92{}", "c".repeat(56));
        let one = |decision: &str, reason: &str| {
            json!({"decision_id": id, "decision": decision, "reason_code": reason,
                   "subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
                   "evaluated_at": "2025-11-21T00:48:45.099622Z"})
        };
        let records = [
            one("allow_with_constraints", "permission_granted"),
            one("require_approval", "approval_threshold_breach"),
        ];
        let expected = format!(
            "\
EVALUATED    DECISION  SUBJECT      ACTION           REASON
21 Nov 2025  allow     invoice-bot  payment.execute  permission_granted
  {id}
21 Nov 2025  held      invoice-bot  payment.execute  approval_threshold_breach
  {id}"
        );
        assert_eq!(text(&columns, &records, 80, VIEW), expected);
    }

    #[test]
    fn what_has_no_room_stands_below_whole_and_no_word_is_broken() {
        let id = format!("svc:ent:acme:stop_signal:{}", "0".repeat(32));
        let by = format!("svc:ent:acme:principal:{}", "1".repeat(32));
        let reason = "pays the same invoice twice, and then the next one as well as that before";
        let columns = ["id", "state", "actor_id", "reason", "created_by", "created_at"];
        let records = [json!({"id": id, "state": "active", "reason": reason, "created_by": by,
            "actor_id": "svc:agent:acme:invoice-bot", "created_at": "2025-01-02T00:00:00Z"})];
        for width in 20..200 {
            let table = text(&columns, &records, width, VIEW);
            let words: Vec<_> = table.split_whitespace().collect();
            for word in reason.split(' ').chain([&*id, &*by, "active", "invoice-bot"]) {
                assert!(words.contains(&word), "{word} at {width}\n{table}");
            }
            // Only a single word can be longer than the terminal is wide.
            let long = |line: &str| line.chars().count() > usize::from(width);
            let is_word = |line: &str| line.split_whitespace().count() <= 2;
            assert!(table.lines().all(|line| !long(line) || is_word(line)), "{width}\n{table}");
            assert_eq!(table.lines().last(), Some(&*format!("  {id}")));
        }
        let at_80 = text(&columns, &records, 80, VIEW);
        assert!(at_80.starts_with("CREATED     STATE   ACTOR\n2 Jan 2025  active"), "{at_80}");
        assert!(at_80.contains(&format!("\n  created_by: {by}\n")), "{at_80}");
    }

    #[test]
    fn a_person_knows_a_short_form() {
        for (whole, expected) in [
            ("svc:agent:acme:invoice-bot", "invoice-bot"),
            ("svc:tenant:acme", "acme"),
            ("svc:ent:acme:principal:01a1", "svc:ent:acme:principal:01a1"),
            ("require_approval", "held"),
            ("pay (all) of it", "pay (all) of it"),
            ("a\nb", r"a\nb"),
        ] {
            assert_eq!(shortened(whole, VIEW), expected);
        }
        let list = json!(["svc:agent:acme:a", "payment.*"]);
        assert_eq!(short(&list, VIEW), "a,payment.*");
        let until = with_short("2025-11-21T00:48:45Z (in 23 h)", "in 23 h");
        assert_eq!(short(&until, VIEW), "in 23 h");
        assert_eq!(cell(&until, VIEW), "2025-11-21T00:48:45Z (in 23 h)");
        assert_eq!(
            ["created_at", "reason_code", "name"].map(heading),
            ["created", "reason", "name"]
        );
    }
}
