//! Where operators' programs read how the node stands.

use std::net::IpAddr;

use toml::Value;

use super::{LISTENING, Setting, set_number};

pub(super) const ADMIN_PORT: Setting = Setting {
    key: "admin-port",
    heading: LISTENING,
    value_name: "PORT",
    help: "Also serve /metrics and /healthz over HTTP here; 0 takes a free port",
    many: false,
    flag: false,
    local: true,
    set: |config, words| {
        let mut port = 0;
        set_number(&mut port, words, 0, 65_535, "a port, for example 9121")?;
        config.admin_port = Some(port);
        Ok(())
    },
    show: |config| config.admin_port.map(|port| Value::Integer(port.into())),
};

pub(super) const ADMIN_BIND: Setting = Setting {
    key: "admin-bind",
    heading: LISTENING,
    value_name: "ADDRESS",
    help: "IP address of that port: whoever reaches it may read there, without a password [default: 127.0.0.1]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        let word = words[0].as_str();
        let parsed = if word == "localhost" { Ok(IpAddr::from([127, 0, 0, 1])) } else { word.parse() };
        config.admin_bind = parsed.map_err(|_| "give one IP address such as 127.0.0.1, ::1 or 0.0.0.0".to_owned())?;
        Ok(())
    },
    show: |config| Some(config.admin_bind.to_string().into()),
};
