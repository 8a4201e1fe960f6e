//! The question that a hook's body asks.

use serde_json::{Map, Value};

use super::client::Client;

/// The most bytes of the arguments of a call, as JSON.
const LARGEST: usize = 64 << 10;
/// The most characters of a justification.
const LONGEST_JUSTIFICATION: usize = 2000;
/// The first part of every action of a coding agent.
const CODE: &str = "code";

/// A question about a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Such as `code.bash`, or `code.mcp.github.create_issue`.
    pub action: String,
    pub context: Map<String, Value>,
    /// The agent's own words about a shell command.
    pub justification: Option<String>,
}

/// The content of a hook's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    Call(Question),
    /// A call of an MCP server that runs behind `mcp wrap`, which decides it.
    Wrapped,
}

/// A member of a hook's body that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub field: &'static str,
    pub problem: String,
}

/// Reads a hook's body. `wrapped` are the MCP servers that run behind `mcp wrap`.
///
/// # Errors
/// A member is absent or has another type, the event is another one, or the arguments are too
/// large.
pub fn question<S: AsRef<str>>(
    client: Client,
    event: &Map<String, Value>,
    wrapped: &[S],
) -> Result<Asked, Problem> {
    let name = text(event, "hook_event_name")?;
    if name != client.event() {
        let problem = format!("must be {}: no other event can be denied", client.event());
        return Err(Problem { field: "hook_event_name", problem });
    }
    let tool = Tool::of(client, text(event, "tool_name")?)?;
    if tool.server.is_some_and(|server| wrapped.iter().any(|own| own.as_ref() == server)) {
        return Ok(Asked::Wrapped);
    }
    let Some(Value::Object(arguments)) = event.get("tool_input") else {
        return Err(Problem::new("tool_input", "must be an object"));
    };
    let bytes = serde_json::to_vec(arguments).map_or(usize::MAX, |text| text.len());
    if bytes > LARGEST {
        let problem = format!("has {bytes} bytes as JSON; at most {LARGEST} are decided");
        return Err(Problem { field: "tool_input", problem });
    }
    let mut arguments = arguments.clone();
    let is_bash = client == Client::ClaudeCode && tool.name == "Bash";
    let justification = if is_bash { description(&mut arguments) } else { None };
    let mut session = Map::new();
    session.insert("tool".to_owned(), tool.name.into());
    for member in ["cwd", "permission_mode"] {
        match event.get(member) {
            None | Some(Value::Null) => {}
            Some(Value::String(value)) => {
                session.insert(member.to_owned(), value.as_str().into());
            }
            Some(_) => return Err(Problem::new(member, "must be a string")),
        }
    }
    let context = [("arguments", arguments), ("session", session)];
    let context = context.map(|(name, value)| (name.to_owned(), Value::Object(value)));
    let context = context.into_iter().collect();
    Ok(Asked::Call(Question { action: tool.action, context, justification }))
}

/// Takes the description of a command out of its arguments.
///
/// It is not an input of the command, and the model writes it anew for each call. An approval is
/// for the command, whatever its description.
fn description(arguments: &mut Map<String, Value>) -> Option<String> {
    let text = arguments.get("description")?.as_str()?;
    let text: String = text.chars().take(LONGEST_JUSTIFICATION).collect();
    arguments.remove("description");
    (!text.is_empty()).then_some(text)
}

impl Problem {
    fn new(field: &'static str, problem: &str) -> Self {
        Self { field, problem: problem.to_owned() }
    }
}

fn text<'e>(event: &'e Map<String, Value>, field: &'static str) -> Result<&'e str, Problem> {
    match event.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(Problem::new(field, "must be a string that is not empty")),
    }
}

/// A tool of a coding agent.
struct Tool<'e> {
    /// The name that the coding agent uses.
    name: &'e str,
    action: String,
    /// The MCP server, if the coding agent names it.
    server: Option<&'e str>,
}

impl<'e> Tool<'e> {
    fn of(client: Client, name: &'e str) -> Result<Self, Problem> {
        let known = |parts: &[&str]| Self::new(name, None, parts);
        match client {
            Client::ClaudeCode => match name {
                "Bash" => known(&["bash"]),
                "Edit" | "MultiEdit" | "NotebookEdit" | "Write" => known(&["edit"]),
                "Glob" | "Grep" | "LS" | "NotebookRead" | "Read" => known(&["read"]),
                "WebFetch" | "WebSearch" => known(&["fetch"]),
                _ => match name.strip_prefix("mcp__") {
                    Some(rest) => {
                        let (server, tool) = rest.split_once("__").unwrap_or((rest, ""));
                        // The name of a server may also have two underscores.
                        let is_clear = !tool.contains("__") && !tool.starts_with('_');
                        Self::new(name, is_clear.then_some(server), &["mcp", server, tool])
                    }
                    None => known(&[name]),
                },
            },
            Client::Cursor => match name {
                "Shell" => known(&["bash"]),
                "Write" => known(&["edit"]),
                "Grep" | "Read" => known(&["read"]),
                _ => match name.strip_prefix("MCP:") {
                    // Cursor does not name the server.
                    Some(tool) => known(&["mcp", tool]),
                    None => known(&[name]),
                },
            },
        }
    }

