//! One run from plan to report: dial, preload, warm up, open the window, close it, add up.

use std::io::IsTerminal;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::connection::Connection;
use super::dial::Stream;
use super::generator::Generator;
use super::keys::KeyChooser;
use super::measure::{Observations, Window};
use super::plan::{LoadPlan, Stop};
use super::preload::preload;
use super::process::{ProcessCpu, machine_busy_ns, server_pid};
use super::report::{Latency, LittlesLaw, Offered, Report, ServerCost};
use super::request::Requests;
use super::route::{Destination, destinations};

/// How often progress is shown.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs `plan`. The error is one sentence for the person who asked.
pub fn run(plan: &LoadPlan) -> Result<Report, String> {
    if let Some(problem) = plan.problem() {
        return Err(problem);
    }
    if !plan.pin_cpus.is_empty() {
        // The preload and the dialling, too: a server on the other CPU is to have it for itself.
        pin_to(&plan.pin_cpus)?;
    }
    let destinations = destinations(plan)?;
    if plan.connections < destinations.len() {
        let (connections, instances) = (plan.connections, destinations.len());
        return Err(format!("--connections {connections}: at least {instances} are expected, one for each instance"));
    }
    let pids = server_pids(plan, &destinations);
    if plan.preload {
        let bar = progress_bar(plan, plan.keys.count, "preload {bar:40} {pos}/{len} keys, {eta} left");
        preload(plan, &destinations, |done| bar.set_position(done))?;
        bar.finish_and_clear();
    }
    let window = Arc::new(Window::new(plan.threads));
    let generators = generators(plan, &destinations, &window)?;
    // Without a warm-up the first request opens the window; what is read before it costs none of its time.
    let before = plan.warm_up.is_zero().then(|| Reading::take(&window, &pids));
    let threads = start_threads(plan, generators, &window)?;
    let measured = measure(plan, &window, &pids, before);
    window.stop();
    let mut observations = Observations::new();
    for thread in threads {
        observations.merge(&thread.join().map_err(|_| "a generator thread broke an invariant".to_string())??);
    }
    Ok(report(plan, &observations, window.span_ns(), &measured, &pids))
}

fn server_pids(plan: &LoadPlan, destinations: &[Destination]) -> Vec<u32> {
    let mut pids: Vec<u32> = Vec::new();
    for destination in destinations {
        match server_pid(plan, &destination.target) {
            Some(pid) if !pids.contains(&pid) => pids.push(pid),
            Some(_) => {}
            // The cost of half the servers would be a wrong number.
            None => return Vec::new(),
        }
    }
    pids.extend(&plan.beside_pids);
    pids
}

type GeneratorThread = JoinHandle<Result<Observations, String>>;

/// One generator per thread, with its connections open.
fn generators(plan: &LoadPlan, destinations: &[Destination], window: &Arc<Window>) -> Result<Vec<Generator>, String> {
    let mut connections: Vec<Vec<Connection>> = (0..plan.threads).map(|_| Vec::new()).collect();
    for number in 0..plan.connections {
        let destination = &destinations[number % destinations.len()];
        let socket = Stream::open_ready(&destination.target, plan)?
            .into_nonblocking()
            .map_err(|error| format!("cannot set a socket non-blocking: {error}"))?;
        let connection = Connection::new(socket, plan.dialect, destination.slots.clone());
        connections[number / destinations.len() % plan.threads].push(connection);
    }
    let keys = KeyChooser::new(&plan.keys);
    let mut generators = Vec::new();
    for (thread, connections) in connections.into_iter().enumerate() {
        let thread_keys = keys.for_thread(thread, plan.threads);
        let requests = Requests::new(plan, thread_keys, plan.seed.wrapping_add(thread as u64));
        let budget = match plan.stop {
            Stop::After(_) => None,
            Stop::Requests(total) => {
                let share = total / plan.threads as u64;
                Some(share + u64::from((thread as u64) < total % plan.threads as u64))
            }
        };
        generators.push(Generator::new(plan, thread, Arc::clone(window), requests, connections, budget)?);
    }
    Ok(generators)
}

/// Wakes the owner of the window when its thread ends, in whichever way.
struct Ending(Arc<Window>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.note_ended();
    }
}

