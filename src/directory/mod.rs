//! What the service publishes about itself: description, health, contract, error codes, keys.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use authority_model::proto::directory::{
    CheckHealthRequest, CheckHealthResponse, CheckReadinessRequest, CheckReadinessResponse,
    DescribeServiceRequest, DescribeServiceResponse, ErrorCode as ListedCode, GetJwksRequest,
    GetJwksResponse, GetOpenApiRequest, GetOpenApiResponse, Link, ListErrorCodesRequest,
    ListErrorCodesResponse, ListRateLimitsRequest, ListRateLimitsResponse,
    RateLimit as ListedLimit, ReadinessCheck, Surface, WorkerStatus,
};
use authority_model::service::{DirectoryService, FEATURES};
use serde_json::{Value, json};
use tonic::{Request, Response, Status, metadata::MetadataValue};

use authority_api::{
    error::{ErrorCode, without_secrets},
    rate_limit::RateLimit,
};
use authority_core::{
    graph::Graph,
    worker::{Report, Statuses},
};

/// The version of the API, as in its paths.
const API_VERSION: &str = "1.0.0";

/// The OpenAPI 3.1 document, made by build.rs from the protos. [`contract`] is what is served.
pub const OPENAPI: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// What the service is, in a sentence.
pub const DESCRIPTION: &str = "Decides whether an AI agent's action is permitted, says why, records it \
     so that anyone can verify and replay it, and lets people hold, approve and stop it.";

const SURFACES: [(&str, &[&str]); 4] = [
    ("admin", &["/api/v1/"]),
    ("app", &["/api/v1/app/", "/api/v1/runtime/"]),
    ("gateway", &["/", "/v1/", "/health", "/openapi", "/.well-known/"]),
    ("site", &["/api/consultant-lead", "/receipts/", "/v1/directory/", "/widgets/"]),
];

const LINKS: [(&str, &str); 6] = [
    ("service-desc", "/openapi"),
    ("health", "/health"),
    ("ready", "/health/ready"),
    ("jwks", "/.well-known/jwks.json"),
    ("reason-codes", "/v1/reason-codes"),
    ("error-codes", "/v1/error-codes"),
];

/// The names of the limits that tenants and API keys have in their records.
const DECISIONS_PER_TENANT: &str = "decisions_per_tenant";
const DECISIONS_PER_KEY: &str = "decisions_per_api_key";

/// Metadata with the REST status of a response that is not a 200.
const HTTP_STATUS: &str = "http-status";

/// The OpenAPI document with every error code, in two parts: its server's URL comes between them. Made once, since it is
/// more than a megabyte.
static AROUND_URL: LazyLock<(String, String)> = LazyLock::new(|| {
    const URL: &str = "the-public-url";
    let mut document: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
    document["servers"] = json!([{"url": URL}]);
    let words: Vec<_> = ErrorCode::ALL.iter().map(|code| code.word()).collect();
    document["components"]["schemas"]["ErrorWord"]["enum"] = words.into();
    let text = document.to_string();
    let (before, after) = text.split_once(&json!(URL).to_string()).unwrap_or((&text, ""));
    (before.to_owned(), after.to_owned())
});

/// The OpenAPI document of the service at this address: with its server, and every error code.
pub fn contract(public_url: &str) -> String {
    let (before, after) = &*AROUND_URL;
    [before, json!(public_url).to_string().as_str(), after].concat()
}

/// A readiness check: its name, and a function that runs it.
pub struct Check {
    pub name: &'static str,
    /// `Err` has the problem, for operators. It reads memory only, so that callers never wait.
    pub ask: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The directory service.
#[derive(Clone)]
pub struct Directory {
    checks: Arc<[Check]>,
    /// Checks that are shown but don't affect readiness.
    shown: Arc<[Check]>,
    workers: Statuses,
    contract: Arc<str>,
    rate_limits: Arc<[RateLimit]>,
    /// Has the limits of tenants and API keys.
    graph: Arc<Graph>,
    jwks: Arc<dyn Fn() -> Arc<str> + Send + Sync>,
}

impl Directory {
    /// Creates the directory. The second list of checks is only shown.
    pub fn new(
        (checks, shown): (Vec<Check>, Vec<Check>),
        workers: Statuses,
        public_url: &str,
        rate_limits: Vec<RateLimit>,
        graph: Arc<Graph>,
        jwks: impl Fn() -> Arc<str> + Send + Sync + 'static,
    ) -> Self {
        let contract = contract(public_url).into();
        let (checks, shown, rate_limits) = (checks.into(), shown.into(), rate_limits.into());
        Self { checks, shown, workers, contract, rate_limits, graph, jwks: Arc::new(jwks) }
    }

    /// Whether nothing that is looked at is wrong.
    pub fn is_ready(&self) -> bool {
        self.checks.iter().all(|check| (check.ask)().is_ok())
    }

