//! The definition of an MCP server's tool: the text to pin, its differences from the pinned text, and
//! the pin.
//!
//! A definition is pinned only on the page that shows it: the form has the digest of the shown text,
//! and the service refuses every other one.

use authority_decision::{
    diff::{self, Line},
    levels::{EffectClass, Reversibility, RiskTier},
};
use authority_ids::EntityRef;
use authority_model::{
    proto::registry::{
        ActionDeclaration, ActionRiskClassification, GetToolRequest, McpTool, PinToolRequest, Tool,
    },
    wire::Json,
};
use prost::Message;

use crate::kit::{choice::Choice, escape, prelude::*};

pub(crate) fn router() -> Router<Console> {
    Router::new().route("/console/definitions/{id}", get(show).post(pin))
}

/// The address of the page with a tool's definition.
fn address(id: &str) -> String {
    format!("/console/definitions/{}", encoded(id))
}

#[derive(Template)]
#[template(path = "definition.html")]
struct DefinitionPage {
    frame: Frame,
    address: String,
    /// The page of the tool's record.
    record: String,
    /// The page of the server's record.
    server: String,
    tool: Tool,
    mcp: McpTool,
    is_done: bool,
    /// The text to pin, or the pinned text.
    text: String,
    /// The differences of that text from the pinned one, if there are two texts.
    lines: Option<Vec<Line>>,
    /// The pinned text, if there are two texts.
    pinned: Option<String>,
    /// The hidden characters of the texts.
    hidden: Option<String>,
    /// The declared effect, in words.
    effect: String,
    /// The effects to choose from, if none was chosen yet.
    choices: Vec<Effect>,
    /// Whether the person may pin the text now.
    may_pin: bool,
    /// The version of the tool's record, for `If-Match`.
    tag: String,
    key: String,
}

/// A part of the declared effect, with its values.
struct Effect {
    name: &'static str,
    label: &'static str,
    values: Vec<Choice>,
}

/// A tool of an MCP server as it is now.
struct Present {
    tool: Tool,
    mcp: McpTool,
    tag: String,
}

impl Present {
    async fn read(view: &View, id: &EntityRef) -> Result<Self, Status> {
        let request = GetToolRequest { id: id.into() };
        let answer = view.calls.send(rpc::GET_TOOL, &request, &[]).await?;
        let tag = answer.tag().unwrap_or_default().to_owned();
        let unreadable = |_| Status::internal(t::administration::TOOL_UNREADABLE);
        let mut tool = Tool::decode(answer.message).map_err(unreadable)?;
        let none = || Status::not_found(t::administration::NO_DEFINITION);
        let mcp = tool.mcp.take().ok_or_else(none)?;
        Ok(Self { tool, mcp, tag })
    }

    fn declaration(&self) -> [String; 3] {
        let declared = self.tool.action_declaration.clone().unwrap_or_default();
        let risk = self.tool.action_risk_classification.clone().unwrap_or_default();
        let words = [declared.effect_class, declared.reversibility, risk.risk_tier];
        words.map(Option::unwrap_or_default)
    }

    /// The effects to choose from. A person chooses them when the tool is first pinned.
    fn choices(&self) -> Vec<Effect> {
        if self.mcp.definition_digest.is_some() {
            return Vec::new();
        }
        let [effect, reversibility, tier] = self.declaration();
        let of = |name, label, words: Vec<&'static str>, chosen: &str| {
            let words: Vec<_> = words.into_iter().map(|word| (word, word)).collect();
            Effect { name, label, values: Choice::of_list(&words, chosen) }
        };
        let effects = EffectClass::ALL.iter().map(|one| one.word()).collect();
        let reversibilities = Reversibility::ALL.iter().map(|one| one.word()).collect();
        let tiers = RiskTier::ALL.iter().map(|one| one.word()).collect();
        vec![
            of("effect_class", t::administration::KIND_OF_EFFECT, effects, &effect),
            of("reversibility", t::forms::CAN_BE_UNDONE, reversibilities, &reversibility),
            of("risk_tier", t::forms::RISK, tiers, &tier),
        ]
    }

    /// Whether a text is shown that has the digest of the form.
    fn has_text(&self) -> bool {
        let McpTool { definition, definition_digest, seen_digest, seen_definition, .. } = &self.mcp;
        let is_newest = definition_digest.as_ref() == Some(seen_digest);
        seen_definition.is_some() || (is_newest && definition.is_some())
    }

    fn page(self, view: &View) -> Result<DefinitionPage, Status> {
        let is_pinned = self.mcp.pin == "pinned";
        let is_deprecated = self.tool.state == "deprecated";
        let pinned = self.mcp.definition.as_ref().map(shown);
        let seen = self.mcp.seen_definition.as_ref().map(shown);
        let hidden = [&pinned, &seen].map(|text| text.clone().unwrap_or_default()).concat();
        let lines = pinned.as_ref().zip(seen.as_ref()).map(|(old, new)| diff::lines(old, new));
        let has_text = self.has_text();
        let known = |word: String| {
            if word.is_empty() { t::overview::UNKNOWN.to_owned() } else { word }
        };
        let effect = self.declaration().map(known);
        let choices = self.choices();
        Ok(DefinitionPage {
            frame: view.frame(t::administration::definition(&self.mcp.name), Section::Records),
            address: address(&self.tool.id),
            record: format!("/console/records/tools/{}", encoded(&self.tool.id)),
            server: format!("/console/records/external-apps/{}", encoded(&self.mcp.server_id)),
            is_done: false,
            hidden: escape::hidden_in(&hidden),
            effect: effect.join(", "),
            choices,
            may_pin: !is_pinned && !is_deprecated && has_text && view.may(rpc::PIN_TOOL),
            tag: self.tag,
            key: idempotency_key()?,
            tool: self.tool,
            mcp: self.mcp,
            pinned: lines.as_ref().and(pinned.clone()),
            text: seen.or(pinned).unwrap_or_default(),
            lines,
        })
    }
}

