//! What the machine does by itself in the middle of a measurement of single stops, kept away from it as far as this process may.

use super::host_memory::Provided;
use super::memory_scanners::KeptOff;
use super::results::Results;
use super::tracked_connections::MadeSmall;

/// The load generator's.
const OTHER_CPU: &str = "1";

/// The machine is as quiet as it can be made, until this is dropped.
pub struct QuietMachine {
    _kept_off: KeptOff,
    _made_small: MadeSmall,
    _provided: Provided,
}

impl QuietMachine {
    /// Makes it so, and notes what was done.
    pub fn new(results: &mut Results) -> QuietMachine {
        let kept_off = KeptOff::to(OTHER_CPU);
        results.note(format!("kept off the server's CPU, threads of the kernel: {}", shown(&kept_off.names())));
        let made_small = MadeSmall::of_machine();
        results.note(made_small.note());
        let provided = Provided::for_loads();
        results.note(provided.note());
        QuietMachine { _kept_off: kept_off, _made_small: made_small, _provided: provided }
    }
}

fn shown(names: &[&str]) -> String {
    if names.is_empty() { "none: there are none, or they may not be moved".to_owned() } else { names.join(", ") }
}
