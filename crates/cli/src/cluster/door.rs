//! How a cluster begins, and how more nodes come to it: what a node's directory says, on its own machine. The token, which opens everything
//! between nodes, is in that directory and travels over no port.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use server::membership;
use wire::reply_parse::Value;

use super::order::Operator;
use crate::client::connection::Target;
use crate::up_nodes::nodes_in;
use crate::{exit, say};

/// `create`.
pub fn create(directory: &Path) -> ExitCode {
    let shown = directory.display();
    let nodes = nodes_in(directory);
    if nodes > 0 {
        return exit::with(
            exit::USAGE,
            &format!("{shown} has a store of {nodes} nodes: choose another directory with --dir"),
        );
    }
    let about = format!("pid {}, which makes it a node of a cluster", std::process::id());
    match membership::found(directory, &about) {
        Err(error) => exit::of_node(&error, Some(directory)),
        Ok(()) => {
            let full = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
            let full = full.display();
            for line in [
                format!("{shown} is the first node of a new cluster; what was in it stays"),
                String::new(),
                format!("  start it       zerohop serve --dir {full}"),
                "                 (for other machines add --bind ADDRESS --requirepass-file FILE)".to_owned(),
                "  more nodes     by the line that it prints then; three outlive any one of them".to_owned(),
                format!("  that line      zerohop cluster add --dir {full}"),
            ] {
                say::line(&line);
            }
            ExitCode::SUCCESS
        }
    }
}

/// `add`: of the directory that is named, or else of that of the node at `target`.
///
/// # Errors
/// Why there is no line, for people.
pub fn add(target: &Target, directory: Option<&PathBuf>) -> Result<(), String> {
    let invited = match directory {
        Some(directory) => membership::invitation(directory)?,
        None => of_running(target)?,
    };
    let token = invited.token.to_text();
    say::line("# on the machine of the new node; the token opens everything between nodes:");
    say::line(&format!("zerohop join {} --token {token}", invited.address));
    Ok(())
}

fn of_running(target: &Target) -> Result<membership::Invited, String> {
    let mut operator = Operator::open(target)?;
    let standing = operator.status()?;
    let directory = match operator.call(&["CONFIG", "GET", "dir"])? {
        Value::Map(pairs) => pairs.into_iter().find_map(|(_, value)| match value {
            Value::Bulk(path) => Some(PathBuf::from(String::from_utf8_lossy(&path).into_owned())),
            _ => None,
        }),
        _ => None,
    };
    let directory =
        directory.ok_or_else(|| format!("{target} does not say where its data lies: name it with --dir"))?;
    let elsewhere = |why: &str| {
        format!(
            "the token is in the data directory of each node and travels over no port, so this needs {} of the node at {target}, \
             on its machine and as its user, or another node's with --dir ({why})",
            directory.display()
        )
    };
    let invited = membership::invitation(&directory).map_err(|why| elsewhere(&why))?;
    let name = format!("{:032x}", u128::from_be_bytes(invited.cluster));
    match name == standing.cluster {
        true => Ok(invited),
        false => Err(elsewhere("what lies there on this machine is another cluster's")),
    }
}
