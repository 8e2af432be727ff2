//! Whom a machine dials: what makes its connections to servers good, and what goes wrong between the two, in words.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, Error};

use crate::cipher::Cipher;
use crate::client::ClientFiles;

/// What all dials of a machine have in common.
#[derive(Clone, Debug)]
pub struct Dials {
    configuration: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl Dials {
    /// Reads the files. Certificates of servers have to have this name, or without one, that of the host which is dialed.
    ///
    /// # Errors
    /// A file that cannot be used, or a name that no certificate could have.
    pub fn read(files: &ClientFiles, name: Option<&str>) -> Result<Dials, String> {
        let name = name.map(server_name).transpose()?;
        Ok(Dials { configuration: Arc::new(files.configuration()?), name })
    }

    /// For a connection that was just made to `host:port` or to a socket of this machine.
    pub(crate) fn cipher(&self, address: &str) -> Result<Cipher, String> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => server_name(host_of(address))?,
        };
        Cipher::calling(Arc::clone(&self.configuration), name).map_err(|_| "TLS: no connection can be begun".to_owned())
    }
}

/// A name or an address as a certificate has it.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| format!("`{name}` is no name that a certificate could have; give one with --sni"))
}

/// `[::1]:6379`, `db.internal:6379`; behind a Unix socket is this machine.
fn host_of(address: &str) -> &str {
    if address.starts_with(base::street::UNIX_PREFIX) {
        return "localhost";
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// What went wrong between the two, and what may help.
pub(crate) fn told(error: &Error) -> String {
    let hint = match error {
        Error::InvalidMessage(_) => "; does the server speak TLS on this port?",
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::AlertReceived(_) => "; a server may want a certificate: --cert FILE --key FILE",
        _ => "",
    };
    format!("TLS: {error}{hint}")
}

fn of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "; the server needs a new certificate, or this machine's clock is wrong"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "; is this machine's clock right?"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "; give the name that it has with --sni, or --insecure"
        }
        CertificateError::UnknownIssuer => "; give its authority with --cacert FILE, or --insecure",
        _ => "; give its authority with --cacert FILE, its name with --sni, or --insecure",
    }
}
