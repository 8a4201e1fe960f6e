//! Markdown as HTML: `CommonMark` and GitHub's tables.
//!
//! HTML in the Markdown is text, and images are their descriptions: the output contains only the
//! elements of Markdown. Comments are omitted.

use std::{collections::HashMap, fmt::Write as _};

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

/// The target of a link.
pub(super) enum Target {
    /// An address for `href`.
    Address(String),
    /// A file that is not served, by its path in the source.
    Source(String),
}

/// A page's text as HTML.
pub(super) struct Rendered {
    pub(super) html: String,
    /// The first heading's text.
    pub(super) title: String,
    /// The headings of the second level.
    pub(super) sections: Vec<Section>,
}

/// A heading, and its id on the page.
pub(super) struct Section {
    pub(super) id: String,
    pub(super) text: String,
}

/// Renders a page. `target` resolves the destination of a link that is not a URL.
pub(super) fn render(text: &str, target: &dyn Fn(&str) -> Target) -> Rendered {
    let events = events(text);
    let mut page = Page {
        target,
        ids: HashMap::new(),
        title: String::new(),
        sections: Vec::new(),
        in_table_head: false,
        link_end: String::new(),
        html: String::new(),
    };
    for (at, event) in events.iter().enumerate() {
        page.add(event, &events[at + 1..]);
    }
    Rendered { html: page.html, title: page.title, sections: page.sections }
}

/// Parses a page, with HTML as text and without comments.
fn events(text: &str) -> Vec<Event<'_>> {
    let mut in_comment = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        // A block of HTML has an event for each line.
        Event::Html(html) | Event::InlineHtml(html) => {
            let is_comment = in_comment || html.trim_start().starts_with("<!--");
            in_comment = is_comment && !html.contains("-->");
            (!is_comment).then_some(Event::Text(html))
        }
        other => Some(other),
    });
    events.collect()
}

struct Page<'a> {
    target: &'a dyn Fn(&str) -> Target,
    /// The number of headings by id.
    ids: HashMap<String, usize>,
    title: String,
    sections: Vec<Section>,
    in_table_head: bool,
    /// The HTML that ends the current link.
    link_end: String,
    html: String,
}

