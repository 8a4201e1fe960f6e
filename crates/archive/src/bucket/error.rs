//! Why the archive's store cannot be used, and how to fix it.

#[cfg(feature = "storage")]
use object_store::Error as StoreError;

#[cfg(feature = "storage")]
const NO_BUCKET: &str = "there is no such bucket: make it, or correct the URL, or `AWS_REGION` and `AWS_ENDPOINT` in \
                         this process's environment";
#[cfg(feature = "storage")]
const NO_CREDENTIALS: &str = "no credentials were found: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` in this \
                              process's environment, or give the machine a role";
#[cfg(feature = "storage")]
const REFUSED: &str = "the store refuses these credentials: correct `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and \
                       `AWS_SESSION_TOKEN` in this process's environment, or their permissions for the bucket";
#[cfg(feature = "storage")]
const UNREACHED: &str =
    "the store does not answer: see `AWS_ENDPOINT` and `AWS_REGION` in this process's environment";

/// Why the archive's store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{0}` {1}; expected a URL such as file:///var/lib/authority/archive or s3://bucket/prefix"
    )]
    Url(String, String),
    #[error(
        "`AWS_ENDPOINT` of this process's environment is not https: set `AWS_ALLOW_HTTP=true` if it has no TLS"
    )]
    NoTls,
    #[error("the archive has no `{0}`")]
    NotFound(String),
    /// The object is too large, or is not a regular file. It is not read.
    #[error("`{0}` of the archive {1}")]
    Unfit(String, String),
    #[cfg(not(feature = "storage"))]
    #[error("this build has no archives: build it with the feature `archive`")]
    NoFeature,
    #[cfg(feature = "storage")]
    #[error("the archive cannot be used: {0}")]
    Store(StoreError),
    /// A known error of the store, and how to fix it.
    #[cfg(feature = "storage")]
    #[error("the archive cannot be used: {0}; {1}")]
    Bucket(StoreError, &'static str),
}

#[cfg(feature = "storage")]
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match (remedy(&error), error) {
            (Some(remedy), error) => Self::Bucket(error, remedy),
            (None, StoreError::NotFound { path, .. }) => Self::NotFound(path),
            (None, error) => Self::Store(error),
        }
    }
}

/// Returns how to fix an error of a bucket. `None` for a folder: the operating system's error
/// already names the file.
#[cfg(feature = "storage")]
fn remedy(error: &StoreError) -> Option<&'static str> {
    let said = error.to_string();
    match error {
        // If the bucket exists, only the object is missing.
        StoreError::NotFound { .. } => said.contains("NoSuchBucket").then_some(NO_BUCKET),
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => Some(REFUSED),
        // If the environment has no keys, the client requests credentials from this link-local
        // address, which serves the role of the machine or container.
        StoreError::Generic { store: "S3", .. } if said.contains("//169.254.") => {
            Some(NO_CREDENTIALS)
        }
        StoreError::Generic { store: "S3", .. } if said.contains("error sending request") => {
            Some(UNREACHED)
        }
        _ => None,
    }
}
