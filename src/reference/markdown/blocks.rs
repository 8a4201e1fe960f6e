//! Blocks: headings, paragraphs, lists, tables, quotes and code.

use std::{collections::HashMap, iter, mem};

use super::{Page, Section, escape, inline::plain};

impl Page<'_> {
    /// Renders the blocks of a page, a quote or a list item. The paragraphs of a tight list item
    /// have no element.
    pub(super) fn blocks(&mut self, lines: &[&str], is_tight: bool) {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let rest = &lines[at..];
            at += if line.trim().is_empty() || definition(line).is_some() {
                1
            } else if indent(line) >= 4 {
                self.indented(rest)
            } else if let Some(fence) = Fence::of(line) {
                self.fenced(rest, &fence)
            } else if let Some((level, text)) = heading(line) {
                self.heading(level, text);
                1
            } else if line.trim_start().starts_with("<!--") {
                1 + rest.iter().position(|line| line.contains("-->")).unwrap_or(rest.len())
            } else if is_rule(line) {
                self.push("<hr>\n");
                1
            } else if line.trim_start().starts_with('>') {
                self.quote(rest)
            } else if let Some(marker) = Marker::of(line) {
                self.list(rest, &marker)
            } else if let Some(columns) = table(rest) {
                self.table(rest, columns)
            } else {
                self.paragraph(rest, is_tight)
            };
        }
    }

    fn push(&mut self, html: &str) {
        self.rendered.html.push_str(html);
    }

    fn inline(&mut self, text: &str) {
        let html = self.spans(text);
        self.push(&html);
    }

    fn code(&mut self, lines: &[&str]) {
        self.push("<pre tabindex=\"0\">");
        escape(&mut self.rendered.html, &lines.join("\n"));
        self.push("</pre>\n");
    }

    fn indented(&mut self, lines: &[&str]) -> usize {
        let within = |line: &&&str| line.trim().is_empty() || indent(line) >= 4;
        let all: Vec<_> = lines.iter().take_while(within).map(|line| unindented(line, 4)).collect();
        let last = all.iter().rposition(|line| !line.trim().is_empty()).unwrap_or(0);
        self.code(&all[..=last]);
        all.len()
    }

    fn fenced(&mut self, lines: &[&str], fence: &Fence) -> usize {
        let inner = lines[1..].iter().take_while(|line| !fence.ends_at(line));
        let inner: Vec<_> = inner.map(|line| unindented(line, fence.indent)).collect();
        self.code(&inner);
        inner.len() + 2
    }

    fn heading(&mut self, level: usize, text: &str) {
        let plain = plain(text);
        let id = self.id(&plain);
        self.push(&format!("<h{level} id=\"{id}\">"));
        self.inline(text);
        self.push(&format!("</h{level}>\n"));
        if level == 2 {
            self.rendered.sections.push(Section { id, text: plain });
        } else if level == 1 && self.rendered.title.is_empty() {
            self.rendered.title = plain;
        }
    }

    /// Returns a heading's id, as GitHub makes it: the second of equal ids ends with `-1`.
    fn id(&mut self, heading: &str) -> String {
        let lower = heading.trim().to_lowercase();
        let kept = lower.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            other => other.is_alphanumeric().then_some(other),
        });
        let id: String = kept.collect();
        let earlier = self.ids.entry(id.clone()).or_insert(0);
        *earlier += 1;
        if *earlier == 1 { id } else { format!("{id}-{}", *earlier - 1) }
    }

    fn quote(&mut self, lines: &[&str]) -> usize {
        let quoted = lines.iter().map_while(|line| line.trim_start().strip_prefix('>'));
        let quoted: Vec<_> = quoted.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        self.push("<blockquote>\n");
        self.blocks(&quoted, false);
        self.push("</blockquote>\n");
        quoted.len()
    }

    fn list(&mut self, lines: &[&str], first: &Marker) -> usize {
        let (items, used) = items(lines, first);
        let is_loose = items.iter().enumerate().any(|(at, item)| {
            let end = item.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            let is_last = at + 1 == items.len();
            item[..end].contains(&"") || (!is_last && end < item.len())
        });
        let element = if first.number.is_some() { "ol" } else { "ul" };
        match first.number {
            Some(number) if number != 1 => self.push(&format!("<ol start=\"{number}\">\n")),
            _ => self.push(&format!("<{element}>\n")),
        }
        for item in items {
            self.push("<li>");
            self.blocks(&item, !is_loose);
            self.push("</li>\n");
        }
        self.push(&format!("</{element}>\n"));
        used
    }

    fn table(&mut self, lines: &[&str], columns: usize) -> usize {
        let rows = lines.iter().take_while(|line| line.contains('|')).count();
        self.push("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">\n<table>\n<thead><tr>");
        for cell in cells(lines[0]) {
            self.push("<th scope=\"col\">");
            self.inline(&cell);
            self.push("</th>");
        }
        self.push("</tr></thead>\n<tbody>\n");
        for line in &lines[2..rows] {
            self.push("<tr>");
            let cells = cells(line).into_iter().chain(iter::repeat(String::new()));
            for cell in cells.take(columns) {
                self.push("<td>");
                self.inline(&cell);
                self.push("</td>");
            }
            self.push("</tr>\n");
        }
        self.push("</tbody>\n</table>\n</div>\n");
        rows
    }

    fn paragraph(&mut self, lines: &[&str], is_tight: bool) -> usize {
        let more = lines[1..].iter().take_while(|line| !ends_paragraph(line));
        let used = 1 + more.count();
        let text: Vec<_> = lines[..used].iter().map(|line| line.trim_start()).collect();
        let text = text.join("\n");
        let (before, after) = if is_tight { ("", "") } else { ("<p>", "</p>\n") };
        // A block after the text of a tight item begins on its own line.
        let after = if is_tight && used < lines.len() { "\n" } else { after };
        self.push(before);
        self.inline(text.trim_end());
        self.push(after);
        used
    }
}