impl Page<'_> {
    /// Adds an event. `rest` are the events after it.
    fn add(&mut self, event: &Event, rest: &[Event]) {
        match event {
            Event::Start(tag) => self.start(tag, rest),
            Event::End(tag) => self.end(*tag),
            Event::Text(text) => self.text(text),
            Event::Code(text) => self.code(text),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br />\n"),
            Event::Rule => self.block("<hr />\n"),
            // The parser's other extensions are off.
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag, rest: &[Event]) {
        match tag {
            Tag::Paragraph => self.block("<p>"),
            Tag::Heading { level, .. } => self.heading(*level, rest),
            Tag::BlockQuote(_) => self.block("<blockquote>\n"),
            Tag::CodeBlock(_) => self.block("<pre tabindex=\"0\">"),
            Tag::List(None) => self.block("<ul>\n"),
            Tag::List(Some(1)) => self.block("<ol>\n"),
            Tag::List(Some(first)) => self.block(&format!("<ol start=\"{first}\">\n")),
            Tag::Item => self.block("<li>"),
            // Columns are not aligned: the content security policy permits no style attribute.
            Tag::Table(_) => self.block(
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">\n<table>",
            ),
            Tag::TableHead => {
                self.in_table_head = true;
                self.html.push_str("<thead><tr>");
            }
            Tag::TableRow => self.html.push_str("<tr>"),
            Tag::TableCell if self.in_table_head => self.html.push_str("<th scope=\"col\">"),
            Tag::TableCell => self.html.push_str("<td>"),
            Tag::Emphasis => self.html.push_str("<em>"),
            Tag::Strong => self.html.push_str("<strong>"),
            Tag::Link { link_type, dest_url, .. } => self.link(*link_type, dest_url, rest),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let html = match tag {
            TagEnd::Paragraph => "</p>\n",
            TagEnd::Heading(level) => {
                let _ = writeln!(self.html, "</{level}>");
                return;
            }
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::CodeBlock => "</pre>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</tbody></table>\n</div>\n",
            TagEnd::TableHead => {
                self.in_table_head = false;
                "</tr></thead><tbody>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell if self.in_table_head => "</th>",
            TagEnd::TableCell => "</td>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Link => {
                self.html.push_str(&std::mem::take(&mut self.link_end));
                return;
            }
            _ => return,
        };
        self.html.push_str(html);
    }

    /// Adds the beginning of an element that begins a line.
    fn block(&mut self, html: &str) {
        if !self.html.is_empty() && !self.html.ends_with('\n') {
            self.html.push('\n');
        }
        self.html.push_str(html);
    }

    fn text(&mut self, text: &str) {
        self.html.push_str(&escaped(text));
    }

    fn code(&mut self, text: &str) {
        let _ = write!(self.html, "<code>{}</code>", escaped(text));
    }

    fn heading(&mut self, level: HeadingLevel, rest: &[Event]) {
        let text = text_before(TagEnd::Heading(level), rest);
        let id = self.id(&text);
        self.block(&format!("<{level} id=\"{id}\">"));
        if level == HeadingLevel::H2 {
            self.sections.push(Section { id, text });
        } else if level == HeadingLevel::H1 && self.title.is_empty() {
            self.title = text;
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

    /// Adds the beginning of a link, unless it has another scheme, such as `javascript:`, or leads
    /// to a file that is not served.
    fn link(&mut self, link_type: LinkType, to: &str, rest: &[Event]) {
        let scheme = to.split(['/', '#']).next().filter(|first| first.contains(':'));
        let address = match scheme {
            Some("http:" | "https:") => to.to_owned(),
            Some(_) => return,
            None if link_type == LinkType::Email => return,
            None if to.starts_with(['#', '/']) => to.to_owned(),
            None => match (self.target)(to) {
                Target::Address(address) => address,
                Target::Source(path) => {
                    if text_before(TagEnd::Link, rest) != path {
                        self.link_end = format!(" (<code>{}</code> in the source)", escaped(&path));
                    }
                    return;
                }
            },
        };
        let _ = write!(self.html, "<a href=\"{}\">", escaped(&address));
        self.link_end.push_str("</a>");
    }
}

/// Escapes a text for an element or an attribute.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            other => html.push(other),
        }
    }
    html
}

