//! Markdown as HTML: the parts of `CommonMark` and of GitHub's tables that the documentation uses.
//!
//! HTML in the Markdown is text: the output contains only elements that this module writes.
//! Comments are omitted. Images, headings with underlines and entities are not supported.

mod blocks;
mod inline;

use std::collections::HashMap;

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
    let lines: Vec<&str> = text.lines().collect();
    let mut page = Page {
        references: blocks::references(&lines),
        target,
        ids: HashMap::new(),
        rendered: Rendered { html: String::new(), title: String::new(), sections: Vec::new() },
    };
    page.blocks(&lines, false);
    page.rendered
}

struct Page<'a> {
    /// The destinations of `[label]: destination`, by lower-case label.
    references: HashMap<String, &'a str>,
    target: &'a dyn Fn(&str) -> Target,
    /// The number of headings by id.
    ids: HashMap<String, usize>,
    rendered: Rendered,
}

/// Appends text with the characters escaped that HTML gives a meaning.
fn escape(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
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
        assert_eq!(html("one\n\n<!-- a\n\nb -->\n\ntwo"), "<p>one</p>\n<p>two</p>\n");
    }

    #[test]
    fn words_are_emphasized_and_names_are_code() {
        assert_eq!(
            html("**A *b*** `c*d*` \\*e\\* f_g_h _i_ 2 * 3 * 4"),
            "<p><strong>A <em>b</em></strong> <code>c*d*</code> *e* f_g_h <em>i</em> 2 * 3 * 4</p>\n"
        );
        assert_eq!(html("``a ` b``"), "<p><code>a ` b</code></p>\n");
        assert_eq!(html("a ` b"), "<p>a ` b</p>\n");
        assert_eq!(html("a  \nb\\\nc\nd"), "<p>a<br>\nb<br>\nc\nd</p>\n");
    }

    #[test]
    fn lists_are_nested_and_keep_their_paragraphs() {
        assert_eq!(
            html("- a\n  b\n  - c\n- d"),
            "<ul>\n<li>a\nb\n<ul>\n<li>c</li>\n</ul>\n</li>\n<li>d</li>\n</ul>\n"
        );
        assert_eq!(
            html("3. a\n\n   b\n4. c\n\ntext"),
            "<ol start=\"3\">\n<li><p>a</p>\n<p>b</p>\n</li>\n<li><p>c</p>\n</li>\n</ol>\n<p>text</p>\n"
        );
        assert_eq!(
            html("1. a:\n\n       code\n"),
            "<ol>\n<li><p>a:</p>\n<pre tabindex=\"0\">code</pre>\n</li>\n</ol>\n"
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
            page.html
                .starts_with("<h1 id=\"the-rings-keys\">The <code>ring</code>&#39;s keys</h1>\n")
        );
        assert!(page.html.contains("<h2 id=\"a-b-c\">A, b: c</h2>"), "{}", page.html);
    }

    #[test]
    fn code_is_kept_as_it_is() {
        assert_eq!(
            html("```sh\na  *b* | c\n\n# d\n```\ntext"),
            "<pre tabindex=\"0\">a  *b* | c\n\n# d</pre>\n<p>text</p>\n"
        );
        assert_eq!(html("    a\n\n      b\n"), "<pre tabindex=\"0\">a\n\n  b</pre>\n");
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