fn start_threads(
    plan: &LoadPlan,
    generators: Vec<Generator>,
    window: &Arc<Window>,
) -> Result<Vec<GeneratorThread>, String> {
    let start = |(thread, generator): (usize, Generator)| {
        let cpu = (!plan.pin_cpus.is_empty()).then(|| plan.pin_cpus[thread % plan.pin_cpus.len()]);
        let ending = Ending(Arc::clone(window));
        let run = move || {
            let _ending = ending;
            cpu.map_or(Ok(()), pin)?;
            generator.run()
        };
        let spawned = std::thread::Builder::new().name(format!("load-{thread}")).spawn(run);
        spawned.map_err(|error| format!("cannot start a thread: {error}"))
    };
    generators.into_iter().enumerate().map(start).collect()
}

/// Keeps the calling thread, and whatever it starts from now on, on one CPU.
///
/// # Errors
/// When there is no such CPU.
pub fn pin(cpu: usize) -> Result<(), String> {
    pin_to(&[cpu])
}

/// The same on several.
fn pin_to(cpus: &[usize]) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        if *cpu >= rustix::thread::CpuSet::MAX_CPU {
            return Err(format!("there is no CPU {cpu}"));
        }
        set.set(*cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| format!("cannot pin to CPU {cpus:?}: {error}"))
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at_ns: u64,
    completed: u64,
    server: Option<ProcessCpu>,
    generator: Option<ProcessCpu>,
    machine_ns: Option<u64>,
}

impl Reading {
    fn take(window: &Window, pids: &[u32]) -> Reading {
        let (at_ns, completed) = (window.now_ns(), window.completed());
        let server = pids.iter().map(|pid| ProcessCpu::of(*pid)).try_fold(ProcessCpu::default(), |sum, one| {
            one.map(|one| ProcessCpu {
                run_ns: sum.run_ns + one.run_ns,
                user_ns: sum.user_ns + one.user_ns,
                system_ns: sum.system_ns + one.system_ns,
                context_switches: sum.context_switches + one.context_switches,
            })
        });
        Reading {
            at_ns,
            completed,
            server: server.filter(|_| !pids.is_empty()),
            generator: ProcessCpu::of(std::process::id()),
            machine_ns: machine_busy_ns(),
        }
    }
}

/// Opens and closes the window; what was read at both.
fn measure(plan: &LoadPlan, window: &Window, pids: &[u32], before: Option<Reading>) -> (Reading, Reading) {
    let any_ended = || window.ended() > 0;
    let bar = match plan.stop {
        Stop::After(length) => progress_bar(plan, length.as_millis() as u64, "{bar:40} {msg}"),
        Stop::Requests(total) => progress_bar(plan, total, "{bar:40} {pos}/{len} {msg}"),
    };
    let first = before.unwrap_or_else(|| {
        bar.set_message("warming up");
        wait_until(window, window.now_ns() + plan.warm_up.as_nanos() as u64, any_ended, || {});
        window.open();
        Reading::take(window, pids)
    });
    let show = || {
        let elapsed_ns = window.now_ns() - first.at_ns;
        let completed = window.completed() - first.completed;
        bar.set_position(match plan.stop {
            Stop::After(_) => elapsed_ns / 1_000_000,
            Stop::Requests(_) => completed,
        });
        bar.set_message(format!("{:.0} requests/s", completed as f64 / (elapsed_ns.max(1) as f64 / 1e9)));
    };
    match plan.stop {
        Stop::After(length) => wait_until(window, first.at_ns + length.as_nanos() as u64, any_ended, show),
        Stop::Requests(_) => {
            wait_until(window, u64::MAX, || window.ended() == plan.threads, show);
        }
    }
    window.close();
    let last = Reading::take(window, pids);
    bar.finish_and_clear();
    (first, last)
}

/// Sleeps until `end_ns` of the run's clock or until `enough`, looking up ten times a second and whenever a thread ends.
fn wait_until(window: &Window, end_ns: u64, enough: impl Fn() -> bool, show: impl Fn()) {
    loop {
        let now = window.now_ns();
        if now >= end_ns || enough() {
            return;
        }
        std::thread::park_timeout(Duration::from_nanos(end_ns - now).min(LOOK_EVERY));
        show();
    }
}

