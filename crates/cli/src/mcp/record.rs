//! The service's record of an MCP server: its tools, their pins and how calls are decided.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::mcp::text::Shown;

/// An MCP server as the service knows it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerRecord {
    pub(crate) state: String,
    pub(crate) mcp: ServerSettings,
    #[serde(default)]
    pub(crate) tools: Vec<ToolRecord>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerSettings {
    #[serde(default)]
    pub(crate) other_methods: Option<OtherMethods>,
    pub(crate) instructions_digest: Option<String>,
}

/// The treatment of methods other than `tools/call`.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct OtherMethods {
    pub(crate) resources: Option<String>,
    pub(crate) prompts: Option<String>,
    pub(crate) completion: Option<String>,
    pub(crate) sampling: Option<String>,
    pub(crate) roots: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ToolRecord {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) actions: Vec<String>,
    pub(crate) mcp: ToolPin,
    /// Sentences of the tenant's policies for the description.
    #[serde(default)]
    pub(crate) advice: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ToolPin {
    pub(crate) name: String,
    pub(crate) definition_digest: Option<String>,
    pub(crate) definition: Option<Map<String, Value>>,
    pub(crate) pin: String,
    #[serde(default)]
    pub(crate) seen_digest: String,
    pub(crate) context_map: Option<ContextMap>,
    #[serde(default)]
    pub(crate) redact: Vec<String>,
    pub(crate) rounds: Option<String>,
}

/// The arguments that have a meaning of their own in a question.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ContextMap {
    pub(crate) amount: Option<AmountPointer>,
    pub(crate) currency: Option<String>,
    pub(crate) jurisdiction: Option<String>,
    pub(crate) resource: Option<ResourcePointer>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AmountPointer {
    pub(crate) pointer: String,
    pub(crate) scale: Option<u8>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ResourcePointer {
    pub(crate) kind: String,
    pub(crate) pointer: String,
}

/// The treatment of a method other than `tools/call`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    Decide,
    Allow,
    Deny,
}

impl ServerRecord {
    pub(crate) fn is_active(&self) -> bool {
        self.state == "active"
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&ToolRecord> {
        self.tools.iter().find(|tool| tool.mcp.name == name)
    }

    pub(crate) fn by_name(&self) -> HashMap<&str, &ToolRecord> {
        self.tools.iter().map(|tool| (tool.mcp.name.as_str(), tool)).collect()
    }

    /// How a method of a group (`resources`, `prompts`, `completion`) is handled. An unknown word
    /// counts as `deny`.
    pub(crate) fn handling(&self, group: &str) -> Handling {
        if !self.is_active() {
            return Handling::Deny;
        }
        let others = self.mcp.other_methods.as_ref();
        let word = others.and_then(|others| match group {
            "resources" => others.resources.as_deref(),
            "prompts" => others.prompts.as_deref(),
            "completion" => others.completion.as_deref(),
            _ => Some("deny"),
        });
        match word {
            None | Some("decide") => Handling::Decide,
            Some("allow") => Handling::Allow,
            Some(_) => Handling::Deny,
        }
    }

    /// Whether the server may send this request to the client.
    pub(crate) fn allows(&self, server_request: &str) -> bool {
        let others = self.mcp.other_methods.as_ref();
        let word = others.and_then(|others| match server_request {
            "sampling/createMessage" => others.sampling.as_deref(),
            "roots/list" => others.roots.as_deref(),
            _ => None,
        });
        self.is_active() && word == Some("allow")
    }
}

impl ToolRecord {
    /// Whether people have pinned the newest definition.
    pub(crate) fn is_pinned(&self) -> bool {
        self.mcp.pin == "pinned" && self.mcp.definition_digest.is_some()
    }

    /// The action of a call.
    pub(crate) fn action(&self) -> Option<&str> {
        self.actions.first().map(String::as_str).filter(|action| !action.contains('*'))
    }

    /// Returns the sentence of the denial if the server's definition is not the pinned one.
    pub(crate) fn fault(&self, seen: Option<&str>) -> Option<String> {
        let name = Shown(&self.mcp.name);
        let code = match (self.mcp.pin.as_str(), self.mcp.definition_digest.as_deref(), seen) {
            ("pinned", Some(pinned), Some(seen)) if pinned == seen => return None,
            ("pinned", ..) => "tool_definition_changed",
            _ => "capability_quarantined",
        };
        Some(format!(
            "Denied ({code}): the tool {name} waits for a person to read and pin its definition."
        ))
    }
}
