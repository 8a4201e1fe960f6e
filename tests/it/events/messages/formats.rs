//! The documented formats of chats, as JSON Schemas. They allow only the parts that messages use: a
//! message with a button that acts, for example, does not match.

use serde_json::{Value, json};

/// Checks a body against the format of this kind of chat.
///
/// # Panics
/// The body does not match.
pub(super) fn check(kind: &str, body: &Value) {
    let schema = match kind {
        "slack" => slack(),
        "mattermost" => mattermost(),
        "teams" => teams(),
        other => panic!("{other}"),
    };
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(body).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{kind}: {faults:#?}\n{body:#}");
}

/// Block Kit: at most 50 blocks (<https://docs.slack.dev/reference/block-kit/blocks>), of which only
/// `rich_text` is allowed here, and a text of at most 40,000 characters for notifications.
fn slack() -> Value {
    let style = json!({"type": "object", "properties": {"bold": {"type": "boolean"}},
                       "additionalProperties": false});
    let text = json!({"type": "object", "required": ["type", "text"], "additionalProperties": false,
        "properties": {"type": {"const": "text"}, "text": {"type": "string", "minLength": 1},
                       "style": style}});
    let link = json!({"type": "object", "required": ["type", "url"], "additionalProperties": false,
        "properties": {"type": {"const": "link"}, "url": {"type": "string", "format": "uri"},
                       "text": {"type": "string"}}});
    let section = json!({"type": "object", "required": ["type", "elements"],
        "additionalProperties": false,
        "properties": {"type": {"const": "rich_text_section"},
                       "elements": {"type": "array", "items": {"oneOf": [text, link]}}}});
    let block = json!({"type": "object", "required": ["type", "elements"],
        "additionalProperties": false,
        "properties": {"type": {"const": "rich_text"},
                       "elements": {"type": "array", "items": section}}});
    json!({"type": "object", "required": ["text", "blocks"], "additionalProperties": false,
        "properties": {
            "text": {"type": "string", "maxLength": 40_000, "pattern": "^[^<>&]*$"},
            "blocks": {"type": "array", "minItems": 1, "maxItems": 50, "items": block},
            "unfurl_links": {"const": false}, "unfurl_media": {"const": false}}})
}

/// Message attachments without `actions`
/// (<https://developers.mattermost.com/integrate/reference/message-attachments/>). A post has at most
/// 16,383 characters.
fn mattermost() -> Value {
    let attachment = json!({"type": "object", "required": ["fallback", "text"],
        "additionalProperties": false,
        "properties": {
            "fallback": {"type": "string"}, "title": {"type": "string"},
            "title_link": {"type": "string", "format": "uri"},
            "text": {"type": "string", "maxLength": 16_383}}});
    json!({"type": "object", "required": ["attachments"], "additionalProperties": false,
        "properties": {"attachments": {"type": "array", "minItems": 1, "items": attachment}}})
}

/// The schema of the trigger "When a Teams webhook request is received", and Adaptive Cards 1.4 with
/// `Action.OpenUrl` alone (<http://adaptivecards.io/schemas/adaptive-card.json>).
fn teams() -> Value {
    let heading = json!({"type": "object", "required": ["type", "text"],
        "additionalProperties": false,
        "properties": {"type": {"const": "TextBlock"}, "text": {"type": "string"},
                       "weight": {"enum": ["Lighter", "Default", "Bolder"]},
                       "wrap": {"type": "boolean"}}});
    let run = json!({"type": "object", "required": ["type", "text"], "additionalProperties": false,
        "properties": {"type": {"const": "TextRun"}, "text": {"type": "string"},
                       "weight": {"enum": ["Lighter", "Default", "Bolder"]}}});
    let rich = json!({"type": "object", "required": ["type", "inlines"],
        "additionalProperties": false,
        "properties": {"type": {"const": "RichTextBlock"},
                       "inlines": {"type": "array", "minItems": 1, "items": run}}});
    let open = json!({"type": "object", "required": ["type", "title", "url"],
        "additionalProperties": false,
        "properties": {"type": {"const": "Action.OpenUrl"}, "title": {"type": "string"},
                       "url": {"type": "string", "format": "uri"}}});
    let card = json!({"type": "object", "required": ["type", "version", "body"],
        "additionalProperties": false,
        "properties": {
            "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
            "type": {"const": "AdaptiveCard"}, "version": {"const": "1.4"},
            "body": {"type": "array", "items": {"oneOf": [heading, rich]}},
            "actions": {"type": "array", "maxItems": 6, "items": open}}});
    let attachment = json!({"type": "object", "required": ["contentType", "content"],
        "additionalProperties": false,
        "properties": {
            "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
            "contentUrl": {"type": "null"}, "content": card}});
    json!({"type": "object", "required": ["type", "attachments"], "additionalProperties": false,
        "properties": {"type": {"const": "message"},
                       "attachments": {"type": "array", "minItems": 1, "items": attachment}}})
}
