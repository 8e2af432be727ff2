//! The other end: whom it trusts and as whom it comes, and for `zerohop cli` a blocking stream with a cipher.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dials::{server_name, told};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, StreamOwned,
};

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Whom a client trusts, and as whom it comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// Authorities that make a server's certificate good; `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// Its own certificate, and behind it those that lead to an authority.
    pub certificate: Option<PathBuf>,
    /// That one's private key.
    pub key: Option<PathBuf>,
    /// Any certificate of the server will do.
    pub is_insecure: bool,
}

/// A connection with a cipher.
pub struct ClientStream(StreamOwned<ClientConnection, TcpStream>);

impl ClientFiles {
    /// Agrees on keys with the server at the other end of `stream`, whose certificate has to name `name`.
    ///
    /// # Errors
    /// A file that cannot be used, or why the two do not agree, for people.
    pub fn connect(&self, mut stream: TcpStream, name: &str) -> Result<ClientStream, String> {
        let configuration = Arc::new(self.configuration()?);
        let mut connection = ClientConnection::new(configuration, server_name(name)?).map_err(|error| told(&error))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).map_err(|error| explained(error).to_string())?;
        }
        Ok(ClientStream(StreamOwned::new(connection, stream)))
    }

    pub(crate) fn configuration(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.is_insecure {
            true => Arc::new(Anybody(Arc::clone(&provider))),
            false => WebPkiServerVerifier::builder_with_provider(Arc::new(self.roots()?), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("--cacert: {error}"))?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the ciphers of both versions")
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        match (&self.certificate, &self.key) {
            (None, None) => Ok(builder.with_no_client_auth()),
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate, "--cert")?;
                let key = PrivateKeyDer::from_pem_slice(&content(key, "--key")?);
                let key = key.map_err(|_| "--key: there is no private key in it; give a PEM file".to_owned())?;
                builder.with_client_auth_cert(chain, key).map_err(|error| format!("--cert, --key: {error}"))
            }
            _ => Err("--cert and --key belong together; give both".to_owned()),
        }
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let system = || SYSTEM_AUTHORITIES.iter().map(PathBuf::from).find(|path| path.exists());
        let path = self.authorities.clone().or_else(system);
        let path = path.ok_or("this system has no list of authorities; give --cacert FILE, or --insecure")?;
        let mut roots = RootCertStore::empty();
        // Of a system's list some may be older than what is understood here.
        let (added, _) = roots.add_parsable_certificates(certificates(&path, "--cacert")?);
        match added {
            0 => Err(format!("--cacert {}: there is no authority in it; give a PEM file", path.display())),
            _ => Ok(roots),
        }
    }
}

fn explained(error: io::Error) -> io::Error {
    let kind = error.kind();
    match error.downcast::<Error>() {
        Ok(error) => io::Error::new(kind, told(&error)),
        Err(error) => error,
    }
}

fn certificates(path: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content(path, option)?).collect();
    read.map_err(|_| format!("{option} {}: this is no PEM file", path.display()))
}

fn content(path: &Path, option: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{option} {}: {error}", path.display()))
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A server's refusal may come behind a handshake that is over here (RFC 8446, 4.4.2.4).
        self.0.read(buffer).map_err(explained)
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whoever has the key of the certificate that it shows, whatever that says.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
