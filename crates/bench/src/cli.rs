//! The options of `zerohop bench` as a person types them, resolved once into a [`LoadPlan`].

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use base::limits::VALUE_BYTES_MAX;
use clap::{Args, ValueEnum};

use crate::load::plan::{DEFAULT_PREFIX, Dialect, Distribution, KeySpace, LoadPlan, OpenLoop, Operation, Stop, Target};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OperationName {
    /// GET key
    Get,
    /// SET key value
    Set,
    /// APPEND key value
    Append,
    /// INCR key
    Incr,
    /// MGET of --keys-per-request keys
    Mget,
    /// DEL key
    Del,
}

/// The core workloads of YCSB (Cooper et al., SoCC 2010). A record is one string, not ten fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ycsb {
    /// 50 % read, 50 % update, zipf
    A,
    /// 95 % read, 5 % update, zipf
    B,
    /// read only, zipf
    C,
    /// 95 % read of the latest keys, 5 % insert
    D,
    /// 95 % scan, 5 % insert; a scan is an MGET of 1 to 100 consecutive keys, because a hash store has no order
    E,
    /// 50 % read, 50 % read-modify-write (GET, then SET of the same key: two requests), zipf
    F,
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DistributionName {
    /// Every key as likely as any other
    Uniform,
    /// Zipf's law, popular keys scattered
    Zipf,
    /// Zipf's law over age
    Latest,
    /// One after the other
    Sequential,
}

/// Drive a RESP server and report throughput, latency and, when its process can be seen, CPU time per request.
#[derive(Args, Clone, Debug)]
pub struct BenchArguments {
    /// Server, host:port
    #[arg(long, default_value = "127.0.0.1:6379", value_name = "HOST:PORT")]
    pub target: String,
    /// Server, path of a Unix socket (instead of --target)
    #[arg(long, value_name = "PATH")]
    pub unixsocket: Option<PathBuf>,
    /// Environment variable that holds the password (a password on the command line is visible to everyone)
    #[arg(long, value_name = "VARIABLE")]
    pub password_env: Option<String>,
    /// ACL user of the password
    #[arg(long, requires = "password_env")]
    pub user: Option<String>,
    /// RESP version
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub resp: u8,
    /// Speak memcached's text protocol instead of RESP (get and set only)
    #[arg(long, conflicts_with_all = ["cluster", "password_env"])]
    pub memcached: bool,
    /// Ask for CLUSTER SLOTS and send every key to the instance that owns it
    #[arg(long)]
    pub cluster: bool,
    /// Connections in all
    #[arg(long, short = 'c', default_value_t = 50)]
    pub connections: usize,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Requests in flight on each connection
    #[arg(long, short = 'P', default_value_t = 1)]
    pub pipeline: usize,
    /// What every request does
    #[arg(long, value_enum, default_value_t = OperationName::Get)]
    pub op: OperationName,
    /// Keys of one MGET
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub keys_per_request: u32,
    /// Mix of GET and SET by weight, GET:SET (instead of --op)
    #[arg(long, value_name = "GET:SET", conflicts_with = "op")]
    pub ratio: Option<String>,
    /// Any command (instead of --op); __key__ and __value__ are replaced
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["op", "ratio"])]
    pub command: Option<String>,
    /// A core workload of YCSB: zipf keys and, unless given, 1000-byte values (instead of --op)
    #[arg(long, value_enum, ignore_case = true, conflicts_with_all = ["op", "ratio", "command", "distribution"])]
    pub ycsb: Option<Ycsb>,
    /// Number of different keys
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// Length of a key, bytes
    #[arg(long, default_value_t = 15)]
    pub key_bytes: usize,
    /// What every key begins with; a hash tag such as {0} puts all keys into one slot
    #[arg(long, default_value = DEFAULT_PREFIX)]
    pub key_prefix: String,
    /// Length of a value, bytes, or a range LOW-HIGH [default: 132]
    #[arg(long, value_name = "BYTES")]
    pub value_bytes: Option<String>,
    /// How keys are drawn
    #[arg(long, value_enum, default_value_t = DistributionName::Uniform)]
    pub distribution: DistributionName,
    /// Exponent of zipf and latest
    #[arg(long, default_value_t = 0.99)]
    pub theta: f64,
    /// Open loop: offer this many requests per second; latency counts from the intended start
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Open loop with equal gaps instead of exponential ones
    #[arg(long, requires = "rate")]
    pub fixed_gaps: bool,
    /// Open loop: sleep until a start is due instead of spinning, which is exact but takes a whole processor; for sharing one
    #[arg(long, requires = "rate")]
    pub sleep: bool,
    /// Write every key once before measuring
    #[arg(long)]
    pub preload: bool,
    /// Load before the measured time, seconds
    #[arg(long, default_value_t = 0.5)]
    pub warm_up: f64,
    /// Measured time, seconds
    #[arg(long, short = 'd', default_value_t = 5.0)]
    pub duration: f64,
    /// Measure this many requests instead of a time
    #[arg(long, short = 'n', conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Seed of everything drawn
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Process whose CPU time counts [default: what the server says, if it is on this machine]
    #[arg(long)]
    pub server_pid: Option<u32>,
    /// More processes whose CPU time counts, such as the store behind a proxy
    #[arg(long)]
    pub beside_pid: Vec<u32>,
    /// CPUs for the generator's threads, e.g. 1 or 1,2
    #[arg(long, value_delimiter = ',')]
    pub pin: Vec<usize>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The exit code for options that are wrong; clap's, too.
