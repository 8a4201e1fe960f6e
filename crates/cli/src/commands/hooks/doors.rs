//! `hooks test`: tries each failure that could let a call pass without a decision.

use std::{
    env,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use authority_decision::hooks::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use super::{installed::Installed, settings::Settings};
use crate::{
    outcome::{CommandOutput, Failure},
    text::plain,
};

const TIMEOUT: Duration = Duration::from_secs(10);
/// A port at which no service listens.
const NOWHERE: &str = "http://127.0.0.1:9/";

/// The result of one try: the failure, and why it lets a call pass, if it does.
type Door = (&'static str, Result<(), String>);

/// Tries all failures.
///
/// # Errors
/// A failure lets a call pass.
pub(super) async fn test(hook: &Installed) -> Result<CommandOutput, Failure> {
    let key = hook.guard.key()?;
    let mut doors =
        vec![("the settings have the hook for every tool, and block if it fails", settings(hook))];
    doors.extend(service(hook, &key).await?);
    doors.extend(command(hook)?);
    let open = doors.iter().filter(|(_, door)| door.is_err()).count();
    let lines = doors.iter().map(|(name, door)| match door {
        Ok(()) => format!("shut  {name}"),
        Err(why) => format!("OPEN  {name}: {}", plain(why)),
    });
    let output = CommandOutput::whole(lines.collect::<Vec<_>>().join("\n"));
    if open == 0 {
        return Ok(output);
    }
    Err(Failure::new(format!("{open} of {} are open", doors.len())).after(output))
}

fn settings(hook: &Installed) -> Result<(), String> {
    let found = Settings::read(hook.client, &hook.file()).map_err(|error| error.to_string())?;
    if found.is_off() {
        return Err("`disableAllHooks` switches all hooks off".to_owned());
    }
    let expected = hook.handler().and_then(|handler| found.with(&handler));
    if found == expected.map_err(|error| error.to_string())? {
        return Ok(());
    }
    Err(format!("{} lacks it; run `hooks install` with these flags", hook.file().display()))
}

/// A call of a tool that only reads.
fn event(client: Client) -> Value {
    let name = match client {
        Client::ClaudeCode => "PreToolUse",
        Client::Cursor => "preToolUse",
    };
    json!({"hook_event_name": name, "tool_name": "Read", "tool_input": {"file_path": "README.md"}})
}

async fn service(hook: &Installed, key: &str) -> Result<Vec<Door>, Failure> {
    let address = hook.address()?;
    let http =
        reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build().map_err(Failure::new)?;
    let send = async |key: Option<&str>, kind: &str, body: String| {
        let request = http.post(&address).header(CONTENT_TYPE, kind).body(body);
        let request = match key {
            Some(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
            None => request,
        };
        let response = request.send().await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.text().await.map_err(|error| error.to_string())?;
        if status != reqwest::StatusCode::OK {
            return Err(format!("status {status}"));
        }
        serde_json::from_str::<Value>(&body).map_err(|error| error.to_string())
    };
    let denied = |answer: Result<Value, String>| match answer {
        Ok(answer) if is_denial(&answer) => Ok(()),
        Ok(answer) => Err(answer.to_string()),
        Err(error) => Err(error),
    };
    let (good, json) = (event(hook.client).to_string(), "application/json");
    let decided = match send(Some(key), json, good.clone()).await {
        Ok(answer) if !answer.to_string().contains("it was not decided") => Ok(()),
        Ok(answer) => Err(answer.to_string()),
        Err(error) => Err(error),
    };
    let other = good.replace("reToolUse", "ostToolUse");
    let large = json!({"tool_input": {"content": "x".repeat(300 << 10)}}).to_string();
    Ok(vec![
        ("the service decides the calls of this key", decided),
        ("no API key", denied(send(None, json, good.clone()).await)),
        ("a wrong API key", denied(send(Some("svc_x"), json, good.clone()).await)),
        ("a body of another type", denied(send(Some(key), "text/plain", good.clone()).await)),
        ("a body of gRPC's type", denied(send(Some(key), "application/grpc", good.clone()).await)),
        ("a body that is not JSON", denied(send(Some(key), json, "{".to_owned()).await)),
        ("a body without a tool", denied(send(Some(key), json, "{}".to_owned()).await)),
        ("another event", denied(send(Some(key), json, other).await)),
        ("a body that is too large", denied(send(Some(key), json, large).await)),
    ])
}

fn is_denial(answer: &Value) -> bool {
    answer["permission"] == "deny" || answer["hookSpecificOutput"]["permissionDecision"] == "deny"
}

fn command(hook: &Installed) -> Result<Vec<Door>, Failure> {
    let program = env::current_exe().map_err(Failure::new)?;
    let key_file = hook.guard.key_file.display().to_string();
    let blocks = |flags: &[&str], input: &str| {
        let mut command = Command::new(&program);
        command.args(["hook", hook.client.word()]).args(flags);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().map_err(|error| error.to_string())?;
        if let Some(mut to) = child.stdin.take() {
            // The command may end before it reads.
            let _ = to.write_all(input.as_bytes());
        }
        match child.wait_with_output().map_err(|error| error.to_string())?.status.code() {
            Some(2) => Ok(()),
            code => Err(format!("exit code {code:?}")),
        }
    };
    let flags = |url, key_file| {
        let agent: &str = &hook.guard.agent;
        let purpose = hook.guard.purpose.as_str();
        ["--url", url, "--key-file", key_file, "--agent", agent, "--purpose", purpose]
    };
    let (url, good) = (hook.guard.url.as_str(), event(hook.client).to_string());
    Ok(vec![
        ("the service is not there", blocks(&flags(NOWHERE, &key_file), &good)),
        ("the key file is missing", blocks(&flags(url, "/nonexistent"), &good)),
        ("the command gets no JSON", blocks(&flags(url, &key_file), "{")),
        ("the command gets no tool", blocks(&flags(url, &key_file), "{}")),
        ("the command has no flags", blocks(&[], &good)),
    ])
}
