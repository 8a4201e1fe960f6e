//! The banner of a development server: three requests to paste, and what else to try.

use agent_authority::app::demo::Demo;
use authority_core::config::Config;

/// An allowed, a held and a denied request, with a live API key.
pub(crate) fn text(config: &Config, demo: &Demo) -> String {
    let url = config.public_url();
    // The path it was started by: it need not be on the PATH.
    let mut program = std::env::args().next().unwrap_or_else(|| "agent-authority".to_owned());
    if config.data_dir != Config::default().data_dir {
        program = format!("{program} --data-dir {}", config.data_dir.display());
    }
    let ask = |context: &str| {
        format!(
            "curl -s {url}/api/v1/runtime/evaluate -H 'content-type: application/json' \\\n    \
             -H 'authorization: Bearer {}' \\\n    \
             -d '{{\"subject\": \"svc:agent:acme:invoice-bot\", \"action\": \"payment.execute\", \
             \"purpose\": \"invoice-settlement\", \"context\": {context}}}'",
            demo.api_key
        )
    };
    format!(
        "\nAgent Authority for development: its identity provider, keys and database are its own.\n\
         Not for production (--production refuses them). REST, gRPC and gRPC-Web: {url}\n\n\
         Allowed:\n  {}\n\nHeld for approval:\n  {}\n\nDenied:\n  {}\n\n\
         Approve the held one by its `approval_id`, then ask again with \"approval_id\" beside \
         \"context\": it is allowed, once:\n  \
         curl -s -X POST {url}/api/v1/app/approvals/$APPROVAL_ID/approve \\\n    \
         -H \"authorization: Bearer $({program} token tenant --tenant acme --role approver)\" \\\n    \
         -H 'content-type: application/json' -d '{{}}'\n\n\
         A decision's receipt, for anybody to read and check: {url}/receipts/$DECISION_ID\n\
         The same under a delegation, with obligations: {url}/v1/runtime/authorize, {}\n\
         Its webhook events, verified, as they come (a held request makes one): {program} listen\n\
         The contract: {url}/openapi   An owner's token: {program} token owner\n",
        ask("{\"amount\": 1200, \"currency\": \"EUR\", \"jurisdiction\": \"DE\"}"),
        ask("{\"amount\": 25000, \"currency\": \"EUR\", \"jurisdiction\": \"DE\"}"),
        ask("{\"amount\": 1200, \"currency\": \"EUR\", \"jurisdiction\": \"US\"}"),
        demo.delegation_id,
    )
}
