//! What a person is told about several nodes that are one store.

use super::plan::{Plan, name};
use super::process::NodeProcess;
use crate::{announce, say};
use server::NodeConfig;

/// How to connect, who listens where, and what to try.
pub fn ready(plan: &Plan, processes: &[NodeProcess], is_whole: bool) {
    let ports: Vec<String> = processes.iter().map(|process| (process.port + 1).to_string()).collect();
    let port = &ports[0];
    let with_password = if plan.config.password.is_some() { " (AUTH with your password)" } else { "" };
    let (version, nodes) = (env!("CARGO_PKG_VERSION"), plan.nodes);
    let mut lines = vec![
        format!("zerohop {version}: {nodes} nodes are one store, ready on 127.0.0.1:{port}{with_password}"),
        String::new(),
        format!("  redis-cli    redis-cli -c -p {port}"),
        format!("  Python       redis.cluster.RedisCluster(\"127.0.0.1\", {port})"),
        format!("  here         zerohop cli -c -p {port}"),
        String::new(),
    ];
    for process in processes {
        let NodeProcess { number, process_id, directory, .. } = process;
        let (name, directory, ports) = (name(*number), directory.display(), instance_ports(process.port, &plan.config));
        lines.push(format!("  {name}       cluster clients on {ports}, pid {process_id}, data {directory}"));
        lines.extend(process.admin.iter().map(|admin| format!("  {:<13}{admin}", "")));
    }
    lines.push(String::new());
    lines.push(format!("  durability   {}", announce::durability(&plan.config)));
    lines.push(match is_whole {
        true => "  copies       two of everything, on two nodes; a reply waits for both".to_owned(),
        false => format!("  copies       not yet two of everything: zerohop cli -p {port} cluster info"),
    });
    lines.push(String::new());
    lines.extend(to_try(plan, &processes[0]));
    lines.extend([String::new(), "Ctrl-C stops all of them.".to_owned()]);
    lines.iter().for_each(|text| say::line(text));
}

fn instance_ports(port: u16, config: &NodeConfig) -> String {
    match config.cores {
        1 => format!("port {}", port + 1),
        cores => format!("ports {} to {}", port + 1, port + cores),
    }
}

/// The line that kills the first node, and what happens then.
fn to_try(plan: &Plan, first: &NodeProcess) -> Vec<String> {
    let mut lines = vec!["See one fail:".to_owned(), format!("  kill -9 {}", first.process_id)];
    lines.push(match plan.nodes {
        2 => format!(
            "Two nodes keep two copies, but cannot outlive {}: without a majority nobody may take over, and nothing is served \
             until it is back. Three can. To start it again:",
            name(first.number)
        ),
        _ => {
            let sentence = "The others take over what it served, with every acknowledged write. It stays away until it is \
                            started again:";
            sentence.to_owned()
        }
    });
    lines.push(format!("  {}", plan.again(first.number, first.port)));
    lines
}

/// That a node has ended, and what that means.
pub fn ended(plan: &Plan, processes: &[NodeProcess], number: usize, reason: &str) {
    let Some(process) = processes.iter().find(|process| process.number == number) else { return };
    let left = processes.iter().filter(|process| process.is_running()).count();
    let is_majority = 2 * left > plan.nodes || (plan.nodes == 2 && number == 2);
    let then = match (left, is_majority) {
        (0, _) => "nobody is left",
        (_, true) => "the others go on",
        (_, false) => "too few are left to agree on who takes over",
    };
    let (name, process_id, again) = (name(number), process.process_id, plan.again(number, process.port));
    say::line(&format!("{name} (pid {process_id}) {reason}; {then}. To start it again: {again}"));
}
