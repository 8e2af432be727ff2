//! What the settings of TLS say together: the ports' places, and the files, read and checked before anything starts.

use std::time::{SystemTime, UNIX_EPOCH};

use tls::{KeyError, KeyFiles, Keys};

use crate::config::NodeConfig;

/// A setting that cannot be used with the others: its key, and why, with the way out.
pub(crate) type Fault = (&'static str, String);

/// Checks the ports and reads the files.
///
/// # Errors
/// The first setting that cannot be used.
pub(crate) fn settle(config: &mut NodeConfig) -> Result<(), Fault> {
    if config.tls.port == 0 {
        return Ok(());
    }
    check_ports(config)?;
    let files = files(config)?;
    let keys = Keys::read(&files, unix_s()).map_err(|KeyError { which, reason }| (which.setting(), reason))?;
    config.tls.keys = Some(keys);
    Ok(())
}

/// Reads the files again, for clients that come from now on; true if there are any.
///
/// # Errors
/// A sentence that names the setting and what to do; what was read before is kept.
pub fn read_again(config: &NodeConfig) -> Result<bool, String> {
    let Some(keys) = &config.tls.keys else { return Ok(false) };
    let told = |(setting, reason): Fault| format!("{setting}: {reason}");
    let files = files(config).map_err(told)?;
    let read = keys.read_again(&files, unix_s());
    read.map(|()| true).map_err(|KeyError { which, reason }| told((which.setting(), reason)))
}

fn check_ports(config: &NodeConfig) -> Result<(), Fault> {
    let (first, last) = (u32::from(config.tls.port), config.last_tls_port());
    if last > u32::from(u16::MAX) {
        let cores = config.cores;
        return Err(("tls-port", format!("with {cores} cores the last port would be {last}; give a lower port")));
    }
    if config.is_tls_only() {
        return Ok(());
    }
    let mut others = vec![(u32::from(config.port), config.last_client_port())];
    if crate::cluster::is_member(config) {
        others.push((config.manager_port(), config.last_port()));
    }
    match others.into_iter().find(|(from, until)| first <= *until && *from <= last) {
        None => Ok(()),
        Some((from, until)) => {
            let free = config.last_client_port() + 1;
            let why =
                format!("of its ports {first} to {last} some are among {from} to {until}, which this node has already");
            Err(("tls-port", format!("{why}; give another one, for example {free}")))
        }
    }
}

fn files(config: &NodeConfig) -> Result<KeyFiles, Fault> {
    let given = |file: &Option<std::path::PathBuf>, key, what: &str| {
        let missing = || ("tls-port", format!("TLS needs {what}; add --{key} FILE"));
        file.clone().ok_or_else(missing)
    };
    Ok(KeyFiles {
        certificate: given(&config.tls.certificate_file, "tls-cert-file", "the node's certificate")?,
        key: given(&config.tls.key_file, "tls-key-file", "the certificate's private key")?,
        authorities: config.tls.authorities_file.clone(),
        clients: config.tls.clients,
    })
}

fn unix_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
