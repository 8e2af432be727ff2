//! The binary `zerohop`.
use server::{Backend, Durability, Node, NodeConfig};

fn main() {
    let mut config = NodeConfig::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().expect("a value follows");
        match option.as_str() {
            "serve" => {}
            "--port" => config.port = value().parse().expect("a port"),
            "--cores" => config.cores = value().parse().expect("a number"),
            "--dir" => config.directory = Some(value().into()),
            "--io" => config.backend = if value() == "uring" { Backend::Uring } else { Backend::Epoll },
            "--durability" => {
                config.durability = match value().as_str() {
                    "memory" => Durability::Memory,
                    "commit" => Durability::Commit,
                    _ => Durability::Interval,
                }
            }
            other => panic!("unknown option {other}"),
        }
    }
    let node = Node::start(&config, &format!("pid {}", std::process::id())).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1)
    });
    eprintln!("{:?} {:?}", node.backend(), node.recovery());
    node.join().expect("stopped");
}