const USAGE: u8 = 2;
/// Longest time that may be asked for, seconds: 30 years, whose nanoseconds fit 64 bits.
const SECONDS_MAX: f64 = 1e9;

/// What becomes of a run whose replies were errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReplies {
    /// The report tells them: whoever reads it judges.
    Told,
    /// It tells them, and the program fails.
    Failure,
}

/// Runs `zerohop bench` and prints its report.
pub fn run(arguments: BenchArguments, error_replies: ErrorReplies) -> ExitCode {
    let json = arguments.json;
    let plan = match plan(arguments) {
        Ok(plan) => plan,
        Err(problem) => {
            fail(&problem);
            return ExitCode::from(USAGE);
        }
    };
    let report = match crate::load::run(&plan) {
        Ok(report) => report,
        Err(problem) => return fail(&problem),
    };
    match json.then(|| serde_json::to_string(&report)) {
        None => print!("{report}"),
        Some(Ok(text)) => println!("{text}"),
        Some(Err(error)) => return fail(&error.to_string()),
    }
    match error_replies {
        ErrorReplies::Failure if report.errors > 0 => fail(&format!(
            "{} of {} replies were errors, first: {}",
            report.errors,
            report.requests,
            report.first_error.unwrap_or_default()
        )),
        ErrorReplies::Told | ErrorReplies::Failure => ExitCode::SUCCESS,
    }
}

fn fail(problem: &str) -> ExitCode {
    eprintln!("bench: {problem}");
    ExitCode::FAILURE
}

/// Resolves what was typed.
///
/// # Errors
/// The option that is wrong, its value, and what is allowed.
pub fn plan(arguments: BenchArguments) -> Result<LoadPlan, String> {
    let plan = resolved(arguments)?;
    plan.problem().map_or(Ok(plan), Err)
}

