//! The options of programs that talk to a server with TLS, by redis-cli's names.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use tls::client::ClientFiles;

use crate::client::connection::Tls;

/// For a command that connects.
pub fn args() -> [Arg; 6] {
    beside_urls().map(|arg| match arg.get_id() == "tls" {
        true => arg,
        false => arg.requires("tls"),
    })
}

/// For a command that is told by a URL whether to speak TLS, or by the flag.
pub fn beside_urls() -> [Arg; 6] {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let file = |name: &'static str| Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf));
    [
        flag("tls").help("Speak TLS"),
        file("cacert").help("Authorities (PEM) that make the server's certificate good [default: the system's]"),
        file("cert").requires("key").help("Certificate to show (PEM)"),
        file("key").requires("cert").help("Its private key (PEM)"),
        flag("insecure").help("Take any certificate of the server for good"),
        Arg::new("sni")
            .long("sni")
            .value_name("HOST")
            .help("Name that the server's certificate has to have [default: the host]"),
    ]
}

/// What was given; `None`: no TLS.
pub fn read(matches: &ArgMatches) -> Option<Tls> {
    let (files, name) = files_and_name(matches);
    matches.get_flag("tls").then_some(Tls { files, name })
}

/// Whom to trust, as whom to come, and what name a server has to have.
pub fn files_and_name(matches: &ArgMatches) -> (ClientFiles, Option<String>) {
    let files = ClientFiles {
        authorities: matches.get_one("cacert").cloned(),
        certificate: matches.get_one("cert").cloned(),
        key: matches.get_one("key").cloned(),
        is_insecure: matches.get_flag("insecure"),
    };
    (files, matches.get_one("sni").cloned())
}
