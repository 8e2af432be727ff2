//! Does what a plan says, and undoes it; notes when which fault was in force.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::fleet::Fleet;
use super::ground::Rules;
use super::plan::{Fault, Step};

/// Where the harness and all clients are.
const CLIENTS: &str = "10.77.0.254";
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// When a fault was in force, microseconds of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fired {
    pub(super) step: Step,
    pub(super) begun_us: u64,
    pub(super) ended_us: u64,
    /// It did what it says: the process ran, the rule was taken.
    pub(super) has_worked: bool,
}

/// Carries out `steps`, counted from now, and heals everything in the end.
///
/// # Errors
/// When a node cannot be started again, or a network not be healed.
pub(super) fn fire(fleet: &Fleet, steps: &[Step], epoch: Instant, is_over: &AtomicBool) -> io::Result<Vec<Fired>> {
    let mut moments: Vec<(u64, bool, usize)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        moments.extend([(step.begin_ms, true, index), (step.end_ms, false, index)]);
    }
    moments.sort_unstable();
    let (begun, mut active, mut fired) = (Instant::now(), Vec::new(), Vec::<Fired>::new());
    let now_us = || epoch.elapsed().as_micros() as u64;
    for (at_ms, begins, index) in moments {
        while begun.elapsed() < Duration::from_millis(at_ms) && !is_over.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
        let step = steps[index];
        if begins {
            active.push(step.fault);
            let begun_us = now_us();
            let has_worked = begin(fleet, step.fault, &active);
            fired.push(Fired { step, begun_us, ended_us: u64::MAX, has_worked });
        } else {
            active.retain(|fault| *fault != step.fault);
            end(fleet, step.fault, &active)?;
            let of_step = fired.iter_mut().find(|fired| fired.step == step).expect("it has begun");
            of_step.ended_us = now_us();
        }
    }
    Ok(fired)
}

fn begin(fleet: &Fleet, fault: Fault, active: &[Fault]) -> bool {
    match fault {
        Fault::Kill { node } => fleet.kill(node),
        // All of them, whatever the first one says.
        Fault::KillAll => {
            let ran = (0..fleet.len()).filter(|node| fleet.signal(*node, Signal::KILL)).count();
            for node in 0..fleet.len() {
                fleet.kill(node);
            }
            ran == fleet.len()
        }
        Fault::Stop { node } => fleet.signal(node, Signal::STOP),
        Fault::KillGate { gate } => fleet.kill(fleet.len() + gate),
        Fault::StopGate { gate } => fleet.signal(fleet.len() + gate, Signal::STOP),
        Fault::Slow { node, kilobits } => fleet.doors.ground.shape(node, Some(kilobits)).is_ok(),
        _ => filter(fleet, active).is_ok(),
    }
}

fn end(fleet: &Fleet, fault: Fault, active: &[Fault]) -> io::Result<()> {
    match fault {
        Fault::Kill { node } => fleet.start(node),
        Fault::KillAll => (0..fleet.len()).try_for_each(|node| fleet.start(node)),
        Fault::Stop { node } => {
            fleet.signal(node, Signal::CONT);
            Ok(())
        }
        Fault::KillGate { gate } => fleet.start(fleet.len() + gate),
        Fault::StopGate { gate } => {
            fleet.signal(fleet.len() + gate, Signal::CONT);
            Ok(())
        }
        Fault::Slow { node, .. } => fleet.doors.ground.shape(node, None),
        _ => filter(fleet, active),
    }
}

fn filter(fleet: &Fleet, active: &[Fault]) -> io::Result<()> {
    let hosts: Vec<&str> = fleet.places().map(|place| fleet.doors.ground.host_and_port(place).0).collect();
    let hosts = hosts.split_at(fleet.len());
    (0..fleet.len()).try_for_each(|node| fleet.doors.ground.filter(node, &rules(active, node, hosts)))
}

/// What of all faults in force concerns one node, whose gates are clients.
fn rules(active: &[Fault], node: usize, (hosts, gates): (&[&str], &[&str])) -> Rules {
    let mut rules = Rules::default();
    let others = || (0..hosts.len()).filter(|other| *other != node).map(|other| hosts[other]);
    let clients = || [CLIENTS].into_iter().chain(gates.iter().copied());
    for fault in active {
        match *fault {
            Fault::Isolate { node: of, from_clients } if of == node => {
                let apart = || others().chain(clients().filter(|_| from_clients));
                rules.heard.extend(apart().map(|host| format!("ip saddr {host} drop")));
                rules.said.extend(apart().map(|host| format!("ip daddr {host} drop")));
            }
            Fault::Mute { node: of } if of == node => {
                rules.said.extend(others().map(|host| format!("ip daddr {host} drop")));
            }
            Fault::Deaf { node: of } if of == node => {
                rules.heard.extend(others().map(|host| format!("ip saddr {host} drop")));
            }
            Fault::Cut { one, other } if one == node => {
                rules.heard.push(format!("ip saddr {} drop", hosts[other]));
                rules.said.push(format!("ip daddr {} drop", hosts[other]));
            }
            Fault::CutGate { gate, node: of } if of == node => {
                rules.heard.push(format!("ip saddr {} drop", gates[gate]));
                rules.said.push(format!("ip daddr {} drop", gates[gate]));
            }
            Fault::DeafGate { gate, node: of } if of == node => {
                rules.said.push(format!("ip daddr {} tcp flags & rst == 0 drop", gates[gate]));
            }
            Fault::ResetGate { gate, node: of } if of == node => {
                rules.heard.push(format!("ip saddr {} meta l4proto tcp reject with tcp reset", gates[gate]));
            }
            Fault::Loss { node: of, percent } if of == node => {
                rules.heard.push(format!("ip protocol tcp numgen random mod 100 < {percent} drop"));
            }
            _ => {}
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_in_force_at_once_add_up_and_concern_whom_they_name() {
        let hosts = ["10.77.0.1", "10.77.0.2", "10.77.0.3"];
        let active = [Fault::Mute { node: 1 }, Fault::Cut { one: 1, other: 2 }, Fault::Kill { node: 0 }];
        let of = |node| rules(&active, node, (&hosts, &["10.77.0.4"]));
        assert_eq!(of(0), Rules::default());
        assert_eq!(of(2), Rules::default(), "what one end drops the other need not");
        assert_eq!(of(1).heard, ["ip saddr 10.77.0.3 drop"]);
        assert_eq!(of(1).said, ["ip daddr 10.77.0.1 drop", "ip daddr 10.77.0.3 drop", "ip daddr 10.77.0.3 drop"]);
        let isolated = rules(&[Fault::Isolate { node: 2, from_clients: true }], 2, (&hosts, &["10.77.0.4"]));
        assert_eq!((isolated.heard.len(), isolated.said.len()), (4, 4));
        let cut = rules(&[Fault::CutGate { gate: 0, node: 1 }], 1, (&hosts, &["10.77.0.4"]));
        assert_eq!((&*cut.heard[0], &*cut.said[0]), ("ip saddr 10.77.0.4 drop", "ip daddr 10.77.0.4 drop"));
        assert!(isolated.heard.contains(&format!("ip saddr {CLIENTS} drop")));
    }
}