fn report(
    plan: &LoadPlan,
    seen: &Observations,
    (start_ns, end_ns): (u64, u64),
    (first, last): &(Reading, Reading),
    pids: &[u32],
) -> Report {
    // A bounded number ends with its last reply, and not when somebody looks.
    let end_ns = seen.last_ns.unwrap_or(end_ns);
    let seconds = end_ns.saturating_sub(start_ns).max(1) as f64 / 1e9;
    let per_second = seen.replies as f64 / seconds;
    // CPU time is read a little off the ends of the window: its own time and requests belong to it.
    let read_seconds = (last.at_ns - first.at_ns).max(1) as f64 / 1e9;
    let read_requests = (last.completed - first.completed).max(1) as f64;
    let latency_us = Latency::of(&seen.latency_ns);
    let server_cpu = last.server.zip(first.server).map(|(last, first)| last.since(first));
    let per_request_us = |ns: u64| ns as f64 / 1e3 / read_requests;
    let server = server_cpu.zip(pids.first()).map(|(cpu, pid)| ServerCost {
        pid: *pid,
        us_per_request: per_request_us(cpu.run_ns),
        user_us_per_request: per_request_us(cpu.user_ns),
        system_us_per_request: per_request_us(cpu.system_ns),
        context_switches_per_request: cpu.context_switches as f64 / read_requests,
        cores: cpu.run_ns as f64 / 1e9 / read_seconds,
    });
    let generator_ns = last.generator.zip(first.generator).map_or(0, |(last, first)| last.since(first).run_ns);
    let foreign_cores = server_cpu.zip(last.machine_ns.zip(first.machine_ns)).map(|(cpu, (last, first))| {
        (last.saturating_sub(first) as f64 - cpu.run_ns as f64 - generator_ns as f64).max(0.0) / 1e9 / read_seconds
    });
    let littles_law = latency_us.as_ref().filter(|_| plan.open_loop.is_none()).map(|latency| LittlesLaw {
        in_flight: (plan.connections * plan.pipeline) as f64,
        throughput_times_latency: per_second * latency.mean / 1e6,
    });
    let offered = plan.open_loop.map(|open| Offered {
        per_second: open.per_second,
        unsent: seen.unsent,
        behind_ms: seen.behind_ns as f64 / 1e6,
    });
    Report {
        workload: plan.to_string(),
        requests: seen.replies,
        seconds,
        per_second,
        latency_us,
        errors: seen.tally.errors,
        errors_outside: seen.outside.errors,
        first_error: seen.tally.first_error.clone().or_else(|| seen.outside.first_error.clone()),
        misses: seen.tally.misses,
        misses_outside: seen.outside.misses,
        server,
        generator_cores: generator_ns as f64 / 1e9 / read_seconds,
        foreign_cores,
        littles_law,
        offered,
    }
}

fn progress_bar(plan: &LoadPlan, length: u64, template: &str) -> ProgressBar {
    if !plan.progress || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).expect("the templates of this file are well formed");
    ProgressBar::new(length).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::plan::Target;

    #[test]
    fn a_bounded_number_is_measured_to_its_last_reply_whenever_the_end_is_seen() {
        let plan = LoadPlan::new(Target::Tcp("nobody dials it".into()));
        let reading = |at_ns, completed| Reading { at_ns, completed, server: None, generator: None, machine_ns: None };
        let mut seen = Observations::new();
        (seen.replies, seen.last_ns) = (1000, Some(15_000_000));
        let readings = (reading(9_000_000, 0), reading(110_000_000, 1050));
        let bounded = report(&plan, &seen, (10_000_000, 110_000_000), &readings, &[]);
        assert_eq!((bounded.requests, bounded.seconds, bounded.per_second), (1000, 0.005, 200_000.0));
        seen.last_ns = None;
        let timed = report(&plan, &seen, (10_000_000, 110_000_000), &readings, &[]);
        assert_eq!((timed.requests, timed.seconds, timed.per_second), (1000, 0.1, 10_000.0));
    }
}
