//! The library's client behind a port: each request that arrives is asked by [`Client`], which all connections share. For the suite
//! `nemesis-scenes`, which cannot call the library from its own process and is to judge what the library tells its callers.
//!
//! ```text
//! cargo run -p cli --example library_gate -- 127.0.0.1:7100 127.0.0.1:7001        where to listen, then nodes: the first one that answers
//! ```
//!
//! What was not carried out is answered with an error; where the library does not know, the connection is closed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use server::stop_signals::on_request;
use wire::{Arguments, ParseLimits, Parsed, parse};
use zerohop::client::{Client, Error, Reply};

/// Longer than any of the harness's clients waits.
const TIMEOUT: Duration = Duration::from_secs(2);
/// What is read at once.
const READ_BYTES: usize = 64 << 10;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), nodes) = (arguments.next(), arguments.collect::<Vec<_>>()) else {
        eprintln!("library_gate LISTEN NODE…");
        return ExitCode::FAILURE;
    };
    match run(&listen, &nodes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(listen: &str, nodes: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    on_request(|_| std::process::exit(0))?;
    let open = |node: &String| Client::options().timeout(TIMEOUT).connect_timeout(TIMEOUT).open(node);
    let listener = TcpListener::bind(listen)?;
    let clients: Vec<Client> = nodes.iter().map(open).collect::<Result<_, _>>()?;
    let client = clients.iter().find(|client| client.command("PING").wait().is_ok()).or(clients.first());
    let client = client.ok_or("name at least one node")?;
    println!("ready on {listen}");
    std::thread::scope(|scope| {
        for connection in listener.incoming() {
            let connection = connection?;
            scope.spawn(move || serve(client, connection));
        }
        Ok(())
    })
}

/// One connection of the harness, until it ends or a request's fate is unknown.
fn serve(client: &Client, mut connection: TcpStream) {
    let (mut received, mut spans) = (Vec::new(), Vec::new());
    let mut piece = vec![0; READ_BYTES];
    loop {
        spans.clear();
        match parse(&received, 0, &mut spans, &ParseLimits::AUTHENTICATED) {
            Parsed::Request { consumed } => {
                let reply = ask(client, Arguments::new(&received, &spans));
                received.drain(..consumed);
                let Some(reply) = reply else { return };
                if connection.write_all(&reply).is_err() {
                    return;
                }
            }
            Parsed::Incomplete { .. } => match connection.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(bytes) => received.extend_from_slice(&piece[..bytes]),
            },
            _ => return,
        }
    }
}

/// The reply; nothing where nobody knows whether it was carried out.
fn ask(client: &Client, arguments: Arguments<'_>) -> Option<Vec<u8>> {
    let mut call = client.command(&String::from_utf8_lossy(&arguments[0]));
    for at in 1..arguments.len() {
        call = call.arg(&arguments[at]);
    }
    let mut reply = Vec::new();
    let mut writer = wire::Reply::new(&mut reply, wire::Protocol::Resp2);
    match call.wait() {
        Ok(Reply::Nil) => writer.null(),
        Ok(Reply::Okay) => writer.simple("OK"),
        Ok(Reply::SimpleString(text)) => writer.simple(&text),
        Ok(Reply::Int(number)) => writer.integer(number),
        Ok(Reply::BulkString(bytes)) => writer.bulk(&bytes),
        Ok(other) => writer.error("ERR", &format!("nobody here asks for {other:?}")),
        Err(
            Error::Unknown { .. } | Error::Lost { .. } | Error::TimedOut { .. } | Error::Interrupted | Error::Closed,
        ) => return None,
        Err(Error::Server(error)) => writer.raw(format!("-{}\r\n", error.text()).as_bytes()),
        Err(error) => writer.error("ERR", &error.to_string().replace(['\r', '\n'], " ")),
    }
    Some(reply)
}
