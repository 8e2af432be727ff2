//! `zerohop cluster`: what an operator asks of a cluster, through any of its nodes.

mod door;
mod health;
mod order;
mod picture;
mod save;
mod standing;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use wire::reply_parse::Value;

use crate::client::connection::Target;
use crate::client::json;
use crate::{say, tls_options};
use order::Operator;

const AFTER: &str = "\
Examples:
  zerohop cluster create --dir data            whoever is started there founds a cluster; what is in it stays
  zerohop cluster add -p 7000                  prints the line by which another node joins
  zerohop cluster status -p 7000               nodes, who has which slots, what moves, what is wrong
  zerohop cluster drain 3 -p 7000              moves everything away from node 3, and waits
  zerohop cluster remove 3 -p 7000             drains it, if it has anything, and takes it out for ever
  zerohop cluster replace 3 5 -p 7000          node 5, which has joined, takes what node 3 has; node 3 leaves
  zerohop cluster move 0-99 200-299 --to 2 -p 7000
  zerohop cluster rebalance -p 7000            until every node has its share
  zerohop cluster save /scratch/run-1 -p 7000  every key, for a cluster of any size that comes later
  zerohop cluster load /scratch/run-1 -p 7000

A NODE is its number, its host:port, or the id of one of its instances. A new node joins by the line that `add` prints, and the
first one when it starts; it takes its share by itself. Slots move while clients go on; Ctrl-C ends the waiting, not the work. The
password comes from the variable REDISCLI_AUTH.

Exit codes: 0 done, 1 refused or failed.";

/// Its options.
pub fn command() -> Command {
    let node = |name: &'static str| Arg::new(name).value_name("NODE").required(true);
    let no_wait =
        || Arg::new("no-wait").long("no-wait").action(ArgAction::SetTrue).help("Do not wait until it is done");
    let sub = |name: &'static str, about: &'static str| with_target(Command::new(name).about(about));
    Command::new("cluster")
        .about("Look after the nodes of a cluster")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            sub(
                "status",
                "Show nodes, their memory, chains, how far copies are behind, moves, and what is not as it should be",
            )
            .args([
                Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"),
                Arg::new("ranges")
                    .long("ranges")
                    .action(ArgAction::SetTrue)
                    .help("Print every range of slots and its chain"),
            ]),
        )
        .subcommand(
            Command::new("create")
                .about("Make a directory, with what is in it, the first node of a new cluster")
                .arg(dir().required(true).help("A new directory, or that of a node that is stopped")),
        )
        .subcommand(
            sub("add", "Print the line by which another node joins")
                .arg(dir().help("Directory of a node on this machine, instead of asking one that runs where it is")),
        )
        .subcommand(sub("drain", "Move everything away from a node").args([node("node"), no_wait()]))
        .subcommand(
            sub("suspect", "Have a node looked at that does not answer you, and say what was found").arg(node("node")),
        )
        .subcommand(sub("keep", "End the draining of a node, which gets a share again").arg(node("node")))
        .subcommand(sub("remove", "Drain a node and take it out for ever").args([
            node("node"),
            Arg::new("abandon").long("abandon").action(ArgAction::SetTrue).help("It is down: give up what only it has"),
        ]))
        .subcommand(
            sub("replace", "Let a node that has joined take what another one has, and take that one out")
                .args([node("node").value_name("OLD"), node("by").value_name("NEW")]),
        )
        .subcommand(sub("rebalance", "Move slots until every node has its share").arg(no_wait()))
        .subcommand(sub("move", "Move ranges of slots to a node").args([
            Arg::new("slots").value_name("FIRST-LAST").required(true).num_args(1..),
            Arg::new("to").long("to").value_name("NODE").required(true).help("Node, or node.core"),
            no_wait(),
        ]))
        .subcommand(sub("cancel", "Call off the moves away from the node that is asked"))
        .subcommand(sub("weigh", "Set a node's share against others'").args([
            node("node"),
            Arg::new("weight").value_name("WEIGHT").required(true).value_parser(value_parser!(u16)),
        ]))
        .subcommand(sub("configure", "Set what all nodes obey").args([
            Arg::new("lease-ms").long("lease-ms").value_name("MS").value_parser(value_parser!(u32)),
            Arg::new("chain-length").long("chain-length").value_name("N").value_parser(value_parser!(u8)),
        ]))
        .subcommand(
            sub("save", "Write every key to files, for a cluster of any size")
                .arg(directory().help("Where they go: a new or an empty directory")),
        )
        .subcommand(
            sub("load", "Load a save into an empty cluster, and compare what is there")
                .arg(directory().help("Where `save` wrote")),
        )
        .after_help(AFTER)
}

fn directory() -> Arg {
    Arg::new("directory").value_name("DIRECTORY").required(true).value_parser(value_parser!(PathBuf))
}

