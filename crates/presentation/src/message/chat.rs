//! Messages in the formats of chats.
//!
//! Slack's `rich_text` and the `TextRun` of Adaptive Cards show a text without parsing it. Mattermost
//! has no such element: there, the text is a code span.

use serde_json::{Value, json};

use super::text::MessageText;

/// The body for an incoming webhook of Slack: blocks, and a text for notifications.
///
/// Source: <https://docs.slack.dev/reference/block-kit/blocks/rich-text-block>.
pub fn slack(text: &MessageText) -> Value {
    let bold = |words: &str| json!({"type": "text", "text": words, "style": {"bold": true}});
    let plain = |words: &str| json!({"type": "text", "text": words});
    let section = |elements: Vec<Value>| json!({"type": "rich_text_section", "elements": elements});
    let mut sections = vec![section(vec![bold(&format!("{}\n", text.heading))])];
    sections.extend(text.lines.iter().map(|(label, value)| {
        section(vec![bold(&format!("{label}: ")), plain(&format!("{value}\n"))])
    }));
    let link = json!({"type": "link", "url": text.link, "text": text.link_text});
    sections.push(section(vec![link]));
    json!({
        "text": text.heading,
        "blocks": [{"type": "rich_text", "elements": sections}],
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// The body for an incoming webhook of Mattermost: one attachment.
///
/// Source: <https://developers.mattermost.com/integrate/reference/message-attachments/>.
pub fn mattermost(text: &MessageText) -> Value {
    let lines = text.lines.iter().map(|(label, value)| format!("{}: {}", code(label), code(value)));
    json!({
        "attachments": [{
            "fallback": text.heading,
            "title": text.heading,
            "title_link": text.link,
            "text": lines.collect::<Vec<_>>().join("  \n"),
        }],
    })
}

/// The body for a workflow of Teams: one Adaptive Card with a link.
///
/// Source: <https://adaptivecards.io/explorer/>, and the schema of the trigger "When a Teams webhook
/// request is received".
pub fn teams(text: &MessageText) -> Value {
    let line = |(label, value): &(String, String)| {
        json!({
            "type": "RichTextBlock",
            "inlines": [
                {"type": "TextRun", "text": format!("{label}: "), "weight": "Bolder"},
                {"type": "TextRun", "text": value},
            ],
        })
    };
    let heading =
        json!({"type": "TextBlock", "text": text.heading, "weight": "Bolder", "wrap": true});
    let body: Vec<Value> = [heading].into_iter().chain(text.lines.iter().map(line)).collect();
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": body,
                "actions": [{"type": "Action.OpenUrl", "title": text.link_text, "url": text.link}],
            },
        }],
    })
}

/// Returns a code span of `CommonMark` with exactly this text. Its delimiters are longer than any run
/// of backticks in the text.
fn code(text: &str) -> String {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let ticks = "`".repeat(runs.max().unwrap_or(0) + 1);
    // One blank at each end is not part of the span.
    let pads = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty();
    let pad = if pads { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "<!channel> *a* _b_ [x](https://evil.example) @all `c` & <https://evil.example|y>";

    fn text() -> MessageText {
        MessageText {
            heading: "A request waits for approval",
            lines: vec![("Agent".to_owned(), HOSTILE.to_owned())],
            link: "https://authority.example.org/console/approvals/x".to_owned(),
            link_text: "Open the request",
        }
    }

    #[test]
    fn slack_gets_text_elements_and_no_text_that_it_parses() {
        let body = slack(&text());
        assert_eq!(body["text"], "A request waits for approval");
        let sections = &body["blocks"][0]["elements"];
        assert_eq!(
            sections[1]["elements"][1],
            json!({"type": "text", "text": format!("{HOSTILE}\n")})
        );
        assert_eq!(sections[2]["elements"][0]["url"], text().link);
    }

    #[test]
    fn mattermost_gets_code_spans() {
        let body = mattermost(&text());
        let shown = body["attachments"][0]["text"].as_str().unwrap();
        assert_eq!(shown, format!("`Agent`: ``{HOSTILE}``"));
        for (text, span) in
            [("a", "`a`"), ("`", "`` ` ``"), ("a``b", "```a``b```"), (" a", "`  a `"), ("", "`  `")]
        {
            assert_eq!(code(text), span);
        }
    }

    #[test]
    fn teams_gets_text_runs_in_one_card() {
        let body = teams(&text());
        let attachment = &body["attachments"][0];
        assert_eq!(attachment["contentType"], "application/vnd.microsoft.card.adaptive");
        let card = &attachment["content"];
        assert_eq!(card["body"][1]["inlines"][1], json!({"type": "TextRun", "text": HOSTILE}));
        assert_eq!(card["actions"].as_array().unwrap().len(), 1);
        assert_eq!(card["actions"][0]["type"], "Action.OpenUrl");
    }
}