/// The destinations of `[label]: destination`, by lower-case label.
pub(super) fn references<'a>(lines: &[&'a str]) -> HashMap<String, &'a str> {
    lines.iter().filter_map(|line| definition(line)).collect()
}

fn definition(line: &str) -> Option<(String, &str)> {
    let (label, to) = line.strip_prefix('[')?.split_once("]: ")?;
    let is_one = !label.contains([']', '[']) && !to.trim().contains(' ');
    is_one.then(|| (label.to_lowercase(), to.trim()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn unindented(line: &str, most: usize) -> &str {
    &line[indent(line).min(most)..]
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start().trim_start_matches('#');
    let level = line.trim_start().len() - rest.len();
    let text = rest.strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, text.trim()))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && ['-', '*', '_'].iter().any(|mark| line.chars().all(|found| found == *mark))
}

fn ends_paragraph(line: &str) -> bool {
    let starts_list = Marker::of(line).is_some_and(|marker| marker.number.is_none_or(|n| n == 1));
    line.trim().is_empty()
        || (indent(line) < 4
            && (Fence::of(line).is_some()
                || heading(line).is_some()
                || is_rule(line)
                || line.trim_start().starts_with('>')
                || line.trim_start().starts_with("<!--")
                || starts_list))
}

/// The beginning of a fenced block.
struct Fence {
    indent: usize,
    mark: char,
    length: usize,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
        let length = text.len() - text.trim_start_matches(mark).len();
        let is_fence = length >= 3 && !(mark == '`' && text[length..].contains('`'));
        is_fence.then(|| Self { indent: indent(line), mark, length })
    }

    fn ends_at(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|found| found == self.mark)
    }
}

/// The beginning of a list item.
struct Marker {
    /// `-`, `*`, `+`, `.` or `)`.
    mark: char,
    number: Option<u32>,
    /// The column of the item's text.
    column: usize,
}

impl Marker {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let digits = text.len() - text.trim_start_matches(|at: char| at.is_ascii_digit()).len();
        let number = text[..digits].parse().ok();
        let mark = text[digits..].chars().next()?;
        let marks: &[char] = if number.is_some() { &['.', ')'] } else { &['-', '*', '+'] };
        let after = &text[digits + mark.len_utf8()..];
        let is_item = marks.contains(&mark) && (after.is_empty() || after.starts_with(' '));
        let spaces = if (1..=4).contains(&indent(after)) { indent(after) } else { 1 };
        (is_item && indent(line) < 4 && !is_rule(line)).then(|| Self {
            mark,
            number,
            column: indent(line) + digits + 1 + spaces,
        })
    }
}

/// Returns the lines of each item without their indentation, and the number of lines of the list.
fn items<'a>(lines: &[&'a str], first: &Marker) -> (Vec<Vec<&'a str>>, usize) {
    let mut items: Vec<Vec<&str>> = Vec::new();
    let (mut column, mut used) = (0, 0);
    for line in lines {
        let after_blank =
            items.last().and_then(|item| item.last()).is_some_and(|line| line.is_empty());
        if line.trim().is_empty() {
            let Some(item) = items.last_mut() else { break };
            item.push("");
        } else if let Some(item) = items.last_mut().filter(|_| indent(line) >= column) {
            item.push(unindented(line, column));
        } else if let Some(marker) = Marker::of(line).filter(|marker| marker.mark == first.mark) {
            column = marker.column;
            items.push(vec![line.get(column..).unwrap_or_default()]);
        } else if let Some(item) =
            items.last_mut().filter(|_| !after_blank && !ends_paragraph(line))
        {
            // The paragraph's next line needs no indentation.
            item.push(line.trim_start());
        } else {
            break;
        }
        used += 1;
    }
    (items, used)
}

/// The number of columns, if a table begins here.
fn table(lines: &[&str]) -> Option<usize> {
    let [head, rule, ..] = lines else { return None };
    let columns = cells(rule);
    let is_rule = columns.iter().all(|cell| {
        let dashes = cell.trim_start_matches(':').trim_end_matches(':');
        !dashes.is_empty() && dashes.chars().all(|found| found == '-')
    });
    let is_table = head.contains('|') && rule.contains('|') && is_rule;
    (is_table && cells(head).len() == columns.len()).then_some(columns.len())
}

/// The cells of a row. `\|` is a bar within a cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').filter(|line| !line.ends_with('\\')).unwrap_or(line);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&'|').is_some() => cell.push('|'),
            '|' => cells.push(mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    cells.push(cell);
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}
