//! The proxy before a Redis that its own sentinels watch: told to change the master, and when it is killed, no acknowledged write
//! is lost by the proxy and none is done twice.
//!
//! ```text
//!   counter ──► proxy ──► whom the sentinels name: one of three servers, the others its replicas
//!                 └─────► three sentinels
//! ```
//!
//! Before each change all replicas have all writes, so whatever is missing afterwards, or too much, is the proxy's doing. A master
//! that is changed by command takes writes for some seconds more, which Redis loses; so there it is waited for until the proxy
//! has heard the news.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;

use crate::commands::Counts;
use crate::connection::Connection;
use crate::process::{Server, contains};

/// What the sentinels call it.
const NAME: &str = "shop";
/// Sentinels that have to agree.
const QUORUM: usize = 2;
/// How long anything may take until it is as it should be.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Increments between two changes.
const INCREMENTS: u64 = 200;

/// Arguments of `sentinel`.
#[derive(Args)]
pub struct SentinelArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// What moves the proxy's bytes.
    #[arg(long, default_value = "auto")]
    io: String,
    /// The binary redis-server or valkey-server.
    #[arg(long, default_value = "redis-server")]
    redis_server: String,
}

/// Servers, sentinels and the proxy.
struct Scene {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
    proxy: Server,
    /// Increments that were acknowledged.
    acknowledged: u64,
}

/// Each change is a test.
///
/// # Errors
/// When a program cannot be started, or the sentinels do nothing for a minute.
pub fn sentinel(arguments: &SentinelArguments) -> io::Result<Counts> {
    let mut scene = Scene::start(arguments)?;
    let mut counts = Counts { passed: 0, failed: 0 };
    let mut judge = |what: &str, is_so: Result<(), String>| {
        println!(
            "{}: {what}{}",
            if is_so.is_ok() { "passed" } else { "FAILED" },
            is_so.as_ref().err().map_or(String::new(), |why| format!(": {why}"))
        );
        match is_so {
            Ok(()) => counts.passed += 1,
            Err(_) => counts.failed += 1,
        }
    };
    judge("the master that the sentinels name is written to", scene.count(INCREMENTS)?);
    scene.wait_for_replicas()?;
    let before = scene.master()?;
    scene.ask_sentinels(&format!("SENTINEL FAILOVER {NAME}"))?;
    scene.until("another master", |scene| Ok(scene.master()? != before))?;
    scene.until("proxy that follows", |scene| {
        let told = scene.proxy.connect()?.call_line("INFO server")?;
        Ok(contains(&told, format!("tcp_port:{}\r\n", scene.master()?).as_bytes()))
    })?;
    judge("a master that was changed by command is followed", scene.count(INCREMENTS)?);
    scene.wait_for_replicas()?;
    let killed = scene.master()?;
    let place = scene.servers.iter().position(|server| server.port == killed);
    drop(scene.servers.swap_remove(place.ok_or_else(|| io::Error::other("the master is no server of ours"))?));
    judge("a master that was killed is replaced", scene.count(INCREMENTS)?);
    scene.sentinels.clear();
    judge("without any sentinel who is connected goes on", scene.count(INCREMENTS)?);
    Ok(counts)
}

impl Scene {
    fn start(arguments: &SentinelArguments) -> io::Result<Scene> {
        let servers =
            (0..3).map(|_| Server::start_redis(&arguments.redis_server, false)).collect::<io::Result<Vec<_>>>()?;
        let master = servers[0].port;
        for replica in &servers[1..] {
            Connection::open(&replica.address)?.call_line(&format!("REPLICAOF 127.0.0.1 {master}"))?;
        }
        let begin = |_| Server::start_sentinel(&arguments.redis_server, (NAME, master), QUORUM);
        let sentinels = (0..3).map(begin).collect::<io::Result<Vec<_>>>()?;
        let places = sentinels.iter().map(|sentinel| sentinel.address.as_str()).collect::<Vec<_>>().join(",");
        let proxy =
            Server::start_proxy(&arguments.zerohop, &format!("sentinel://{places}/{NAME}"), &["--io", &arguments.io])?;
        let scene = Scene { servers, sentinels, proxy, acknowledged: 0 };
        scene.until("sentinels that know each other and both replicas", |scene| {
            let told = scene.ask_sentinels(&format!("SENTINEL MASTER {NAME}"))?;
            Ok(field(&told, "num-slaves") == Some("2") && field(&told, "num-other-sentinels") == Some("2"))
        })?;
        Ok(scene)
    }

