//! A bucket that is compatible with S3.

use object_store::{
    ClientConfigKey, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
};
use tokio::time::Duration;

use super::Error;

/// A request that is not answered for so long is given up.
const ANSWER: &str = "30 seconds";
const CONNECT: &str = "5 seconds";
/// How long one operation is repeated when the store is away or overloaded.
const REPEAT: Duration = Duration::from_secs(20);

/// Variables that are none of S3's are left out, as the usual tools do.
///
/// # Errors
/// The variables do not suffice, or contradict each other.
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
    // Each request would fail, and not say why.
    if is_http && allows_http.is_none_or(|allows| allows == "false") {
        return Err(Error::NoTls);
    }
    let builder = builder
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), ANSWER)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT);
    Ok(builder.with_retry(retry).build()?)
}
