//! `cores`: what a second instance costs per request (the same process on both CPUs, which the generator then shares),
//! and what many partitions cost over one (Z2 of the ZHT thesis: 1000 against 1).
//!
//! Two instances leave the generator no CPU of its own on two CPUs, and each has half the connections, so its ticks find
//! fewer requests. What each of that costs is measured beside it: one instance whose generator sits on the same CPU, one
//! instance with half the connections, and two with as many each as the one had.

use super::options::Options;
use super::programs::Zerohop;
use super::results::{Bar, CPU, LATENCY, Results};
use super::slice::{Entrant, Load, interleaved, preload};
use crate::Outcome;

/// Connections of one instance at saturation.
const CONNECTIONS: usize = 50;

/// Runs every backend.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    for backend in &options.backends {
        let one = Zerohop::new(backend, &options.durability);
        let two = Zerohop { cores: 2, cpus: "0,1".into(), ..one.clone() };
        let (one, two) = match (one.start().ready(), two.start().ready()) {
            (Ok(one), Ok(two)) => (one, two),
            (Err(message), _) | (_, Err(message)) => {
                results.absent(message);
                continue;
            }
        };
        for pipeline in [1, 16] {
            let cell = format!("get-P{pipeline}");
            if !options.wants(&cell) {
                continue;
            }
            let load = Load::new("get", pipeline, options.keys).with(&["--cluster"]);
            let shared = Load { pin: None, ..load.clone() };
            for (server, load) in [(&one, &load), (&two, &shared)] {
                preload(server, load)?;
            }
            let beside = Load { pin: Some(0), ..load.clone() };
            let entrants = [
                Entrant::new(&two, &shared),
                Entrant::new(&one, &load),
                Entrant::new(&one, &beside).named("beside its generator"),
                Entrant::new(&one, &load.clone().connections(CONNECTIONS / 2)).named("half the connections"),
                Entrant::new(&two, &shared.clone().connections(2 * CONNECTIONS)).named("twice the connections"),
            ];
            let rounds = interleaved(&cell, &entrants, options)?;
            results.keep(&rounds);
            results.compare(&rounds, (0, 1), &CPU, Bar::AtMost(1.10));
            for reason in [(2, 1), (0, 2), (3, 1), (0, 3), (4, 1)] {
                results.compare(&rounds, reason, &CPU, Bar::None);
            }
        }
        // A hash tag puts every key into one slot; without it they fill all of them.
        let cell = "z2-get-P1";
        if options.wants(cell) {
            let spread = Load::new("get", 1, options.keys);
            let narrow = spread.clone().with(&["--key-prefix", "{0}"]);
            preload(&one, &spread)?;
            preload(&one, &narrow)?;
            let entrants =
                [Entrant::new(&one, &spread).named("all slots"), Entrant::new(&one, &narrow).named("one slot")];
            let rounds = interleaved(cell, &entrants, options)?;
            results.keep(&rounds);
            results.compare(&rounds, (0, 1), &LATENCY, Bar::AtMost(1.05));
            results.compare(&rounds, (0, 1), &CPU, Bar::None);
        }
    }
    Ok(())
}
