//! `listen`: a receiver of webhook deliveries on this machine, for trying them.
//!
//! It verifies each delivery as a receiver should (`verifier.rs`) and prints a line (`line.rs`,
//! `printer.rs`). It responds with 401 to deliveries that fail verification.

mod line;
mod printer;
mod verifier;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use agent_authority::{
    app::demo::webhook,
    transport::{self, Bounds, Settings},
};
use authority_cli::{CommandOutput, Failure, Jwks, keys_address, tenant};
use authority_client::reachable;
use authority_config::{Config, DEMO_TENANT, Secret, Sources};
use authority_ids::TenantRef;
use authority_process::{clock::Clock, shutdown};
use authority_verify_webhook::Suite;
use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use clap::{
    builder::{PossibleValuesParser, StringValueParser, TypedValueParser},
    value_parser,
};
use reqwest::Url;
use tokio::net::TcpListener;

use printer::Printer;
use verifier::Verifier;

/// The maximum size of a delivery's body in bytes; an envelope has at most 8 KiB.
const LARGEST_BODY: usize = 64 * 1024;

#[derive(Debug, clap::Args)]
pub(super) struct Listen {
    /// The address for deliveries, not the service's address as in other commands
    #[arg(long, value_name = "ADDR", default_value = webhook::ADDRESS)]
    listen: SocketAddr,
    /// The endpoint's secret, `whsec_…`; during a rotation the new and the old secret [default,
    /// without --jwks: the demonstration endpoint's]
    #[arg(long = "secret", value_name = "SECRET", value_parser = secret())]
    secrets: Vec<Secret>,
    /// The service's published keys, <service>/.well-known/jwks.json [default, without --secret:
    /// the local development server's keys]
    #[arg(long, value_name = "URL", value_parser = keys_address)]
    jwks: Option<Url>,
    /// The endpoint's URL as the service shows it [default: the demonstration endpoint's, or `http://ADDR/`]
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// Accept only signatures of this suite; repeat it [default: all suites with keys]
    #[arg(long, value_name = "SUITE", value_parser = suite())]
    accept: Vec<Suite>,
    /// The expected tenant, by id or slug
    #[arg(long, value_name = "ID", default_value = DEMO_TENANT, value_parser = tenant())]
    tenant: TenantRef,
    /// The response status for verified deliveries; after a status other than 2xx the service tries
    /// again
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u16).range(200..=599))]
    status: u16,
}

impl Listen {
    /// Receives until Ctrl-C, or until the reader of the output is gone.
    pub(super) async fn run(self, sources: &Sources, json: bool) -> Result<CommandOutput, Failure> {
        let shutdown = shutdown::on_signal().map_err(Failure::new)?;
        let bound = TcpListener::bind(self.listen).await.map_err(|error| {
            let advice = "with `listen`, --listen is the address for deliveries, not the service's \
                          address: omit it, or choose a free address";
            Failure::new(format!("cannot listen on {}: {error}; {advice}", self.listen))
        })?;
        let address = bound.local_addr().map_err(Failure::new)?;
        let status = StatusCode::from_u16(self.status).map_err(Failure::usage)?;
        let verifier = self.verifier(address, sources)?;
        let printer = Printer::start(shutdown.clone());
        printer.print(line::start(&verifier, address, json)).await;
        if let Some(problem) = verifier.problem().await {
            printer.print(line::note(&problem, json)).await;
        }
        let receiver = Arc::new(Receiver { verifier, printer, status, json });
        let router = Router::new()
            .fallback_service(post(Receiver::receive).with_state(Arc::clone(&receiver)));
        let served =
            transport::serve(bound, router, shutdown.clone().cancelled_owned(), settings()).await;
        receiver.printer.finish().await;
        served.map_err(Failure::new)?;
        Ok(CommandOutput::nothing())
    }

    /// Creates the verifier with the given keys or, if none are given, with the demonstration's
    /// keys.
    fn verifier(self, address: SocketAddr, sources: &Sources) -> Result<Verifier, Failure> {
        let Self { mut secrets, mut jwks, mut url, accept, tenant: tenant_id, .. } = self;
        let mut demonstration = false;
        if secrets.is_empty() && jwks.is_none() {
            let folder = Config::load(sources)?.data_dir;
            if let Some(demo) = webhook::Webhook::read(&folder) {
                demonstration = true;
                secrets.push(secret_of(&demo.secret).map_err(Failure::new)?);
                jwks = Some(keys_address(&demo.jwks_url).map_err(Failure::new)?);
                url = url.or_else(|| Url::parse(&demo.url).ok());
            }
        }
        let url =
            url.map_or_else(|| format!("http://{}/", reachable(address)), |url| url.to_string());
        let jwks = jwks.map(Jwks::new).transpose()?;
        let clock = Clock::default();
        Verifier { secrets, demonstration, jwks, accept, url, tenant_id, clock }.checked()
    }
}

struct Receiver {
    verifier: Verifier,
    printer: Printer,
    status: StatusCode,
    json: bool,
}

impl Receiver {
    async fn receive(State(receiver): State<Arc<Self>>, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let verified = receiver.verifier.verify(&head.headers, &body).await;
        let at = receiver.verifier.clock.now();
        receiver.printer.print(line::delivery(at, &body, &verified, receiver.json)).await;
        match verified {
            Ok(_) => receiver.status.into_response(),
            Err(why) => {
                (StatusCode::UNAUTHORIZED, format!("not verified: {why}\n")).into_response()
            }
        }
    }
}

/// The limits of the receiver. They are much lower than the limits of a service, because only one
/// service sends deliveries.
fn settings() -> Settings {
    let defaults = Settings::default();
    let bounds = Bounds {
        connections: 64,
        body_bytes: LARGEST_BODY as u64,
        body: Duration::from_secs(10),
        drain: Duration::from_secs(2),
        ..defaults.bounds
    };
    Settings { bounds, ..defaults }
}

fn secret() -> impl TypedValueParser<Value = Secret> {
    StringValueParser::new().try_map(|text| secret_of(&text))
}

/// Parses a secret. The error message does not contain the text.
fn secret_of(text: &str) -> Result<Secret, authority_webhook::signing::SecretError> {
    authority_webhook::signing::Secret::parse(text).map(|_| Secret::new(text))
}

fn suite() -> impl TypedValueParser<Value = Suite> {
    let named = |text: String| Suite::ALL.into_iter().find(|suite| suite.as_str() == text);
    PossibleValuesParser::new(Suite::ALL.map(Suite::as_str))
        .try_map(move |text| named(text).ok_or("is not a suite"))
}