fn resolved(arguments: BenchArguments) -> Result<LoadPlan, String> {
    let target = match arguments.unixsocket.clone() {
        Some(path) => Target::Unix(path),
        None => Target::Tcp(arguments.target.clone()),
    };
    let password = match &arguments.password_env {
        None => None,
        Some(variable) => {
            let password = std::env::var(variable);
            Some(password.map_err(|_| {
                format!("--password-env {variable}: the environment has no such variable; one that holds the password is expected")
            })?)
        }
    };
    let (mix, distribution) = workload(&arguments)?;
    let value_bytes = match (&arguments.value_bytes, arguments.ycsb) {
        (Some(text), _) => size_range(text)?,
        (None, Some(_)) => 1000..=1000,
        (None, None) => 132..=132,
    };
    let warm_up = seconds("--warm-up", arguments.warm_up)?;
    let stop = match arguments.requests {
        Some(requests) => Stop::Requests(requests),
        None => Stop::After(seconds("--duration", arguments.duration)?),
    };
    Ok(LoadPlan {
        target,
        dialect: match (arguments.memcached, arguments.resp) {
            (true, _) => Dialect::Memcached,
            (false, 3) => Dialect::Resp3,
            (false, _) => Dialect::Resp2,
        },
        user: arguments.user,
        password,
        cluster: arguments.cluster,
        connections: arguments.connections,
        threads: arguments.threads,
        pipeline: arguments.pipeline,
        mix,
        keys: KeySpace {
            prefix: arguments.key_prefix,
            count: arguments.keys,
            bytes: arguments.key_bytes,
            distribution,
        },
        value_bytes,
        open_loop: arguments.rate.map(|per_second| OpenLoop {
            per_second,
            poisson: !arguments.fixed_gaps,
            spins: !arguments.sleep,
        }),
        preload: arguments.preload,
        warm_up,
        stop,
        seed: arguments.seed,
        server_pid: arguments.server_pid,
        beside_pids: arguments.beside_pid,
        pin_cpus: arguments.pin,
        progress: !arguments.json,
    })
}

fn seconds(option: &str, seconds: f64) -> Result<Duration, String> {
    let length = Duration::try_from_secs_f64(seconds).ok().filter(|_| seconds <= SECONDS_MAX);
    length.ok_or_else(|| format!("{option} {seconds}: a number of seconds up to {SECONDS_MAX} is expected"))
}

type Workload = (Vec<(u32, Operation)>, Distribution);

fn workload(arguments: &BenchArguments) -> Result<Workload, String> {
    let zipf = Distribution::Zipf(arguments.theta);
    let latest = Distribution::Latest(arguments.theta);
    if let Some(ycsb) = arguments.ycsb {
        return Ok(match ycsb {
            Ycsb::A => (vec![(50, Operation::Get), (50, Operation::Set)], zipf),
            Ycsb::B => (vec![(95, Operation::Get), (5, Operation::Set)], zipf),
            Ycsb::C => (vec![(1, Operation::Get)], zipf),
            Ycsb::D => (vec![(95, Operation::Get), (5, Operation::Insert)], latest),
            Ycsb::E => (vec![(95, Operation::MultiGetRun(100)), (5, Operation::Insert)], zipf),
            Ycsb::F => (vec![(50, Operation::Get), (50, Operation::ReadModifyWrite)], zipf),
        });
    }
    let distribution = match arguments.distribution {
        DistributionName::Uniform => Distribution::Uniform,
        DistributionName::Zipf => zipf,
        DistributionName::Latest => latest,
        DistributionName::Sequential => Distribution::Sequential,
    };
    if let Some(command) = &arguments.command {
        let words: Vec<String> = command.split_whitespace().map(String::from).collect();
        if words.is_empty() {
            return Err(format!("--command {command:?}: the words of a command are expected"));
        }
        return Ok((vec![(1, Operation::Custom(words))], distribution));
    }
    if let Some(ratio) = &arguments.ratio {
        let weights = ratio.split_once(':').and_then(|(get, set)| Some((get.parse().ok()?, set.parse().ok()?)));
        let (get, set) = weights.filter(|weights| *weights != (0, 0)).ok_or_else(|| {
            format!("--ratio {ratio}: two whole numbers are expected, one of them above 0, as in 9:1")
        })?;
        return Ok((vec![(get, Operation::Get), (set, Operation::Set)], distribution));
    }
    let operation = match arguments.op {
        OperationName::Get => Operation::Get,
        OperationName::Set => Operation::Set,
        OperationName::Append => Operation::Append,
        OperationName::Incr => Operation::Incr,
        OperationName::Mget => Operation::MultiGet(arguments.keys_per_request as usize),
        OperationName::Del => Operation::Del,
    };
    Ok((vec![(1, operation)], distribution))
}

fn size_range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok(low..=high),
        _ => Err(format!(
            "--value-bytes {text}: a length of at most {VALUE_BYTES_MAX} is expected, or LOW-HIGH with the lower one first"
        )),
    }
}