/// The text of a definition, a member in each line. Lines also end after the line feeds of a text.
fn shown(definition: &Json) -> String {
    let value = Value::Object(definition.0.clone());
    serde_json::to_string_pretty(&value).unwrap_or_default().replace("\\n", "\\n\n")
}

async fn show(view: View, Path(id): Path<EntityRef>, query: Pairs) -> Response {
    let shown = async {
        let mut found = Present::read(&view, &id).await?.page(&view)?;
        found.is_done = done_word(&view, &found.address, &query) == "pin";
        Ok(page(StatusCode::OK, &found))
    };
    view.answer(shown.await)
}

async fn pin(Path(id): Path<EntityRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::administration::NOT_PINNED, pinned(&view, &id, &form).await)
}

async fn pinned(view: &View, id: &EntityRef, form: &Pairs) -> Result<Response, Status> {
    let request = asked(id, form);
    let mut headers = vec![("if-match", form.text("tag"))];
    if !form.text("key").is_empty() {
        headers.push(("idempotency-key", form.text("key")));
    }
    let Err(refused) = view.calls.send(rpc::PIN_TOOL, &request, &headers).await else {
        return Ok(see_done(view, &address(id), "pin"));
    };
    let problem = Problem::of(&refused);
    if problem.status.is_server_error() || refused.code() == Code::NotFound {
        return Err(refused);
    }
    let status = problem.status;
    let text = if refused.code() == Code::FailedPrecondition {
        t::administration::TOOL_MOVED.to_owned()
    } else {
        t::because(problem.in_words().trim_end_matches('.'))
    };
    let mut found = Present::read(view, id).await?.page(view)?;
    found.frame = found.frame.failed(t::administration::NOT_PINNED, text, None);
    Ok(page(status, &found))
}

/// The pin of the text that the form's page showed, with the chosen effect.
fn asked(id: &EntityRef, form: &Pairs) -> PinToolRequest {
    let chosen = |name: &str| form.one(name).filter(|word| !word.is_empty()).map(str::to_owned);
    let declaration = ActionDeclaration {
        effect_class: chosen("effect_class"),
        reversibility: chosen("reversibility"),
        rollback_available: None,
    };
    let classification =
        ActionRiskClassification { risk_tier: chosen("risk_tier"), required_oversight_mode: None };
    // Without a choice, the record's own declaration stays.
    PinToolRequest {
        id: id.into(),
        definition_digest: form.text("definition_digest").to_owned(),
        action_declaration: Some(declaration)
            .filter(|declaration| *declaration != ActionDeclaration::default()),
        action_risk_classification: Some(classification)
            .filter(|classification| *classification != ActionRiskClassification::default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The older text must not stand for a newer text that cannot be read.
    #[test]
    fn only_a_text_with_the_forms_digest_can_be_pinned() {
        let text = || Some(Json::default());
        let has_text = |definition: Option<Json>, pinned: Option<&str>, seen: Option<Json>| {
            let mcp = McpTool {
                definition,
                definition_digest: pinned.map(str::to_owned),
                seen_digest: "sha256:2".to_owned(),
                seen_definition: seen,
                ..McpTool::default()
            };
            Present { tool: Tool::default(), mcp, tag: String::new() }.has_text()
        };
        assert!(has_text(None, None, text()));
        assert!(has_text(text(), Some("sha256:1"), text()));
        assert!(has_text(text(), Some("sha256:2"), None));
        assert!(!has_text(text(), Some("sha256:1"), None));
        assert!(!has_text(None, Some("sha256:2"), None));
        assert!(!has_text(None, None, None));
    }

    #[test]
    fn a_text_is_shown_by_lines_and_keeps_hidden_characters() {
        let definition = json!({"description": "Reads.\nThen \u{202e}ends.", "name": "read"});
        let Value::Object(definition) = definition else { panic!() };
        let text = shown(&Json(definition));
        assert_eq!(
            text,
            "{\n  \"description\": \"Reads.\\n\nThen \u{202e}ends.\",\n  \"name\": \"read\"\n}"
        );
        assert_eq!(escape::hidden_in(&text).as_deref(), Some("⟨U+202E⟩"));
    }
}
