//! A tenant's transparency log: its newest checkpoint.

use authority_model::proto::evidence::{GetCheckpointRequest, GetLogKeyRequest, LogText};

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new().route("/console/log", get(show))
}

/// A signed note of the log's size and root.
struct Checkpoint {
    origin: String,
    size: String,
    root: String,
    /// The names of the signers: the log and its witnesses.
    signers: Vec<String>,
    text: String,
}

#[derive(Template)]
#[template(path = "log.html")]
struct LogPage {
    frame: Frame,
    tenant: String,
    checkpoint: Option<Checkpoint>,
    log_key: Option<String>,
    may_seal: bool,
}

async fn show(view: View) -> Response {
    view.answer(shown(&view).await)
}

async fn shown(view: &View) -> Result<Response, Status> {
    let Some(tenant) = view.tenant().map(|tenant| tenant.slug().to_owned()) else {
        // Each tenant has its own log.
        return Ok(see("/console/tenant"));
    };
    let request = GetCheckpointRequest { tenant_slug: tenant.clone() };
    let checkpoint = text(view.calls.call(&request).await)?;
    let request = GetLogKeyRequest { tenant_slug: tenant.clone() };
    let log_key = text(view.calls.call(&request).await)?;
    let shown = LogPage {
        frame: view.frame(t::decisions::LOG_AND_SEALS, Section::Log),
        checkpoint: checkpoint.map(Checkpoint::of),
        log_key,
        may_seal: view.may(rpc::SEAL_DECISION),
        tenant,
    };
    Ok(page(StatusCode::OK, &shown))
}

/// `None` for a log without a checkpoint.
fn text(answer: Result<LogText, Status>) -> Result<Option<String>, Status> {
    match answer {
        Ok(text) => Ok(Some(text.text)),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

impl Checkpoint {
    /// Reads a note by c2sp.org/tlog-checkpoint: origin, size and root in a line each, then signatures.
    fn of(text: String) -> Self {
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap_or_default().to_owned();
        let (origin, size, root) = (line(), line(), line());
        let signers = text.lines().filter_map(|line| line.strip_prefix("— "));
        let signers = signers.filter_map(|line| line.split(' ').next()).map(str::to_owned);
        Self { origin, size, root, signers: signers.collect(), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_says_its_size_and_who_signed_it() {
        let text = "example.org/log/acme\n42\nZm9vYmFy\n\n— example.org/log/acme c2ln\n— witness.example c2ln\n";
        let checkpoint = Checkpoint::of(text.to_owned());
        assert_eq!((checkpoint.size.as_str(), checkpoint.root.as_str()), ("42", "Zm9vYmFy"));
        assert_eq!(checkpoint.signers, ["example.org/log/acme", "witness.example"]);
    }
}
