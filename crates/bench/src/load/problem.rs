//! What makes a plan impossible, in words for the person who typed it: the option, its value, and what is allowed.

use base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use super::plan::{Dialect, Distribution, LoadPlan, Operation, Stop, Target};
use super::process::ProcessCpu;
use super::run::pin;

/// The CPUs of this machine, as the kernel writes them.
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";

impl LoadPlan {
    /// What makes the plan impossible.
    pub fn problem(&self) -> Option<String> {
        self.target_problem()
            .or_else(|| self.keys_problem())
            .or_else(|| self.counts_problem())
            .or_else(|| self.load_problem())
            .or_else(|| self.operations_problem())
            .or_else(|| self.machine_problem())
    }

    fn target_problem(&self) -> Option<String> {
        match &self.target {
            Target::Tcp(address) => {
                let parts = address.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
                let is_address = matches!(parts, Some((host, Ok(1..))) if !host.is_empty());
                (!is_address).then(|| format!("--target {address}: HOST:PORT is expected, as in 127.0.0.1:6379"))
            }
            Target::Unix(path) => self.cluster.then(|| {
                let path = path.display();
                format!("--unixsocket {path}: with --cluster a host and a port are expected, by --target")
            }),
        }
    }

    fn keys_problem(&self) -> Option<String> {
        let (count, bytes) = (self.keys.count, self.keys.bytes);
        if count == 0 {
            return Some("--keys 0: at least 1 is expected".into());
        }
        let least = self.keys.prefix.len() + (count - 1).to_string().len();
        (!(least..=KEY_BYTES_MAX).contains(&bytes)).then(|| {
            format!(
                "--key-bytes {bytes}: {least} to {KEY_BYTES_MAX} are expected for {count} keys after the prefix {:?}",
                self.keys.prefix
            )
        })
    }

    fn counts_problem(&self) -> Option<String> {
        let options = [("--connections", self.connections), ("--threads", self.threads), ("--pipeline", self.pipeline)];
        if let Some((option, _)) = options.iter().find(|(_, count)| *count == 0) {
            return Some(format!("{option} 0: at least 1 is expected"));
        }
        let (threads, connections) = (self.threads, self.connections);
        (threads > connections).then(|| {
            format!("--threads {threads}: at most one for each of the {connections} --connections is expected")
        })
    }

    fn load_problem(&self) -> Option<String> {
        match self.stop {
            Stop::Requests(0) => return Some("--requests 0: at least 1 is expected".into()),
            Stop::After(length) if length.is_zero() => {
                return Some("--duration 0: more than 0 seconds are expected".into());
            }
            Stop::Requests(_) | Stop::After(_) => {}
        }
        if let Some(rate) = self.open_loop.map(|open| open.per_second)
            && !(rate > 0.0 && rate.is_finite())
        {
            return Some(format!("--rate {rate}: a number above 0 is expected, requests per second"));
        }
        match self.keys.distribution {
            Distribution::Zipf(theta) | Distribution::Latest(theta) if !(theta > 0.0 && theta < 1.0) => {
                Some(format!("--theta {theta}: a number above 0 and below 1 is expected"))
            }
            Distribution::Zipf(_) | Distribution::Latest(_) | Distribution::Uniform | Distribution::Sequential => None,
        }
    }

    fn operations_problem(&self) -> Option<String> {
        let (low, high) = (self.value_bytes.start(), self.value_bytes.end());
        if low > high || *high > VALUE_BYTES_MAX {
            return Some(format!(
                "--value-bytes {low}-{high}: a length of at most {VALUE_BYTES_MAX} is expected, or LOW-HIGH"
            ));
        }
        if self.mix.iter().all(|(weight, _)| *weight == 0) {
            return Some("--ratio 0:0: one of the weights has to be above 0".into());
        }
        let single_key = |operation: &Operation| {
            !matches!(operation, Operation::MultiGet(_) | Operation::MultiGetRun(_) | Operation::Custom(_))
        };
        if self.cluster && !self.mix.iter().all(|(_, operation)| single_key(operation)) {
            return Some(
                "--cluster: every request must name one key: --op mget, --ycsb e and --command are refused".into(),
            );
        }
        let memcached_can = |operation: &Operation| matches!(operation, Operation::Get | Operation::Set);
        if self.dialect == Dialect::Memcached && !self.mix.iter().all(|(_, operation)| memcached_can(operation)) {
            return Some(
                "--memcached: --op get, --op set and --ratio are expected, that dialect knows no other".into(),
            );
        }
        None
    }

    fn machine_problem(&self) -> Option<String> {
        let pids = self.server_pid.iter().map(|pid| ("--server-pid", *pid));
        let mut pids = pids.chain(self.beside_pids.iter().map(|pid| ("--beside-pid", *pid)));
        if let Some((option, pid)) = pids.find(|(_, pid)| ProcessCpu::of(*pid).is_none()) {
            return Some(format!(
                "{option} {pid}: no such process can be seen here; one whose CPU time counts is expected"
            ));
        }
        let cpu = self.pin_cpus.iter().copied().find(|cpu| !can_pin(*cpu))?;
        let online = std::fs::read_to_string(CPUS_ONLINE).unwrap_or_default();
        Some(format!("--pin {cpu}: no such CPU can be used here; of {} some are expected", online.trim_end()))
    }
}

/// Tried on a thread of its own: whoever asks stays where it is.
fn can_pin(cpu: usize) -> bool {
    std::thread::spawn(move || pin(cpu)).join().is_ok_and(|pinned| pinned.is_ok())
}
