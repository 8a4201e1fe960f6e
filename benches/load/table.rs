//! The rows as a Markdown table that is also readable as text.

use std::fmt::Write;

use crate::{
    machine::Machine,
    row::{Measurement, Report},
};

const HEADINGS: [&str; 10] = [
    "",
    "per second",
    "p50",
    "p99",
    "p99 at half load",
    "CPU µs: service",
    "Postgres",
    "generator",
    "resident",
    "in flight",
];

/// Above this share of the machine's CPU, the load of other processes is reported.
const NOTEWORTHY: f64 = 0.05;

pub(crate) fn page(machine: &Machine, seconds: u64, report: &Report) -> String {
    let Report { rows, tables, notes, .. } = report;
    let mut page = format!("{machine}; {seconds} s a row.\n");
    if !rows.is_empty() {
        page.push('\n');
        page.push_str(&grid(HEADINGS, rows.iter().map(cells)));
    }
    for table in tables {
        page.push('\n');
        page.push_str(table);
    }
    let notes: Vec<String> = rows.iter().flat_map(remarks).chain(notes.iter().cloned()).collect();
    if !notes.is_empty() {
        page.push('\n');
    }
    for note in notes {
        let _ = writeln!(page, "- {note}");
    }
    page
}

/// Returns a Markdown table with aligned columns.
pub(crate) fn grid<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let mut lines = vec![headings.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).max(3)
    });
    let mut page = String::new();
    for (number, line) in lines.iter().enumerate() {
        push_line(&mut page, line, &widths);
        if number == 0 {
            page.push('|');
            for (column, width) in widths.iter().enumerate() {
                let end = if column == 0 { '-' } else { ':' };
                page.extend(std::iter::repeat_n('-', width + 1));
                page.push(end);
                page.push('|');
            }
            page.push('\n');
        }
    }
    page
}

fn push_line(page: &mut String, line: &[String], widths: &[usize]) {
    page.push('|');
    for (column, (cell, &width)) in line.iter().zip(widths).enumerate() {
        let _ = if column == 0 {
            write!(page, " {cell:<width$} |")
        } else {
            write!(page, " {cell:>width$} |")
        };
    }
    page.push('\n');
}

fn cells(row: &Measurement) -> [String; 10] {
    [
        row.name.to_owned(),
        thousands(row.per_second),
        milliseconds(row.p50),
        milliseconds(row.p99),
        row.p99_at_half.map_or_else(String::new, milliseconds),
        format!("{:.1}", row.service),
        measured(row.postgres),
        measured(row.generator),
        format!("{} MB", row.resident / 1_000_000),
        format!("{} x {}", row.shape.connections, row.shape.streams),
    ]
}

/// Returns microseconds of CPU time; an empty text if a process of this kind did not run.
pub(crate) fn measured(micros: f64) -> String {
    if micros > 0.0 { format!("{micros:.1}") } else { String::new() }
}

fn remarks(row: &Measurement) -> impl Iterator<Item = String> {
    let Measurement { name, failed, others, .. } = row;
    let refused = (*failed > 0).then(|| format!("{name}: {failed} calls failed, not counted"));
    let noise = (*others > NOTEWORTHY)
        .then(|| format!("{name}: other processes used {:.0} % of the machine", others * 100.0));
    refused.into_iter().chain(noise)
}

pub(crate) fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:02} ms", microseconds / 1000, microseconds % 1000 / 10)
}

pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