    fn new(name: &'e str, server: Option<&'e str>, parts: &[&str]) -> Result<Self, Problem> {
        if parts.iter().any(|part| part.is_empty()) {
            return Err(Problem::new("tool_name", "names no tool"));
        }
        let action = parts.iter().fold(CODE.to_owned(), |action, part| action + "." + &plain(part));
        Ok(Self { name, action, server })
    }
}

/// A part of an action: lower case, with `-` for every other character.
fn plain(part: &str) -> String {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '_' | '-') => letter,
        _ => '-',
    };
    part.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(client: Client, tool: &str) -> Map<String, Value> {
        let event = json!({"hook_event_name": client.event(), "tool_name": tool, "session_id": "s",
            "tool_use_id": "t", "tool_input": {"command": "ls"}, "cwd": "/work"});
        event.as_object().unwrap().clone()
    }

    fn action(client: Client, tool: &str) -> Option<String> {
        match question(client, &event(client, tool), &["wrapped"]) {
            Ok(Asked::Call(question)) => Some(question.action),
            Ok(Asked::Wrapped) => Some("wrapped".to_owned()),
            Err(_) => None,
        }
    }

    #[test]
    fn each_tool_has_its_action() {
        for (client, tool, expected) in [
            (Client::ClaudeCode, "Bash", Some("code.bash")),
            (Client::ClaudeCode, "Write", Some("code.edit")),
            (Client::ClaudeCode, "NotebookEdit", Some("code.edit")),
            (Client::ClaudeCode, "Grep", Some("code.read")),
            (Client::ClaudeCode, "WebFetch", Some("code.fetch")),
            (Client::ClaudeCode, "Task", Some("code.task")),
            (Client::ClaudeCode, "mcp__github__create_issue", Some("code.mcp.github.create_issue")),
            (Client::ClaudeCode, "mcp__My Server__a.b__c", Some("code.mcp.my-server.a-b__c")),
            (Client::ClaudeCode, "mcp__wrapped__x", Some("wrapped")),
            // It may be a tool of a server `wrapped__x` or `wrapped_`, which is not wrapped.
            (Client::ClaudeCode, "mcp__wrapped__x__run", Some("code.mcp.wrapped.x__run")),
            (Client::ClaudeCode, "mcp__wrapped___run", Some("code.mcp.wrapped._run")),
            (Client::ClaudeCode, "mcp__wrapped", None),
            (Client::ClaudeCode, "mcp____x", None),
            (Client::ClaudeCode, "", None),
            (Client::Cursor, "Shell", Some("code.bash")),
            (Client::Cursor, "Write", Some("code.edit")),
            (Client::Cursor, "Delete", Some("code.delete")),
            (Client::Cursor, "MCP:search", Some("code.mcp.search")),
            (Client::Cursor, "MCP:", None),
        ] {
            assert_eq!(action(client, tool).as_deref(), expected, "{tool}");
        }
    }

    #[test]
    fn what_changes_with_each_call_is_not_in_the_question() {
        let Ok(Asked::Call(asked)) =
            question::<&str>(Client::ClaudeCode, &event(Client::ClaudeCode, "Bash"), &[])
        else {
            panic!("no question")
        };
        let context =
            json!({"arguments": {"command": "ls"}, "session": {"tool": "Bash", "cwd": "/work"}});
        assert_eq!(Value::Object(asked.context), context);
    }

    #[test]
    fn the_description_of_a_command_is_no_argument() {
        let asked = |client: Client, tool: &str, description: Value| {
            let mut event = event(client, tool);
            event.insert(
                "tool_input".to_owned(),
                json!({"command": "ls", "description": description}),
            );
            let Ok(Asked::Call(asked)) = question::<&str>(client, &event, &[]) else {
                panic!("no question")
            };
            (asked.context["arguments"].clone(), asked.justification)
        };
        let (whole, long) = ("\u{e9}".repeat(2000), "\u{e9}".repeat(2001));
        for (description, justification) in
            [("List files", Some("List files")), (long.as_str(), Some(whole.as_str())), ("", None)]
        {
            let (arguments, found) = asked(Client::ClaudeCode, "Bash", json!(description));
            assert_eq!(arguments, json!({"command": "ls"}), "{description}");
            assert_eq!(found.as_deref(), justification);
        }
        for (client, tool, description) in [
            (Client::ClaudeCode, "Bash", json!(["a"])),
            (Client::ClaudeCode, "Task", json!("a")),
            (Client::Cursor, "Shell", json!("a")),
        ] {
            let (arguments, found) = asked(client, tool, description.clone());
            assert_eq!((&arguments["description"], found), (&description, None), "{tool}");
        }
    }

    #[test]
    fn a_body_that_is_not_understood_asks_nothing() {
        let client = Client::ClaudeCode;
        for (member, value) in [
            ("hook_event_name", json!("PostToolUse")),
            ("hook_event_name", Value::Null),
            ("tool_name", json!(1)),
            ("tool_input", json!("ls")),
            ("tool_input", Value::Null),
            ("tool_input", json!({"content": "x".repeat(LARGEST)})),
            ("cwd", json!(["/"])),
            ("permission_mode", json!({})),
        ] {
            let mut event = event(client, "Bash");
            event.insert(member.to_owned(), value);
            let problem = question::<&str>(client, &event, &[]).unwrap_err();
            assert_eq!(problem.field, member);
        }
    }
}
