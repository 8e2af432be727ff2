//! A Redis or Valkey with two replicas, and three sentinels that watch it.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::process::Server;

/// What the sentinels call it.
const NAME: &str = "shop";
/// Sentinels that have to agree.
const QUORUM: usize = 2;
/// How long anything may take until it is as it should be.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// See the module.
pub struct Watched {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Watched {
    /// Starts all six, and waits until the sentinels know each other and both replicas. They agree that the master is gone when
    /// they have not heard of it for `down_after_ms`.
    ///
    /// # Errors
    /// When a program cannot be started, or the sentinels do nothing for a minute.
    pub fn start(redis_server: &str, down_after_ms: u64) -> io::Result<Watched> {
        let servers = (0..3).map(|_| Server::start_redis(redis_server, false)).collect::<io::Result<Vec<_>>>()?;
        let master = servers[0].port;
        for replica in &servers[1..] {
            Connection::open(&replica.address)?.call_line(&format!("REPLICAOF 127.0.0.1 {master}"))?;
        }
        let begin = |_| Server::start_sentinel(redis_server, (NAME, master), (QUORUM, down_after_ms));
        let sentinels = (0..3).map(begin).collect::<io::Result<Vec<_>>>()?;
        let watched = Watched { servers, sentinels };
        until("sentinels that know each other and both replicas", || {
            let told = watched.ask_sentinels(&format!("SENTINEL MASTER {NAME}"))?;
            Ok(field(&told, "num-slaves") == Some("2") && field(&told, "num-other-sentinels") == Some("2"))
        })?;
        Ok(watched)
    }

    /// How a proxy is told of it.
    pub fn upstream(&self) -> String {
        let places = self.sentinels.iter().map(|sentinel| sentinel.address.as_str()).collect::<Vec<_>>().join(",");
        format!("sentinel://{places}/{NAME}")
    }

    /// The port of whom the sentinels call the master.
    ///
    /// # Errors
    /// When they do not say it.
    pub fn master(&self) -> io::Result<u16> {
        let told = self.ask_sentinels(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"))?;
        let port = String::from_utf8_lossy(&told).lines().nth(4).and_then(|port| port.parse().ok());
        port.ok_or_else(|| io::Error::other(format!("no master in {:?}", String::from_utf8_lossy(&told))))
    }

    /// A connection to that one.
    ///
    /// # Errors
    /// Those of connecting.
    pub fn connect_to_master(&self) -> io::Result<Connection> {
        Connection::open(&format!("127.0.0.1:{}", self.master()?))
    }

    /// Has the sentinels make another server the master, and waits until they say so.
    ///
    /// # Errors
    /// When they do not.
    pub fn change_master(&self) -> io::Result<()> {
        let before = self.master()?;
        self.ask_sentinels(&format!("SENTINEL FAILOVER {NAME}"))?;
        until("another master", || Ok(self.master()? != before))
    }

    /// Kills the master as a crash would, and returns when it is gone; which port it had.
    ///
    /// # Errors
    /// When the sentinels name somebody else.
    pub fn kill_master(&mut self) -> io::Result<u16> {
        let port = self.master()?;
        let place = self.servers.iter().position(|server| server.port == port);
        drop(self.servers.swap_remove(place.ok_or_else(|| io::Error::other("the master is no server of ours"))?));
        Ok(port)
    }

    /// Ends all sentinels.
    pub fn end_sentinels(&mut self) {
        self.sentinels.clear();
    }

    /// Waits until the sentinels are content with the master, and the other servers are its replicas and have all that it has.
    ///
    /// # Errors
    /// When that does not come.
    pub fn wait_for_replicas(&self) -> io::Result<()> {
        until("replicas that have all", || {
            let told = self.ask_sentinels(&format!("SENTINEL MASTER {NAME}"))?;
            let mut master = self.connect_to_master()?;
            // What has this has everything before, and a connection that wrote nothing would wait for nothing. The last
            // database is nobody's.
            master.call_line("SELECT 15")?;
            let is_written = master.call_line("INCR replicated")?.starts_with(b":");
            let have_it = master.call_line("WAIT 2 1000")?;
            Ok(field(&told, "flags") == Some("master") && is_written && have_it == b":2\r\n")
        })
    }

    fn ask_sentinels(&self, line: &str) -> io::Result<Vec<u8>> {
        Connection::open(&self.sentinels[0].address)?.call_line(line)
    }
}

/// Looks until it is so.
///
/// # Errors
/// Those of looking; when it is not so for a minute.
pub fn until(what: &str, is_so: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > end {
            return Err(io::Error::other(format!("there is no {what} after a minute")));
        }
        sleep(LOOK_EVERY);
    }
    Ok(())
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
