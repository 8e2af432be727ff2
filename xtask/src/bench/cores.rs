//! `cores`: what a second instance costs per request, and what many partitions cost over one (Z2 of the ZHT thesis: 1000
//! against 1).
//!
//! ```text
//!             CPU 0                     CPU 1
//!  one        instance                  generator
//!  together   instance, instance        generator      decides: the server has one CPU, as everywhere, and is saturated
//!  spread     instance                  instance, generator      said beside it
//! ```
//!
//! Spread over both CPUs the instances are never saturated, because the generator takes half of what the second one
//! needs: their ticks find fewer requests, and each request pays for more of a tick. How much that is is measured beside it:
//! one instance whose generator sits on the same CPU, one with half the connections, two with twice as many.

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
        let together = Zerohop { cores: 2, ..one.clone() };
        let spread = Zerohop { cpus: "0,1".into(), ..together.clone() };
        let started = (one.start().ready(), together.start().ready(), spread.start().ready());
        let (one, together, spread) = match started {
            (Ok(one), Ok(together), Ok(spread)) => (one, together, spread),
            (Err(message), ..) | (_, Err(message), _) | (.., Err(message)) => {
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
            for (server, load) in [(&one, &load), (&together, &load), (&spread, &shared)] {
                preload(server, load)?;
            }
            let beside = Load { pin: Some(0), ..load.clone() };
            let entrants = [
                Entrant::new(&together, &load),
                Entrant::new(&one, &load),
                Entrant::new(&spread, &shared).named("spread over both CPUs"),
                Entrant::new(&one, &beside).named("beside its generator"),
                Entrant::new(&one, &load.clone().connections(CONNECTIONS / 2)).named("half the connections"),
                Entrant::new(&spread, &shared.clone().connections(2 * CONNECTIONS))
                    .named("spread, twice the connections"),
            ];
            let rounds = interleaved(&cell, &entrants, options)?;
            results.keep(&rounds);
            results.compare(&rounds, (0, 1), &CPU, Bar::AtMost(1.10));
            for reason in [(2, 1), (3, 1), (2, 3), (4, 1), (0, 4), (2, 4), (5, 1)] {
                results.compare(&rounds, reason, &CPU, Bar::None);
            }
        }
        // A hash tag puts every key into one slot; without it they fill all of them.
        let cell = "z2-get-P1";
        if options.wants(cell) {
            let wide = Load::new("get", 1, options.keys);
            let narrow = wide.clone().with(&["--key-prefix", "{0}"]);
            preload(&one, &wide)?;
            preload(&one, &narrow)?;
            let entrants =
                [Entrant::new(&one, &wide).named("all slots"), Entrant::new(&one, &narrow).named("one slot")];
            let rounds = interleaved(cell, &entrants, options)?;
            results.keep(&rounds);
            results.compare(&rounds, (0, 1), &LATENCY, Bar::AtMost(1.05));
            results.compare(&rounds, (0, 1), &CPU, Bar::None);
        }
    }
    Ok(())
}
