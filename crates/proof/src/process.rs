//! Servers that a test starts for itself: on a free port, in a directory of its own, ended with the value.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ports::PortBlock;
use rustix::process::{Pid, Signal, kill_process};

use crate::connection::Connection;

/// Longest time from start to the first answer.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a server's output goes, hidden: a directory for a new store is to be empty.
const OUTPUT_NAME: &str = ".proof-output.txt";

/// Between two looks at whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A running server.
pub struct Server {
    child: Child,
    /// `host:port` of its plain personality.
    pub address: String,
    /// The port of its plain personality.
    pub port: u16,
    /// Nobody else's while it lives.
    _block: PortBlock,
    directory: PathBuf,
    keeps_directory: bool,
}

/// The last slot of a cluster.
const SLOT_LAST: u16 = 16_383;

impl Server {
    /// Starts a Redis or Valkey without persistence; with `cluster` as the only node of a cluster, owning all slots.
    ///
    /// # Errors
    /// When it cannot be started or does not say that it is ready.
    pub fn start_redis(binary: &str, cluster: bool) -> io::Result<Server> {
        let server = Server::launch_redis(binary, cluster)?;
        if cluster {
            server.hold_slots((0, SLOT_LAST))?;
            server.wait_until_whole()?;
        }
        Ok(server)
    }

