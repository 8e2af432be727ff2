//! The node's certificate and key, and whom it trusts: read from files, checked, and exchanged while connections run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};

use crate::validity::Validity;

/// Whether clients need a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientCertificates {
    /// None is asked for.
    No,
    /// Who shows one must show a good one.
    Optional,
    /// Everybody must show a good one.
    #[default]
    Yes,
}

/// Where everything lies, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFiles {
    /// The node's certificate, and behind it those that lead to an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities whose client certificates are good.
    pub authorities: Option<PathBuf>,
    /// Who needs one.
    pub clients: ClientCertificates,
}

/// The setting that a fault is about, named as Redis does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// `tls-cert-file`.
    Certificate,
    /// `tls-key-file`.
    Key,
    /// `tls-ca-cert-file`.
    Authorities,
    /// `tls-auth-clients`.
    Clients,
}

impl Which {
    /// The setting's key.
    pub fn setting(self) -> &'static str {
        match self {
            Which::Certificate => "tls-cert-file",
            Which::Key => "tls-key-file",
            Which::Authorities => "tls-ca-cert-file",
            Which::Clients => "tls-auth-clients",
        }
    }
}

/// Files that cannot be used, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Which setting.
    pub which: Which,
    /// What is wrong, and the way out.
    pub reason: String,
}

/// What is served with, shared by all cores; a copy shows the same.
#[derive(Clone)]
pub struct Keys(Arc<Mutex<Arc<ServerConfig>>>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keys")
    }
}

impl Keys {
    /// Reads and checks the files; `unix_s` is now, in seconds.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn read(files: &KeyFiles, unix_s: i64) -> Result<Keys, KeyError> {
        Ok(Keys(Arc::new(Mutex::new(configuration(files, unix_s)?))))
    }

    /// Reads the files anew, for those who come from now on. Faults change nothing.
    ///
    /// # Errors
    /// As [`Keys::read`].
    pub fn read_again(&self, files: &KeyFiles, unix_s: i64) -> Result<(), KeyError> {
        let configuration = configuration(files, unix_s)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = configuration;
        Ok(())
    }

    /// For one more connection.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn configuration(files: &KeyFiles, unix_s: i64) -> Result<Arc<ServerConfig>, KeyError> {
    let chain = certificates(&files.certificate, Which::Certificate)?;
    check_validity(&chain[0], unix_s)?;
    let key = private_key(&files.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has the ciphers of both versions");
    let builder = match verifier(files, &provider)? {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let configuration = builder.with_single_cert(chain, key).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let certificate = files.certificate.display();
            fault(
                Which::Key,
                format!("this key does not belong to the certificate {certificate}; give the one it was made with"),
            )
        }
        Error::InvalidCertificate(error) => fault(
            Which::Certificate,
            format!("no certificate that can be used: {error}; give an X.509 certificate of version 3"),
        ),
        error => fault(
            Which::Key,
            format!("no key that can be used: {error}; give an RSA, ECDSA (P-256, P-384) or Ed25519 key"),
        ),
    })?;
    Ok(Arc::new(configuration))
}

fn verifier(
    files: &KeyFiles,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, KeyError> {
    if files.clients == ClientCertificates::No {
        return Ok(None);
    }
    let Some(path) = &files.authorities else {
        let way_out =
            "give --tls-ca-cert-file FILE with the authorities of client certificates, or --tls-auth-clients no";
        return Err(fault(Which::Clients, format!("nobody says which client certificates are good; {way_out}")));
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, Which::Authorities)? {
        let added = roots.add(certificate);
        added.map_err(|error| fault(Which::Authorities, format!("an authority that cannot be used: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = if files.clients == ClientCertificates::Optional { builder.allow_unauthenticated() } else { builder };
    let verifier = builder.build();
    verifier.map(Some).map_err(|error| fault(Which::Authorities, format!("authorities that cannot be used: {error}")))
}

/// At least one.
fn certificates(path: &Path, which: Which) -> Result<Vec<CertificateDer<'static>>, KeyError> {
    let content = content(path, which)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    let certificates =
        read.map_err(|error| fault(which, format!("this is no PEM: {error:?}; {WANTED_CERTIFICATE}")))?;
    match certificates.is_empty() {
        true => Err(fault(which, format!("there is no certificate in it; {WANTED_CERTIFICATE}"))),
        false => Ok(certificates),
    }
}

const WANTED_CERTIFICATE: &str = "give a PEM file with `BEGIN CERTIFICATE`";

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, KeyError> {
    const WANTED: &str = "give a PEM file with `BEGIN PRIVATE KEY`, not encrypted";
    let content = content(path, Which::Key)?;
    PrivateKeyDer::from_pem_slice(&content)
        .map_err(|_| fault(Which::Key, format!("there is no private key in it; {WANTED}")))
}

fn content(path: &Path, which: Which) -> Result<Vec<u8>, KeyError> {
    std::fs::read(path).map_err(|error| fault(which, format!("{error}; give a PEM file that this user can read")))
}

fn check_validity(certificate: &CertificateDer<'_>, unix_s: i64) -> Result<(), KeyError> {
    let Some(validity) = Validity::of(certificate) else {
        return Err(fault(Which::Certificate, "no X.509 certificate; give one of version 3".to_owned()));
    };
    let way_out = "give one that is valid now, or set this machine's clock";
    if unix_s > validity.until_s {
        return Err(fault(Which::Certificate, format!("this certificate expired at {}; {way_out}", validity.until)));
    }
    if unix_s < validity.from_s {
        return Err(fault(
            Which::Certificate,
            format!("this certificate is valid from {} on only; {way_out}", validity.from),
        ));
    }
    Ok(())
}

fn fault(which: Which, reason: String) -> KeyError {
    KeyError { which, reason }
}
