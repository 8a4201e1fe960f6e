//! The file with the key that identifies this installation to push services (RFC 8292).

use std::path::Path;

use authority_crypto::{Algorithm, Es256Signer, Pair};
use rustls_pki_types::{PrivatePkcs8KeyDer, pem::PemObject};

use super::{Error, private_file};

/// Reads a P-256 private key, PKCS #8 in PEM, from a private file.
pub fn load(path: &Path) -> Result<Es256Signer, Error> {
    let text = private_file::read(path).map_err(Error::PushKeyFile)?;
    let unusable = |what: &str| {
        Error::PushKeyFile(format!(
            "`{}`: {what}; create one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`",
            path.display()
        ))
    };
    let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| unusable("it does not contain a PEM `BEGIN PRIVATE KEY` block"))?;
    Es256Signer::read(key.secret_pkcs8_der()).map_err(|fault| unusable(&fault.to_string()))
}

/// Reads the file. Creates it with a new key if it does not exist.
pub fn load_or_create(path: &Path) -> Result<Es256Signer, Error> {
    let fresh = || Ok(Pair::inventory(Algorithm::Es256)?.private_pem());
    private_file::make(path, fresh).map_err(Error::PushKeyFile)?;
    load(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn told(path: &Path) -> String {
        load(path).unwrap_err().to_string()
    }

    #[test]
    fn a_key_is_made_once_and_another_kind_of_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("push.pem");
        assert!(told(&path).contains("push.pem"));
        let made = *load_or_create(&path).unwrap().public_point();
        assert_eq!(*load_or_create(&path).unwrap().public_point(), made);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(told(&path).contains("chmod 600"), "{}", told(&path));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        for other in [
            Pair::inventory(Algorithm::Es384).unwrap().private_pem(),
            Pair::ed25519().unwrap().private_pem(),
            "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n".to_owned(),
            String::new(),
        ] {
            fs::write(&path, other).unwrap();
            assert!(told(&path).contains("openssl genpkey"), "{}", told(&path));
        }
    }
}
