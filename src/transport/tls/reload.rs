//! Replaces the certificate when its files change. Open connections continue with the earlier one.

use std::{sync::Arc, time::Duration};

use authority_process::worker::{Error, Worker};
use parking_lot::Mutex;
use tokio::{sync::watch, task::spawn_blocking};

use super::files::{Contents, Files, Material, TlsError};

/// The time between two looks at the files.
const EVERY: Duration = Duration::from_secs(1);

/// Reads the files, and returns a worker that reads them again.
pub(super) fn begin(files: Files) -> Result<(watch::Receiver<Arc<Material>>, Worker), TlsError> {
    let reloader = Arc::new(Reloader::new(files)?);
    let reader = reloader.material.subscribe();
    let worker = Worker::periodic("tls_files", EVERY, move || {
        let reloader = Arc::clone(&reloader);
        async move { spawn_blocking(move || reloader.look()).await.map_err(Error::from) }
    });
    Ok((reader, worker))
}

struct Reloader {
    files: Files,
    seen: Mutex<Seen>,
    material: watch::Sender<Arc<Material>>,
}

struct Seen {
    /// The result of the last look.
    last: Contents,
    /// The last result that was used or refused.
    judged: Contents,
    is_refused: bool,
}

impl Reloader {
    fn new(files: Files) -> Result<Self, TlsError> {
        let used = files.read();
        let material = watch::Sender::new(Arc::new(files.build(&used)?));
        let seen = Mutex::new(Seen { last: used.clone(), judged: used, is_refused: false });
        Ok(Self { files, seen, material })
    }

    /// Uses changed files. If they can't be used, the earlier certificate stays in use.
    ///
    /// A change is used when two looks in a row have found it: the certificate and the key are
    /// rarely replaced in the same moment.
    fn look(&self) {
        let read = self.files.read();
        let mut seen = self.seen.lock();
        let is_settled = read == seen.last;
        seen.last = read;
        if is_settled && seen.last != seen.judged {
            seen.judged = seen.last.clone();
            seen.is_refused = !self.replace(&seen.judged);
        }
        measure(&self.material.borrow(), seen.is_refused);
    }

    /// Returns whether the files were used.
    fn replace(&self, read: &Contents) -> bool {
        match self.files.build(read) {
            Ok(material) => {
                tracing::info!("replaced the certificate of TLS");
                self.material.send_replace(Arc::new(material));
                true
            }
            Err(error) => {
                tracing::warn!(%error, "failed to use changed files of TLS; keeping the earlier ones");
                self.replace_authorities(read);
                false
            }
        }
    }

    /// Uses changed authorities of clients although the service's own certificate or key can't be
    /// used: an authority that was removed must not stay trusted for that reason.
    fn replace_authorities(&self, read: &Contents) {
        let used = Arc::clone(&self.material.borrow());
        if let Some(material) = self.files.with_authorities(&used, read) {
            tracing::info!("replaced the authorities of clients; keeping the certificate of TLS");
            self.material.send_replace(Arc::new(material));
        }
    }
}