/// Returns the text before the end of an element.
fn text_before(end: TagEnd, events: &[Event]) -> String {
    let inner = events.iter().take_while(|event| **event != Event::End(end));
    let texts = inner.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(&**text),
        Event::SoftBreak | Event::HardBreak => Some(" "),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        render(text, &|to| Target::Address(format!("/pages/{to}"))).html
    }

    #[test]
    fn html_in_the_text_is_escaped() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "a <b onclick='x'>word</b>",
            "`<script>`",
            "    <script>",
            "```\n<script>\n```",
            "# <script>",
            "| <script> | b |\n|---|---|\n| `<img>` | <i> |",
            "- <script>\n  > <script>",
            "[<script>](page.md)",
            "[text](\"><script>)",
            "[text](<\"><script>)",
            "<https://a.example/\"><script>>",
            "[label]\n\n[label]: \"><script>",
        ] {
            let made = html(text);
            for tag in ["<script", "<img", "<b ", "<i>"] {
                assert!(!made.contains(tag), "{text}: {made}");
            }
            assert!(!made.contains("=\"\">"), "{text}: {made}");
        }
    }

    #[test]
    fn only_web_addresses_and_pages_are_linked() {
        for text in [
            "[text](javascript:alert(1))",
            "[text](JavaScript:alert)",
            "[text](data:text/html,x)",
            "<javascript:alert(1)>",
        ] {
            let made = html(text);
            assert!(!made.contains("href"), "{text}: {made}");
        }
        assert_eq!(
            html("<https://a.example/b>"),
            "<p><a href=\"https://a.example/b\">https://a.example/b</a></p>\n"
        );
    }

    #[test]
    fn comments_are_omitted() {
        assert_eq!(html("one\n\n<!-- a\n\nb -->\n\ntwo<!-- c --> d"), "<p>one</p>\n<p>two d</p>\n");
    }

    #[test]
    fn words_are_emphasized_and_names_are_code() {
        assert_eq!(
            html("**A *b*** `c*d*` \\*e\\* f_g_h _i_ 2 * 3 * 4"),
            "<p><strong>A <em>b</em></strong> <code>c*d*</code> *e* f_g_h <em>i</em> 2 * 3 * 4</p>\n"
        );
        assert_eq!(html("``a ` b``"), "<p><code>a ` b</code></p>\n");
        assert_eq!(html("a ` b"), "<p>a ` b</p>\n");
        assert_eq!(html("a  \nb\\\nc\nd"), "<p>a<br />\nb<br />\nc\nd</p>\n");
    }

    #[test]
    fn lists_are_nested_and_keep_their_paragraphs() {
        assert_eq!(
            html("- a\n  b\n  - c\n- d"),
            "<ul>\n<li>a\nb\n<ul>\n<li>c</li>\n</ul>\n</li>\n<li>d</li>\n</ul>\n"
        );
        assert_eq!(
            html("3. a\n\n   b\n4. c\n\ntext"),
            "<ol start=\"3\">\n<li>\n<p>a</p>\n<p>b</p>\n</li>\n<li>\n<p>c</p>\n</li>\n</ol>\n<p>text</p>\n"
        );
        assert_eq!(
            html("1. a:\n\n       code\n"),
            "<ol>\n<li>\n<p>a:</p>\n<pre tabindex=\"0\">code\n</pre>\n</li>\n</ol>\n"
        );
    }

    #[test]
    fn tables_are_tables() {
        let made = html("| A | B |\n|---|:-:|\n| `a\\|b` | [c](d.md) |\n| e |");
        assert!(made.contains("<th scope=\"col\">A</th><th scope=\"col\">B</th>"), "{made}");
        assert!(made.contains("<td><code>a|b</code></td><td><a href=\"/pages/d.md\">c</a></td>"));
        assert!(made.contains("<td>e</td><td></td>"), "{made}");
        assert!(html("a | b\nc | d").starts_with("<p>"));
    }

    #[test]
    fn headings_have_the_ids_of_github() {
        let page = render("# The `ring`'s keys\n\n## A, b: c\n\n## A, b: c", &|_| unreachable!());
        assert_eq!(page.title, "The ring's keys");
        let ids: Vec<_> = page.sections.iter().map(|section| section.id.as_str()).collect();
        assert_eq!(ids, ["a-b-c", "a-b-c-1"]);
        assert!(
            page.html.starts_with("<h1 id=\"the-rings-keys\">The <code>ring</code>'s keys</h1>\n")
        );
        assert!(page.html.contains("<h2 id=\"a-b-c\">A, b: c</h2>"), "{}", page.html);
    }

    #[test]
    fn code_is_kept_as_it_is() {
        assert_eq!(
            html("```sh\na  *b* | c\n\n# d\n```\ntext"),
            "<pre tabindex=\"0\">a  *b* | c\n\n# d\n</pre>\n<p>text</p>\n"
        );
        assert_eq!(html("    a\n\n      b\n"), "<pre tabindex=\"0\">a\n\n  b\n</pre>\n");
    }

    #[test]
    fn links_lead_to_pages_and_files_of_the_source_are_named() {
        let target = |to: &str| Target::Source(format!("deploy/{to}"));
        let made = render("[an alert](a.yaml), [`deploy/b.yaml`](b.yaml)", &target).html;
        assert_eq!(
            made,
            "<p>an alert (<code>deploy/a.yaml</code> in the source), <code>deploy/b.yaml</code></p>\n"
        );
        assert_eq!(
            html("[A b]: see [A\nB] and [c][a b]\n\n[a b]: https://a.example"),
            "<p><a href=\"https://a.example\">A b</a>: see <a href=\"https://a.example\">A\nB</a> and \
             <a href=\"https://a.example\">c</a></p>\n"
        );
    }
}
