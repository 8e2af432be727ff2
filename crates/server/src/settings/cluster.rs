//! What makes a node one of a cluster.

use std::path::PathBuf;

use base::limits::{CHAIN_MEMBERS_MAX, DOMAIN_BYTES_MAX, LEASE_MS_MAX, LEASE_MS_MIN};
use toml::Value;
use wire::trust::Token;

use super::{Setting, set_number};
use crate::config::NodeConfig;

const CLUSTERS: &str = "Several nodes as one store";

pub(super) const CLUSTER: Setting = Setting {
    key: "cluster",
    heading: CLUSTERS,
    value_name: "new",
    help: "Found a cluster of which this is the first node; others come with --join",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        config.cluster.is_new = match words[0].as_str() {
            "new" => true,
            _ => return Err("give new; a node that belongs to a cluster already needs no option".into()),
        };
        Ok(())
    },
    show: |config| config.cluster.is_new.then(|| "new".into()),
};

pub(super) const JOIN: Setting = Setting {
    key: "join",
    heading: CLUSTERS,
    value_name: "HOST:PORT",
    help: "Become a node of the cluster of this one (its PORT); may be repeated",
    many: true,
    flag: false,
    local: false,
    set: set_join,
    show: |config| Some(config.cluster.join.clone().into()).filter(|_| !config.cluster.join.is_empty()),
};

pub(super) const HOSTS: Setting = Setting {
    key: "hosts",
    heading: CLUSTERS,
    value_name: "FILE",
    help: "Instead: a file of all hosts, host or host:port a line, the same for every node; the first one founds,\nthe others join. slurm: the hosts of this job",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        config.cluster.hosts = Some(words[0].clone());
        Ok(())
    },
    show: |config| config.cluster.hosts.clone().map(Value::String),
};

pub(super) const TOKEN: Setting = Setting {
    key: "token",
    heading: CLUSTERS,
    value_name: "TOKEN",
    help: "What the cluster's nodes prove to each other that they have; the first one prints it, and takes one that it is given.\nAll users of this machine see options: ZEROHOP_TOKEN and --token-file are safer",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        config.cluster.token = Some(Token::parse(&words[0]).ok_or(TOKEN_WANTED)?);
        Ok(())
    },
    // A secret is not printed.
    show: |_| None,
};

const TOKEN_WANTED: &str = "give the 32 hexadecimal digits that the first node prints";

pub(super) const TOKEN_FILE: Setting = Setting {
    key: "token-file",
    heading: CLUSTERS,
    value_name: "FILE",
    help: "File whose first line is that token",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        let content = super::first_line(&words[0], "the token")?;
        let token = std::str::from_utf8(&content).ok().and_then(|line| Token::parse(line.trim()));
        config.cluster.token = Some(token.ok_or(TOKEN_WANTED)?);
        config.cluster.token_file = Some(PathBuf::from(&words[0]));
        Ok(())
    },
    show: |config| super::show_path(config.cluster.token_file.as_deref()),
};

pub(super) const MACHINE: Setting = Setting {
    key: "machine",
    heading: CLUSTERS,
    value_name: "NAME",
    help: "The machine: no two copies of anything are on the same one [default: its host name]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_domain(&mut config.cluster.machine, &words[0]),
    show: |config| show_text(&config.cluster.machine),
};

pub(super) const ZONE: Setting = Setting {
    key: "zone",
    heading: CLUSTERS,
    value_name: "NAME",
    help: "Failure domain above the machine: copies go to different ones while there are any",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_domain(&mut config.cluster.zone, &words[0]),
    show: |config| show_text(&config.cluster.zone),
};

pub(super) const WEIGHT: Setting = Setting {
    key: "weight",
    heading: CLUSTERS,
    value_name: "N",
    help: "This node's share of the keys against others' [default: its cores]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| set_number(&mut config.cluster.weight, words, 1, 10_000, "a share, for example 4"),
    show: |config| Some(Value::Integer(config.cluster.weight.into())).filter(|_| config.cluster.weight > 0),
};

pub(super) const CHAIN_LENGTH: Setting = Setting {
    key: "chain-length",
    heading: CLUSTERS,
    value_name: "N",
    help: "Copies of everything, with --cluster new: 1 to 5 [default: 2]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        let mut length = 0;
        set_number(&mut length, words, 1, CHAIN_MEMBERS_MAX as u16, "copies of everything")?;
        config.cluster.chain_length = length as u8;
        Ok(())
    },
    show: |config| Some(Value::Integer(config.cluster.chain_length.into())).filter(|_| config.cluster.is_new),
};

pub(super) const LEASE_MS: Setting = Setting {
    key: "lease-ms",
    heading: CLUSTERS,
    value_name: "MS",
    help: "How long a node that is not heard of keeps its keys before others take over,\nwith --cluster new: longer bears slower machines [default: 250]",
    many: false,
    flag: false,
    local: false,
    set: |config, words| {
        let (least, most) = (LEASE_MS_MIN as u16, LEASE_MS_MAX as u16);
        set_number(&mut config.cluster.lease_ms, words, least, most, "milliseconds, for example 1000")
    },
    show: |config| Some(Value::Integer(config.cluster.lease_ms.into())).filter(|_| config.cluster.is_new),
};

fn set_join(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    for word in words.iter().flat_map(|word| word.split([',', ' '])).filter(|word| !word.is_empty()) {
        let port = word.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let port = port.and_then(|(_, port)| port.parse::<u16>().ok()).filter(|port| *port > 0);
        if port.is_none() {
            return Err(format!("`{word}` is no host:port; give one such as 10.0.0.1:6379"));
        }
        config.cluster.join.push(word.to_owned());
    }
    Ok(())
}

fn set_domain(target: &mut String, name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > DOMAIN_BYTES_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("give a name of at most {DOMAIN_BYTES_MAX} characters, without spaces"));
    }
    name.clone_into(target);
    Ok(())
}

fn show_text(text: &str) -> Option<Value> {
    Some(text.into()).filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        let mut config = NodeConfig::default();
        for word in ["host", ":7", "host:", "host:0", "host:65536"] {
            assert!(set_join(&mut config, &[word.to_owned()]).is_err(), "{word}");
        }
        assert_eq!(set_join(&mut config, &["a:1,[::1]:2".to_owned()]), Ok(()));
        assert_eq!(config.cluster.join, ["a:1", "[::1]:2"]);
    }
}
