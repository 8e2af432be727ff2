//! `cargo x stolen COMMAND`: a command while every processor is taken away again and again, as a host does that is short of them. No test's
//! verdict may depend on how long anything takes; one that gives an answer 50 ms fails here sooner or later.
//!
//! ```text
//!  processor 0   ▇▇▇▇▇▇▇▇▇▁▇▇▇▇▇▁▁▇▇▇▇▇▇▇▇▇▇▇▁▇▇▇     ▇ 10 to 100 ms of a program of the real-time class, before which nobody runs
//!  processor 1   ▇▇▇▇▁▁▇▇▇▇▇▇▇▇▇▁▇▇▇▇▇▇▇▇▇▁▁▁▇▇▇▇     ▁ 0.1 to 4 ms for everybody else
//! ```
//!
//! A processor is left for a twenty-eighth of its time, so what is to run is built before. Where all are taken at once, everything stands still.

use std::io::Read;
use std::os::unix::process::parent_id;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::process::describe;

/// How long a processor is taken, and how long it is left, microseconds.
const TAKEN_US: (u64, u64) = (10_000, 100_000);
const LEFT_US: (u64, u64) = (100, 4_000);
/// Above all that the kernel runs in the ordinary class.
const PRIORITY: &str = "50";

/// Takes one processor until it is dropped.
struct Thief(Child);

impl Thief {
    fn start(processor: usize) -> Outcome<Thief> {
        let own = std::env::current_exe().map_err(|error| format!("this program does not find itself: {error}"))?;
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &processor.to_string(), "chrt", "--fifo", PRIORITY]);
        command
            .arg(own)
            .args(["stolen", "--steal", &processor.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("`{}` did not start: {error}", describe(&command)))?;
        let mut thief = Thief(child);
        let begins = thief.0.stdout.as_mut().is_some_and(|said| said.read_exact(&mut [0]).is_ok());
        match begins {
            true => Ok(thief),
            false => {
                Err("a processor is not taken (see above): only root may run programs of the real-time class"
                    .to_owned())
            }
        }
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// `cargo x stolen`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    match arguments {
        [] => Err("stolen wants a command after it: `cargo x stolen cargo test -p zerohop`".to_owned()),
        [word, processor] if word == "--steal" => steal(processor),
        [program, rest @ ..] => beside_thieves(Command::new(program).args(rest)),
    }
}

fn beside_thieves(command: &mut Command) -> Outcome<ExitCode> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let _thieves = (0..processors).map(Thief::start).collect::<Outcome<Vec<_>>>()?;
    let status = command.status().map_err(|error| format!("`{}` did not start: {error}", describe(command)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Takes the processor that this process runs on until its parent has ended.
fn steal(processor: &str) -> Outcome<ExitCode> {
    let number: u64 = processor.parse().map_err(|_| format!("{processor} is no processor"))?;
    let (parent, mut dice) = (parent_id(), Dice(number));
    println!("begun");
    while parent_id() == parent {
        let (began, taken) = (Instant::now(), dice.within(TAKEN_US));
        while began.elapsed() < taken {
            std::hint::spin_loop();
        }
        std::thread::sleep(dice.within(LEFT_US));
    }
    Ok(ExitCode::SUCCESS)
}

/// A linear congruence with the constants of Knuth's MMIX: its upper bits will do for this.
struct Dice(u64);

impl Dice {
    fn within(&mut self, (least_us, most_us): (u64, u64)) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_micros(least_us + (self.0 >> 33) % (most_us - least_us + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::{Dice, LEFT_US, TAKEN_US, run};
    use std::time::Duration;

    #[test]
    fn moments_are_within_their_bounds_and_not_all_alike() {
        let mut dice = Dice(0);
        for (least_us, most_us) in [TAKEN_US, LEFT_US] {
            let bounds = Duration::from_micros(least_us)..=Duration::from_micros(most_us);
            let moments: std::collections::BTreeSet<Duration> =
                (0..100).map(|_| dice.within((least_us, most_us))).collect();
            assert!(moments.len() > 50 && moments.iter().all(|moment| bounds.contains(moment)), "{moments:?}");
        }
    }

    #[test]
    fn a_command_is_needed() {
        assert!(run(&[]).is_err());
    }
}
