//! The banner of a development server: commands to paste, and further commands to try.

use agent_authority::app::demo::Demo;
use authority_cli::place;
use authority_config::Config;

/// Returns the banner: a key and the shell function `ask` to paste, then calls of `ask` that are
/// allowed, held and denied, and further commands. `database` describes a running database.
pub(crate) fn text(config: &Config, demo: &Demo, database: Option<&str>) -> String {
    let url = config.public_url();
    let key = &demo.api_key;
    let mut program = place::program();
    let usual = Config::default();
    if config.data_dir != usual.data_dir {
        let folder = config.data_dir.display().to_string();
        program = format!("{program} --data-dir {}", place::quoted(&folder));
    }
    // The command `listen` uses `--listen` for its own address.
    let client = if config.listen.main == usual.listen.main {
        program.clone()
    } else {
        format!("{program} --listen {}", config.listen.main)
    };
    let ask = |amount: u32, jurisdiction: &str| {
        format!(
            r#"ask '{{"amount": {amount}, "currency": "EUR", "jurisdiction": "{jurisdiction}"}}'"#
        )
    };
    let console = if config.console() {
        format!(
            "In a browser:        {url}/console, where \"First approver\" (approver@acme.example)\n\
             {:21}decides held requests.\n",
            ""
        )
    } else {
        String::new()
    };
    let database = database.map(|shown| format!("Database: {shown}\n")).unwrap_or_default();
    let (allowed, held, denied) = (ask(1200, "DE"), ask(25000, "DE"), ask(1200, "US"));
    format!(
        r#"
Agent Authority for development: its identity provider, keys and database are its own.
Not for production (--production refuses them). REST, gRPC and gRPC-Web: {url}
{database}
Paste this into another terminal, in this folder:

  export KEY={key}
  ask() {{ curl -s '{url}/api/v1/runtime/evaluate?pretty' \
    -H 'content-type: application/json' -H "authorization: Bearer $KEY" \
    -d '{{"subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
         "purpose": "invoice-settlement", "context": '"$1"'}}'; }}

Allowed:   {allowed}
Held:      {held}
Denied:    {denied}

Who approves?        {client} approvals
Approve it:          {client} approvals approve ID
then ask again with "approval_id" beside "context": it is allowed, once.
Stop the agent:      {client} stop invoice-bot --reason broken
Its webhook events:  {program} listen
As somebody else:    {client} login --role approver

{console}The API:  {url}/docs   A decision's receipt:  {url}/receipts/DECISION_ID
Under a delegation, with obligations: {url}/v1/runtime/authorize, {delegation}
"#,
        delegation = demo.delegation_id,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins lines, and replaces each gap by one space.
    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn demo() -> Demo {
        Demo { api_key: "key".to_owned(), delegation_id: "delegation".to_owned() }
    }

    #[test]
    fn the_data_folder_is_one_word() {
        let config = Config { data_dir: "/my data".into(), ..Config::default() };
        let banner = text(&config, &demo(), None);
        assert!(banner.contains(" --data-dir '/my data' approvals\n"), "{banner}");
    }

    #[test]
    fn ask_is_the_readmes() {
        let banner = text(&Config::default(), &demo(), Some("PostgreSQL 18 of this machine (/p)"));
        let readme = include_str!("../../README.md");
        for text in [&banner, readme] {
            let ask = text.split_once("ask() {").and_then(|(_, below)| below.split_once("}'; }"));
            let ask = words(ask.unwrap().0);
            assert!(
                ask.starts_with("curl -s 'http://127.0.0.1:8080/api/v1/runtime/evaluate?pretty'")
            );
            assert!(words(&banner).contains(&ask) && words(readme).contains(&ask), "{ask}");
        }
    }
}