fn dir() -> Arg {
    Arg::new("dir").long("dir").value_name("DIRECTORY").value_parser(value_parser!(PathBuf))
}

fn with_target(command: Command) -> Command {
    command
        .disable_help_flag(true)
        .args([
            Arg::new("host").short('h').long("host").value_name("HOST").default_value("127.0.0.1").help("Any node"),
            Arg::new("port")
                .short('p')
                .long("port")
                .value_name("PORT")
                .default_value("6379")
                .value_parser(value_parser!(u16))
                .help("Its port"),
            Arg::new("user").long("user").value_name("NAME").help("User of the password in REDISCLI_AUTH"),
            Arg::new("help").long("help").action(ArgAction::Help).help("Print help"),
        ])
        .args(tls_options::args())
}

/// Does what was asked.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap asks for one");
    if name == "create" {
        return door::create(matches.get_one::<PathBuf>("dir").expect("it is required"));
    }
    match ask(name, matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say::problem(&why);
            ExitCode::FAILURE
        }
    }
}

fn ask(name: &str, matches: &ArgMatches) -> Result<(), String> {
    match (name, matches.try_get_one::<PathBuf>("directory")) {
        ("save", Ok(Some(directory))) => return save::save(&target(matches), directory),
        ("load", Ok(Some(directory))) => return save::load(&target(matches), directory),
        _ => {}
    }
    if name == "add" {
        return door::add(&target(matches), matches.get_one("dir"));
    }
    let mut operator = Operator::open(&target(matches))?;
    let text = |id: &str| matches.get_one::<String>(id).map(String::as_str).unwrap_or_default();
    let waits = || !matches.get_flag("no-wait");
    match name {
        "status" if matches.get_flag("json") => {
            let mut bytes = Vec::new();
            let reply = operator.status_reply()?;
            let health = health::ask_all(&order::read(&reply)?, &target(matches));
            json::write(&health::with_health(reply, &health), &mut bytes);
            say::line(&String::from_utf8_lossy(&bytes));
            Ok(())
        }
        "status" => {
            let standing = operator.status()?;
            let health = health::ask_all(&standing, &target(matches));
            let lines = picture::draw(&standing, &health, matches.get_flag("ranges"), picture::has_colour());
            lines.iter().for_each(|line| say::line(line));
            Ok(())
        }
        "drain" => wait::drain(&mut operator, text("node"), waits()),
        "suspect" => {
            let found = operator.call(&["ZH.CLUSTER", "SUSPECT", text("node")])?;
            if let Value::Bulk(text) = found {
                say::line(&String::from_utf8_lossy(&text));
            }
            Ok(())
        }
        "keep" => operator.order(&["KEEP", text("node")]),
        "remove" if matches.get_flag("abandon") => operator.order(&["REMOVE", text("node"), "ABANDON"]),
        "remove" => wait::remove(&mut operator, text("node")),
        "replace" => wait::replace(&mut operator, text("node"), text("by")),
        "rebalance" => wait::rebalance(&mut operator, waits()),
        "move" => {
            let slots: Vec<&str> =
                matches.get_many::<String>("slots").into_iter().flatten().map(String::as_str).collect();
            wait::move_slots(&mut operator, &slots, text("to"), waits())
        }
        "cancel" => operator.call(&["CLUSTER", "CANCELSLOTMIGRATIONS"]).map(drop),
        "weigh" => {
            let weight = matches.get_one::<u16>("weight").map(ToString::to_string).unwrap_or_default();
            operator.order(&["WEIGH", text("node"), &weight])
        }
        _ => {
            let lease_ms = matches.get_one::<u32>("lease-ms").map(ToString::to_string);
            let chain_length = matches.get_one::<u8>("chain-length").map(ToString::to_string);
            let pairs = [("LEASE-MS", lease_ms), ("CHAIN-LENGTH", chain_length)];
            let given = pairs.iter().filter_map(|(name, value)| Some([*name, value.as_deref()?]));
            let words: Vec<&str> = ["CONFIGURE"].into_iter().chain(given.flatten()).collect();
            match words.len() {
                1 => Err("nothing to set: give --lease-ms or --chain-length".to_owned()),
                _ => operator.order(&words),
            }
        }
    }
}

fn target(matches: &ArgMatches) -> Target {
    Target {
        host: matches.get_one::<String>("host").cloned().unwrap_or_default(),
        port: matches.get_one::<u16>("port").copied().unwrap_or_default(),
        socket: None,
        user: matches.get_one("user").cloned(),
        password: std::env::var("REDISCLI_AUTH").ok(),
        database: 0,
        resp3: true,
        tls: tls_options::read(matches),
        within: None,
    }
}
