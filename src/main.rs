//! The binary: hands the command line to the service.

mod cli;

use std::process::ExitCode;

use agent_authority::config::Config;
use cli::{ApiKeyRequest, Failure, TokenRequest};

fn main() -> ExitCode {
    cli::run(&Unbuilt)
}

/// Stands where `app.rs` will: every command that needs the service says that it is not there.
struct Unbuilt;

impl Unbuilt {
    fn failure() -> Failure {
        Failure::new("the service is not part of this build")
    }
}

impl cli::Actions for Unbuilt {
    async fn serve(&self, _: Config) -> Result<(), Failure> {
        Err(Self::failure())
    }
    async fn token(&self, _: Config, _: TokenRequest) -> Result<String, Failure> {
        Err(Self::failure())
    }
    async fn api_key(&self, _: Config, _: ApiKeyRequest) -> Result<String, Failure> {
        Err(Self::failure())
    }
    async fn migrate(&self, _: Config) -> Result<Vec<String>, Failure> {
        Err(Self::failure())
    }
    async fn seed_demo(&self, _: Config) -> Result<String, Failure> {
        Err(Self::failure())
    }
    fn openapi(&self) -> &'static str {
        "{}"
    }
}
