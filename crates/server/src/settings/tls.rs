//! Serving with a cipher: options by the names that Redis gave them.

use ::tls::ClientCertificates;
use toml::Value;

use super::{Setting, set_number, set_path, show_path};

const TLS: &str = "TLS";

pub(super) const PORT: Setting = Setting {
    key: "tls-port",
    heading: TLS,
    value_name: "PORT",
    help: "Port for every Redis client that speaks TLS; instance i is a cluster node on PORT+1+i.\nWith --port 0 nothing is served without TLS; 0: no TLS [default: 0]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_number(&mut config.tls.port, words, 0, 65_534, "a port, for example 6479"),
    show: |config| Some(Value::Integer(config.tls.port.into())),
};

pub(super) const CERTIFICATE_FILE: Setting = Setting {
    key: "tls-cert-file",
    heading: TLS,
    value_name: "FILE",
    help: "The node's certificate (PEM), and behind it those that lead to an authority",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_path(&mut config.tls.certificate_file, words),
    show: |config| show_path(config.tls.certificate_file.as_deref()),
};

pub(super) const KEY_FILE: Setting = Setting {
    key: "tls-key-file",
    heading: TLS,
    value_name: "FILE",
    help: "Its private key (PEM)",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_path(&mut config.tls.key_file, words),
    show: |config| show_path(config.tls.key_file.as_deref()),
};

pub(super) const AUTHORITIES_FILE: Setting = Setting {
    key: "tls-ca-cert-file",
    heading: TLS,
    value_name: "FILE",
    help: "Authorities (PEM) whose client certificates are good",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_path(&mut config.tls.authorities_file, words),
    show: |config| show_path(config.tls.authorities_file.as_deref()),
};

pub(super) const CLIENTS: Setting = Setting {
    key: "tls-auth-clients",
    heading: TLS,
    value_name: "no|optional|yes",
    help: "Whether clients need a certificate [default: yes]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        config.tls.clients = match words[0].as_str() {
            "no" => ClientCertificates::No,
            "optional" => ClientCertificates::Optional,
            "yes" => ClientCertificates::Yes,
            _ => return Err("give no, optional or yes".into()),
        };
        Ok(())
    },
    show: |config| Some(clients_name(config.tls.clients).into()),
};

pub(super) const ANNOUNCE_PORT_BASE: Setting = Setting {
    key: "announce-tls-port-base",
    heading: TLS,
    value_name: "PORT",
    help: "First instance port with TLS that cluster clients are told, where it differs",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        let mut port = 0;
        set_number(&mut port, words, 1, 65_535, "a port, for example 16480")?;
        config.tls.announce_port_base = Some(port);
        Ok(())
    },
    show: |config| config.tls.announce_port_base.map(|port| Value::Integer(port.into())),
};

/// As the option spells it.
pub(crate) fn clients_name(clients: ClientCertificates) -> &'static str {
    match clients {
        ClientCertificates::No => "no",
        ClientCertificates::Optional => "optional",
        ClientCertificates::Yes => "yes",
    }
}