    fn launch_redis(binary: &str, cluster: bool) -> io::Result<Server> {
        let block = PortBlock::take()?;
        let directory = new_directory()?;
        let binary = absolute(binary)?;
        let mut command = Command::new(&binary);
        command.args(["--port", &block.first().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        // Timeouts of blocking commands are looked at once per cycle of the server's own clock.
        command.args(["--hz", "500"]);
        command.args(["--cluster-enabled", if cluster { "yes" } else { "no" }]);
        // Extracted packages bring their libraries along.
        if let Some(libraries) = libraries_beside(&binary) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let mut server = Server::spawn(command, directory, block)?;
        server.wait_until_answering()?;
        Ok(server)
    }

    /// Starts one of the sentinels of the master at that port: `quorum` of them decide that it is gone, so long after they last
    /// heard of it.
    ///
    /// # Errors
    /// When it cannot be started or does not say that it is ready.
    pub fn start_sentinel(
        binary: &str,
        (name, master): (&str, u16),
        (quorum, down_after_ms): (usize, u64),
    ) -> io::Result<Server> {
        let (block, directory, binary) = (PortBlock::take()?, new_directory()?, absolute(binary)?);
        let file = directory.join("sentinel.conf");
        let text = format!(
            "port {}\nbind 127.0.0.1\nsentinel monitor {name} 127.0.0.1 {master} {quorum}\n\
             sentinel down-after-milliseconds {name} {down_after_ms}\nsentinel failover-timeout {name} 5000\n",
            block.first()
        );
        fs::write(&file, text)?;
        let mut command = Command::new(&binary);
        command.arg(&file).arg("--sentinel");
        if let Some(libraries) = libraries_beside(&binary) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let mut server = Server::spawn(command, directory, block)?;
        server.wait_until_answering()?;
        Ok(server)
    }

    /// Starts a cluster of so many of them, each with its share of the slots.
    ///
    /// # Errors
    /// As for one, or if they do not find each other.
    pub fn start_redis_cluster(binary: &str, count: u16) -> io::Result<Vec<Server>> {
        let mut servers = Vec::new();
        for number in 0..count {
            let server = Server::launch_redis(binary, true)?;
            let share = (SLOT_LAST + 1) / count;
            let last = if number + 1 == count { SLOT_LAST } else { (number + 1) * share - 1 };
            server.hold_slots((number * share, last))?;
            servers.push(server);
        }
        for other in &servers[1..] {
            Connection::open(&servers[0].address)?.call_line(&format!("CLUSTER MEET 127.0.0.1 {}", other.port))?;
        }
        servers.iter().try_for_each(Server::wait_until_whole)?;
        Ok(servers)
    }

    fn hold_slots(&self, (first, last): (u16, u16)) -> io::Result<()> {
        Connection::open(&self.address)?.call_line(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")).map(drop)
    }

    fn wait_until_whole(&self) -> io::Result<()> {
        let mut connection = Connection::open(&self.address)?;
        while !contains(&connection.call_line("CLUSTER INFO")?, b"cluster_state:ok") {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts Zerohop with `arguments` after `serve --port P --dir D`, on the directory `directory` if one is given.
    /// A directory that is given outlives the server.
    ///
    /// # Errors
    /// When it cannot be started or ends before it accepts connections.
    pub fn start_zerohop(binary: &str, arguments: &[&str], directory: Option<&Path>) -> io::Result<Server> {
        let mut server = Server::launch_zerohop(binary, arguments, directory)?;
        server.wait_until_answering()?;
        Ok(server)
    }

    /// As [`Server::start_zerohop`], without waiting for anything.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn launch_zerohop(binary: &str, arguments: &[&str], directory: Option<&Path>) -> io::Result<Server> {
        let block = PortBlock::take()?;
        let keeps_directory = directory.is_some();
        let directory = directory.map_or_else(new_directory, |given| Ok(given.to_path_buf()))?;
        let mut command = Command::new(absolute(binary)?);
        command.args(["serve", "--port", &block.first().to_string(), "--dir"]).arg(&directory).args(arguments);
        let mut server = Server::spawn(command, directory, block)?;
        server.keeps_directory = keeps_directory;
        Ok(server)
    }

    /// Starts a proxy before the store at `upstream`.
    ///
    /// # Errors
    /// When it cannot be started or ends before it accepts connections.
    pub fn start_proxy(binary: &str, upstream: &str, arguments: &[&str]) -> io::Result<Server> {
        let block = PortBlock::take()?;
        let mut command = Command::new(absolute(binary)?);
        command.args(["proxy", upstream, "--port", &block.first().to_string()]).args(arguments);
        let mut server = Server::spawn(command, new_directory()?, block)?;
        server.wait_until_answering()?;
        Ok(server)
    }

    /// Starts a proxy with the file that `text` makes of the first of its ports; the first listener is there.
    ///
    /// # Errors
    /// When it cannot be started or ends before it accepts connections.
    pub fn start_proxy_by_file(binary: &str, text: impl FnOnce(u16) -> String) -> io::Result<Server> {
        let (block, directory) = (PortBlock::take()?, new_directory()?);
        let file = directory.join("proxy.toml");
        fs::write(&file, text(block.first()))?;
        let mut command = Command::new(absolute(binary)?);
        command.args(["proxy", "--config"]).arg(file);
        let mut server = Server::spawn(command, directory, block)?;
        server.wait_until_answering()?;
        Ok(server)
    }

    /// As [`Server::launch_zerohop`] on the directory `data`, which outlives it, with these variables; what it prints is kept in
    /// `home`, which outlives it, too.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn launch_zerohop_beside(
        binary: &str,
        arguments: &[&str],
        (data, home): (&Path, &Path),
        variables: &[(&str, OsString)],
    ) -> io::Result<Server> {
        let block = PortBlock::take()?;
        let mut command = Command::new(absolute(binary)?);
        command.args(["serve", "--port", &block.first().to_string(), "--dir"]).arg(data).args(arguments);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut server = Server::spawn(command, home.to_path_buf(), block)?;
        server.keeps_directory = true;
        Ok(server)
    }

    fn spawn(mut command: Command, directory: PathBuf, block: PortBlock) -> io::Result<Server> {
        let output = fs::File::create(directory.join(OUTPUT_NAME))?;
        command.current_dir(&directory).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn()?;
        let port = block.first();
        let address = format!("127.0.0.1:{port}");
        Ok(Server { child, address, port, _block: block, directory, keeps_directory: false })
    }

    /// Asks until it answers; ends early when the process has ended.
    ///
    /// # Errors
    /// What it said, when it has ended or never answers.
    pub fn wait_until_answering(&mut self) -> io::Result<()> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("{status} before it answered: {}", self.output())));
            }
            let answer = self.connect().and_then(|mut connection| connection.call_line("PING"));
            match answer {
                // A server that wants a password answers NOAUTH, one that reads its log LOADING.
                Ok(raw) if !raw.starts_with(b"-LOADING") => return Ok(()),
                _ if started.elapsed() > READY_TIMEOUT => {
                    return Err(io::Error::other(format!("it never answered: {}", self.output())));
                }
                _ => std::thread::yield_now(),
            }
        }
    }

    /// What it has printed.
    pub fn output(&self) -> String {
        fs::read_to_string(self.directory.join(OUTPUT_NAME)).unwrap_or_default()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// A new connection to the plain personality.
    ///
    /// # Errors
    /// Those of connecting.
    pub fn connect(&self) -> io::Result<Connection> {
        Connection::open(&self.address)
    }

    /// Ends it as a crash would, and returns when it is gone.
    ///
    /// # Errors
    /// Those of signalling.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Asks it to stop (SIGTERM), and does not wait.
    ///
    /// # Errors
    /// Those of signalling.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// Those of signalling.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).expect("a child has a process id");
        Ok(kill_process(id, signal)?)
    }

    /// Waits until it has ended, but not longer than `at_most`; time in which this process itself is stopped does not count.
    ///
    /// # Errors
    /// When it has not.
    pub fn wait_until_ended(&mut self, at_most: Duration) -> io::Result<ExitStatus> {
        let mut left = at_most;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if left.is_zero() {
                return Err(io::Error::other(format!("it has not ended after {at_most:?}")));
            }
            let pause = left.min(LOOK_EVERY);
            std::thread::sleep(pause);
            left -= pause;
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory in bytes.
    ///
    /// # Errors
    /// When it is gone.
    pub fn resident_bytes(&self) -> io::Result<u64> {
        self.memory_bytes("VmRSS:")
    }

    /// The most that was ever resident, in bytes: no moment is missed.
    ///
    /// # Errors
    /// When it is gone.
    pub fn resident_bytes_peak(&self) -> io::Result<u64> {
        self.memory_bytes("VmHWM:")
    }

    fn memory_bytes(&self, what: &str) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let kibibytes = status
            .lines()
            .find_map(|line| line.strip_prefix(what))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
            .ok_or_else(|| io::Error::other("the server is gone"))?;
        Ok(kibibytes << 10)
    }

    /// Processor time that its threads have used so far, in nanoseconds; that of threads which are over is gone.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cpu_ns(&self) -> io::Result<u64> {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id()))? {
            let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            sum += text.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// Processor time it has used so far, in clock ticks of 10 ms.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cpu_ticks(&self) -> io::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        Ok(field(11) + field(12))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is as good as killed; the directory is of no use to anybody then.
        drop(self.kill());
        if !self.keeps_directory {
            drop(fs::remove_dir_all(&self.directory));
        }
    }
}

/// The libraries that an unpacked package brings along for its `binary`.
pub fn libraries_beside(binary: &Path) -> Option<PathBuf> {
    binary.parent().map(|folder| folder.join("../lib/x86_64-linux-gnu")).filter(|libraries| libraries.is_dir())
}

/// A path that still holds in another directory; a bare name is left to PATH.
fn absolute(binary: &str) -> io::Result<PathBuf> {
    if binary.contains('/') { std::path::absolute(binary) } else { Ok(PathBuf::from(binary)) }
}

/// A new empty directory under the system's temporary directory.
///
/// # Errors
/// Those of creating it.
pub fn new_directory() -> io::Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = format!("zerohop-proof-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// A copy of all that is in a directory, with holes where it has only zeros; what it is copied to may be there.
///
/// # Errors
/// Those of `cp`.
pub fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    let status = Command::new("cp").args(["-a", "--sparse=always"]).arg(from.join(".")).arg(to).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("cp {} {}: {status}", from.display(), to.display()))),
    }
}

/// Whether `needle` occurs in `haystack`.
pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
