//! How this installation identifies itself to push services.

use authority_crypto::Es256Signer;

/// How this installation identifies itself to push services.
#[derive(Debug)]
pub struct PushSettings {
    /// Where the installation's operator can be reached: a `mailto:` or an `https:` URI.
    pub subject: String,
    pub signer: Es256Signer,
}