    /// Each check with its result.
    fn readiness(checks: &[Check]) -> Vec<(&'static str, Result<(), String>)> {
        checks.iter().map(|check| (check.name, (check.ask)())).collect()
    }
}

fn shown(report: Report) -> WorkerStatus {
    let seconds = |age: Duration| i32::try_from(age.as_secs()).unwrap_or(i32::MAX);
    WorkerStatus {
        name: report.name.to_owned(),
        seconds_since_success: report.since_success.map(seconds),
        status: report.fault.unwrap_or_else(|| "ok".to_owned()),
    }
}

#[tonic::async_trait]
impl DirectoryService for Directory {
    async fn describe_service(
        &self,
        _: Request<DescribeServiceRequest>,
    ) -> Result<Response<DescribeServiceResponse>, Status> {
        let surfaces = SURFACES.map(|(name, prefixes)| Surface {
            name: name.to_owned(),
            prefixes: prefixes.iter().map(ToString::to_string).collect(),
        });
        let links = LINKS.map(|(rel, href)| Link { rel: rel.to_owned(), href: href.to_owned() });
        Ok(Response::new(DescribeServiceResponse {
            service: "agent-authority".to_owned(),
            version: API_VERSION.to_owned(),
            build_version: env!("CARGO_PKG_VERSION").to_owned(),
            description: DESCRIPTION.to_owned(),
            surfaces: surfaces.into(),
            links: links.into(),
            features: FEATURES.iter().map(ToString::to_string).collect(),
        }))
    }

    async fn check_health(
        &self,
        _: Request<CheckHealthRequest>,
    ) -> Result<Response<CheckHealthResponse>, Status> {
        Ok(Response::new(CheckHealthResponse { status: "ok".to_owned() }))
    }

    async fn check_readiness(
        &self,
        _: Request<CheckReadinessRequest>,
    ) -> Result<Response<CheckReadinessResponse>, Status> {
        let found = Self::readiness(&self.checks);
        let is_ready = found.iter().all(|(_, found)| found.is_ok());
        let found = found.into_iter().chain(Self::readiness(&self.shown));
        let checks = found.map(|(name, found)| ReadinessCheck {
            name: name.to_owned(),
            status: found.err().map_or_else(|| "ok".to_owned(), without_secrets),
        });
        let workers = self.workers.reports().into_iter().map(shown);
        let mut reply = Response::new(CheckReadinessResponse {
            status: if is_ready { "ready" } else { "not_ready" }.to_owned(),
            checks: checks.collect(),
            workers: workers.collect(),
        });
        if !is_ready {
            reply.metadata_mut().insert(HTTP_STATUS, MetadataValue::from_static("503"));
        }
        Ok(reply)
    }

    async fn get_open_api(
        &self,
        _: Request<GetOpenApiRequest>,
    ) -> Result<Response<GetOpenApiResponse>, Status> {
        Ok(Response::new(GetOpenApiResponse { document: self.contract.to_string() }))
    }

    async fn list_error_codes(
        &self,
        _: Request<ListErrorCodesRequest>,
    ) -> Result<Response<ListErrorCodesResponse>, Status> {
        let codes = ErrorCode::ALL.iter().map(|code| ListedCode {
            code: code.word().to_owned(),
            status: code.http().as_u16().into(),
            grpc: format!("{:?}", code.grpc()),
            sentence: code.sentence().to_owned(),
        });
        Ok(Response::new(ListErrorCodesResponse { error_codes: codes.collect() }))
    }

    async fn list_rate_limits(
        &self,
        _: Request<ListRateLimitsRequest>,
    ) -> Result<Response<ListRateLimitsResponse>, Status> {
        let of_all = self.rate_limits.iter().map(|limit| ListedLimit {
            name: limit.name.to_owned(),
            limit: limit.limit,
            window_seconds: limit.window_seconds,
            ..ListedLimit::default()
        });
        let own = self.graph.decision_limits().into_iter().map(|limit| ListedLimit {
            name: if limit.key_id.is_some() { DECISIONS_PER_KEY } else { DECISIONS_PER_TENANT }
                .to_owned(),
            limit: limit.per_second,
            window_seconds: 1,
            tenant_id: Some(limit.tenant_id.into()),
            api_key_id: limit.key_id.map(String::from),
        });
        let mut rate_limits: Vec<_> = of_all.chain(own).collect();
        rate_limits.sort_by_cached_key(|limit| {
            (limit.name.clone(), limit.tenant_id.clone(), limit.api_key_id.clone())
        });
        Ok(Response::new(ListRateLimitsResponse { rate_limits }))
    }

    async fn get_jwks(
        &self,
        _: Request<GetJwksRequest>,
    ) -> Result<Response<GetJwksResponse>, Status> {
        Ok(Response::new(GetJwksResponse { document: (self.jwks)().to_string() }))
    }
}