    /// Increments through the proxy until so many more are acknowledged; whether the counter says each time what it has to.
    fn count(&mut self, more: u64) -> io::Result<Result<(), String>> {
        let (end, goal) = (Instant::now() + PATIENCE, self.acknowledged + more);
        let mut connection = self.proxy.connect()?;
        while self.acknowledged < goal {
            if Instant::now() > end {
                return Ok(Err(format!("{} of {goal} increments in a minute", self.acknowledged)));
            }
            let reply = connection.call_line("INCR counter");
            match reply.as_deref() {
                Ok(reply) if reply.starts_with(b":") => {
                    let expected = format!(":{}\r\n", self.acknowledged + 1);
                    if reply != expected.as_bytes() {
                        let reply = String::from_utf8_lossy(reply);
                        return Ok(Err(format!("the counter says {} and not {}", reply.trim(), expected.trim())));
                    }
                    self.acknowledged += 1;
                }
                // Said not to be carried out; a little later it may be.
                Ok(_) => sleep(LOOK_EVERY),
                // Nothing was on its way when the master changed, so nothing is unknown.
                Err(error) => return Ok(Err(format!("the proxy closed a connection: {error}"))),
            }
        }
        Ok(Ok(()))
    }

    fn master(&self) -> io::Result<u16> {
        let told = self.ask_sentinels(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"))?;
        let port = String::from_utf8_lossy(&told).lines().nth(4).and_then(|port| port.parse().ok());
        port.ok_or_else(|| io::Error::other(format!("no master in {:?}", String::from_utf8_lossy(&told))))
    }

    fn ask_sentinels(&self, line: &str) -> io::Result<Vec<u8>> {
        Connection::open(&self.sentinels[0].address)?.call_line(line)
    }

    /// The other servers are replicas of the master again, and have what it has.
    fn wait_for_replicas(&self) -> io::Result<()> {
        self.until("replicas that have all", |scene| {
            let mut master = Connection::open(&format!("127.0.0.1:{}", scene.master()?))?;
            let role = master.call_line("ROLE")?;
            let get = master.call_line("GET counter")?;
            let is_same = |server: &Server| {
                Ok::<bool, io::Error>(Connection::open(&server.address)?.call_line("GET counter")? == get)
            };
            let all_same = scene.servers.iter().map(is_same).collect::<io::Result<Vec<_>>>()?;
            let told = scene.ask_sentinels(&format!("SENTINEL MASTER {NAME}"))?;
            Ok(contains(&role, b"master")
                && all_same.into_iter().all(|is_same| is_same)
                && field(&told, "flags") == Some("master"))
        })
    }

    fn until(&self, what: &str, is_so: impl Fn(&Scene) -> io::Result<bool>) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        while !is_so(self)? {
            if Instant::now() > end {
                return Err(io::Error::other(format!("there is no {what} after a minute")));
            }
            sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// The value of a field in a list of names and values.
fn field<'a>(reply: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(reply).ok()?;
    let mut lines = text.split("\r\n").skip_while(|line| *line != name);
    lines.nth(2)
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_found_by_name() {
        let reply = b"*4\r\n$5\r\nflags\r\n$6\r\nmaster\r\n$3\r\nnum\r\n$1\r\n2\r\n";
        assert_eq!([field(reply, "flags"), field(reply, "num"), field(reply, "x")], [Some("master"), Some("2"), None]);
    }
}
