//! A bucket that is compatible with S3.

use object_store::{
    ClientConfigKey, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
};
use tokio::time::Duration;

use super::error::Error;

/// The timeout of a request.
const ANSWER: &str = "30 seconds";
const CONNECT: &str = "5 seconds";
/// How long an operation is retried while the store is unavailable or overloaded.
const REPEAT: Duration = Duration::from_secs(20);

/// Opens a bucket. Like other S3 tools, ignores `AWS_*` variables that the client does not know.
///
/// # Errors
/// A required variable is missing, or variables contradict each other.
pub(super) fn open(
    bucket: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<impl ObjectStore, Error> {
    let retry = RetryConfig { max_retries: 5, retry_timeout: REPEAT, ..RetryConfig::default() };
    let known = variables.into_iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("AWS_").map(|_| name.to_ascii_lowercase())?;
        Some((name.parse::<AmazonS3ConfigKey>().ok()?, value))
    });
    let builder =
        known.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value));
    let set = |key| builder.get_config_value(&key);
    let allows_http = set(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    let is_http = set(AmazonS3ConfigKey::Endpoint).is_some_and(|url| url.starts_with("http://"));
    // Without this check, each request would fail without stating the reason.
    if is_http && allows_http.is_none_or(|allows| allows == "false") {
        return Err(Error::NoTls);
    }
    let builder = builder
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), ANSWER)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT);
    Ok(builder.with_retry(retry).build()?)
}