/// Sets the gauges of the certificate in use.
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
fn measure(material: &Material, is_refused: bool) {
    if let Some(expires) = material.expires() {
        metrics::gauge!("authority_tls_certificate_expires_seconds").set(expires as f64);
    }
    metrics::gauge!("authority_tls_files_refused").set(f64::from(u8::from(is_refused)));
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::PermissionsExt,
        path::{Path, PathBuf},
    };

    use authority_config::Tls;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use tempfile::TempDir;

    use super::*;

    /// Returns a certificate and its key, in PEM.
    fn pair(last_year: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["authority.test".to_owned()]).unwrap();
        params.not_after = date_time_ymd(last_year, 1, 1);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    fn write(folder: &Path, certificate: &str, key: &str, mode: u32) {
        fs::write(folder.join("tls.crt"), certificate).unwrap();
        fs::write(folder.join("tls.key"), key).unwrap();
        fs::set_permissions(folder.join("tls.key"), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn started(client_ca: Option<&str>) -> (TempDir, Reloader) {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = pair(2090);
        write(folder.path(), &certificate, &key, 0o600);
        let path = |name: &str| -> Option<PathBuf> { Some(folder.path().join(name)) };
        if let Some(pem) = client_ca {
            fs::write(folder.path().join("ca.pem"), pem).unwrap();
        }
        let tls = Tls {
            certificate_file: path("tls.crt"),
            key_file: path("tls.key"),
            client_ca_file: client_ca.and_then(|_| path("ca.pem")),
            ..Tls::default()
        };
        let reloader = Reloader::new(Files::of(&tls).unwrap()).unwrap();
        (folder, reloader)
    }

    /// Looks twice, and returns whether the material was replaced and the files are refused.
    fn looked(reloader: &Reloader) -> (bool, bool) {
        let before = Arc::clone(&reloader.material.borrow());
        reloader.look();
        assert!(Arc::ptr_eq(&before, &reloader.material.borrow()), "the first look replaced it");
        reloader.look();
        let is_same = Arc::ptr_eq(&before, &reloader.material.borrow());
        (!is_same, reloader.seen.lock().is_refused)
    }

    #[test]
    fn only_files_that_can_be_used_replace_the_certificate() {
        let (folder, reloader) = started(None);
        let (certificate, key) = pair(2091);
        let (expired, its_key) = pair(2020);
        assert_eq!(looked(&reloader), (false, false));
        for (what, certificate, key, mode, expected) in [
            ("renewed", certificate.as_str(), key.as_str(), 0o640, (true, false)),
            ("the same", &certificate, &key, 0o640, (false, false)),
            ("another's key", &certificate, &its_key, 0o600, (false, true)),
            ("still another's key", &certificate, &its_key, 0o600, (false, true)),
            ("readable by all", &certificate, &key, 0o644, (false, true)),
            ("expired", &expired, &its_key, 0o600, (false, true)),
            ("cut", &certificate[..certificate.len() / 2], &key, 0o600, (false, true)),
            ("empty", "", &key, 0o600, (false, true)),
            ("no key", &certificate, "", 0o600, (false, true)),
            ("restored", &certificate, &key, 0o600, (true, false)),
        ] {
            write(folder.path(), certificate, key, mode);
            assert_eq!(looked(&reloader), expected, "{what}");
        }
        fs::remove_file(folder.path().join("tls.crt")).unwrap();
        assert_eq!(looked(&reloader), (false, true));
    }

    /// A certificate and its key are often written one after the other.
    #[test]
    fn a_change_is_used_when_it_has_settled() {
        let (folder, reloader) = started(None);
        let (certificate, key) = pair(2091);
        fs::write(folder.path().join("tls.crt"), &certificate).unwrap();
        reloader.look();
        fs::write(folder.path().join("tls.key"), &key).unwrap();
        assert_eq!(looked(&reloader), (true, false));
    }

    /// A removed authority is no longer trusted, even with an invalid certificate of the service.
    #[test]
    fn authorities_are_replaced_although_the_certificate_cannot_be_used() {
        let (first, _) = pair(2090);
        let (folder, reloader) = started(Some(&first));
        let (certificate, key) = pair(2091);
        let (expired, its_key) = pair(2020);
        for (what, certificate, key, mode) in [
            ("another's key", certificate.as_str(), its_key.as_str(), 0o600),
            ("readable by all", &certificate, &key, 0o644),
            ("expired", &expired, &its_key, 0o600),
            ("empty", "", "", 0o600),
        ] {
            let authority = CertificateParams::new(Vec::new()).unwrap();
            let authority = authority.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let chain = [authority.der().clone()];
            let trusts = || reloader.material.borrow().trusts(&chain);
            write(folder.path(), certificate, key, mode);
            assert_eq!(looked(&reloader), (false, true), "{what}");
            fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
            assert!(!trusts(), "{what}");
            assert_eq!(looked(&reloader), (true, true), "{what}");
            assert!(trusts(), "{what}");
            // The authorities stay if their file can't be used.
            fs::write(folder.path().join("ca.pem"), "").unwrap();
            assert_eq!(looked(&reloader), (false, true), "{what}");
            fs::write(folder.path().join("ca.pem"), &first).unwrap();
            assert_eq!(looked(&reloader), (true, true), "{what}");
            assert!(!trusts(), "{what}");
        }
    }

    #[test]
    fn the_authorities_of_clients_are_replaced_too() {
        let (first, _) = pair(2090);
        let (folder, reloader) = started(Some(&first));
        let (second, _) = pair(2090);
        for (text, expected) in
            [(second.as_str(), (true, false)), ("", (false, true)), ("none", (false, true))]
        {
            fs::write(folder.path().join("ca.pem"), text).unwrap();
            assert_eq!(looked(&reloader), expected, "{text}");
        }
    }
}
