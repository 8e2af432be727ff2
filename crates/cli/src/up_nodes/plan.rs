//! What `up --nodes` was told: how many nodes, where they lie, what each of them is told in turn.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use server::NodeConfig;
use server::settings::{SETTINGS, setting};
use server::sources::{Origin, Resolved};

/// Nodes on one machine; more teach nothing more.
pub const NODES_MAX: usize = 5;

/// What each node is told by [`Plan::serve`], and not by whoever typed it.
const OURS: [&str; 3] = ["port", "dir", "admin-port"];

/// See the module.
pub struct Plan {
    /// How many nodes.
    pub nodes: usize,
    /// What they have in common; its directory is theirs, its port the first one's.
    pub config: NodeConfig,
    /// Whether somebody asked for that port.
    pub is_port_given: bool,
    /// What each of them is told besides.
    options: Vec<String>,
    /// What the first one is told of leases.
    lease_ms: Option<String>,
}

/// How a node comes to its cluster.
pub enum Entry<'a> {
    /// It is the first one.
    Found,
    /// The port of one that is there, and the cluster's token, which is no word: those are for everybody to see.
    Join(u16, &'a str),
    /// It belongs to it.
    Resume,
}

impl Plan {
    /// Checks what one node can be told and several cannot.
    ///
    /// # Errors
    /// The option, and what to do.
    pub fn new(nodes: usize, matches: &ArgMatches, resolved: Resolved) -> Result<Plan, String> {
        let Resolved { config, origins, .. } = resolved;
        if config.unix_socket.is_some() {
            return Err("--unixsocket: with --nodes there would be one for several; leave it out".to_owned());
        }
        if config.pin {
            return Err("--pin: with --nodes all would share one CPU; leave it out".to_owned());
        }
        let last_admin_port = config.admin_port.map_or(0, |port| usize::from(port) + nodes - 1);
        if last_admin_port > usize::from(u16::MAX) {
            return Err(format!(
                "--admin-port: that of the last of {nodes} nodes would be {last_admin_port}; give a lower one"
            ));
        }
        let lease_ms = matches.get_one::<String>("lease-ms").cloned();
        let mut config = config;
        // The lines that start a node again are typed somewhere else.
        config.directory = config.directory.map(|path| std::path::absolute(&path).unwrap_or(path));
        config.cluster.is_new = true;
        if let Some(word) = &lease_ms {
            let lease = setting("lease-ms").expect("it is a setting");
            let set = lease.set(&mut config, std::slice::from_ref(word));
            set.map_err(|reason| format!("--lease-ms {word}: {reason}"))?;
        }
        server::cluster::check(&config)?;
        let is_port_given =
            SETTINGS.iter().zip(&origins).any(|(known, origin)| known.key == "port" && *origin != Origin::Default);
        let options = options(&config);
        Ok(Plan { nodes, config, is_port_given, options, lease_ms })
    }

    /// Ports from one node's to the next one's: its own, and those of its cores.
    pub fn ports_apart(&self) -> u16 {
        1 + self.config.cores
    }

    /// Where all of them lie.
    pub fn directory(&self) -> &Path {
        self.config.directory.as_deref().expect("nodes of a cluster have directories")
    }

    /// Where node `number`, from 1 on, lies.
    pub fn directory_of(&self, number: usize) -> PathBuf {
        self.directory().join(name(number))
    }

    /// Its configuration as far as its ports are concerned.
    pub fn config_of(&self, number: usize, port: u16) -> NodeConfig {
        NodeConfig { port, directory: Some(self.directory_of(number)), ..self.config.clone() }
    }

    /// The admin port of node `number`: one after the other; 0 for each if any will do.
    fn admin_port(&self, number: usize) -> Option<u16> {
        self.config.admin_port.map(|first| if first == 0 { 0 } else { first + number as u16 - 1 })
    }

    /// The words behind `zerohop` that start node `number`.
    pub fn serve(&self, number: usize, port: u16, entry: &Entry<'_>) -> Vec<String> {
        let mut words = vec!["serve".to_owned(), "--port".to_owned(), port.to_string()];
        words.extend(["--dir".to_owned(), self.directory_of(number).display().to_string()]);
        match entry {
            Entry::Resume => {}
            // Each says that it is a machine of its own: what a chain may not do on one machine it is here to do.
            Entry::Found => {
                words.extend(["--cluster", "new", "--machine", &name(number)].map(str::to_owned));
                words.extend(self.lease_ms.iter().flat_map(|lease_ms| ["--lease-ms".to_owned(), lease_ms.clone()]));
            }
            Entry::Join(port, _) => {
                let address = format!("127.0.0.1:{port}");
                words.extend(["--join", &address, "--machine", &name(number)].map(str::to_owned));
            }
        }
        words.extend(self.options.iter().cloned());
        words.extend(self.admin_port(number).iter().flat_map(|port| ["--admin-port".to_owned(), port.to_string()]));
        words
    }

    /// The line that starts node `number` again, as a person types it.
    pub fn again(&self, number: usize, port: u16) -> String {
        let quoted = |word: &String| match word.contains(|c: char| c.is_whitespace() || "'\"$&;()<>|*?\\".contains(c)) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.clone(),
        };
        let words: Vec<String> = self.serve(number, port, &Entry::Resume).iter().map(quoted).collect();
        format!("zerohop {}", words.join(" "))
    }
}

/// A node's name: its directory's, and its machine's.
pub fn name(number: usize) -> String {
    format!("node-{number}")
}

/// Whatever differs from what `serve` does by itself.
fn options(config: &NodeConfig) -> Vec<String> {
    let common = SETTINGS.iter().filter(|setting| setting.local && !OURS.contains(&setting.key));
    let told = common.filter_map(|setting| {
        let value =
            setting.show(config).filter(|value| setting.show(&NodeConfig::default()).as_ref() != Some(value))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some([format!("--{}", setting.key), text])
    });
    told.flatten().collect()
}
