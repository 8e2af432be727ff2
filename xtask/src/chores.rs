//! The list of chores: dispatch and `cargo x help` read the same table.

use std::process::ExitCode;

use crate::{Outcome, bench, campaign, deny, dist, fixture, fuzz, peers, schedule, sim, stolen, test, tidy, wheel};

/// One chore of `cargo x`.
pub struct Chore {
    /// The word after `cargo x`.
    pub name: &'static str,
    /// Its arguments, as the help prints them.
    pub usage: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// Runs it with the words after its name.
    pub run: fn(&[String]) -> Outcome<ExitCode>,
}

/// All chores, in the order a newcomer meets them.
const CHORES: &[Chore] = &[
    Chore {
        name: "test",
        usage: "[--no-install] [--list] [--only NAME]... [--shard NAME|all]",
        about: "everything that decides whether this tree is good; installs what it needs where it may",
        run: test::run,
    },
    Chore {
        name: "tidy",
        usage: "[--write]",
        about: "the house rules; --write regenerates the pages that are generated",
        run: tidy::run,
    },
    Chore {
        name: "ci",
        usage: "",
        about: "what .ci/run does after it has found cargo: the same as `test`",
        run: test::run,
    },
    Chore {
        name: "suite",
        usage: "NAME [--no-install]",
        about: "one suite of `test`, whose needs are met; `test` starts each so",
        run: schedule::run_suite,
    },
    Chore {
        name: "stolen",
        usage: "COMMAND [ARGUMENT]...",
        about: "a command, of tests mostly, while the processors are taken away for up to 100 ms at a time",
        run: stolen::run,
    },
    Chore {
        name: "sim",
        usage: "[--seed N] [--seeds N] ...",
        about: "the simulator, built with its assertions on; arguments go to it unchanged",
        run: sim::run,
    },
    Chore {
        name: "fuzz",
        usage: "[TARGET|all [--seconds N] [--jobs N] [--planted BUG] | TARGET --reproduce FILE | TARGET|all --keep]",
        about: "every decoder under libFuzzer with AddressSanitizer; without a target, the list of them",
        run: fuzz::run,
    },
    Chore {
        name: "campaign",
        usage: "[NAME [--seconds N | --minutes N] ...]",
        about: "long runs of fuzzer, simulator and kill -9; the last result of each is kept in campaigns/",
        run: campaign::run,
    },
    Chore {
        name: "fixture",
        usage: "",
        about: "the small data directory by which a new format is known for ever; made once",
        run: fixture::run,
    },
    Chore {
        name: "deny",
        usage: "",
        about: "licences, duplicate versions and sources of everything the lock file names",
        run: deny::run,
    },
    Chore {
        name: "dist",
        usage: "[--check]",
        about: "the static binary and the Debian package; --check starts each in an empty root",
        run: dist::run,
    },
    Chore {
        name: "wheel",
        usage: "",
        about: "the Python package with the program in it, as a wheel for any Linux with glibc 2.28 or newer",
        run: wheel::run,
    },
    Chore {
        name: "bench",
        usage: "[NAME [--quick] [--pairs N] [--slice SECONDS] [--io uring,epoll] [--only CELL] ...]",
        about: "comparisons with peers and with the practical limit; results are kept in bench/results",
        run: bench::run,
    },
    Chore {
        name: "peers",
        usage: "",
        about: "the servers Zerohop is measured against: finds them, or unpacks them into target/peers",
        run: peers::run,
    },
];

/// Runs the chore that `arguments` names.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", help());
        return Ok(ExitCode::FAILURE);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return Ok(ExitCode::SUCCESS);
    }
    match CHORES.iter().find(|chore| chore.name == name) {
        Some(chore) if rest.iter().any(|word| word == "--help") => {
            println!("cargo x {} {}\n\n  {}", chore.name, chore.usage, chore.about);
            Ok(ExitCode::SUCCESS)
        }
        Some(chore) => (chore.run)(rest),
        None => Err(format!("no chore is called `{name}`; `cargo x help` lists them")),
    }
}

/// The text of `cargo x help`.
fn help() -> String {
    let mut text = String::from("cargo x <chore> [arguments]\n\n");
    for chore in CHORES {
        text.push_str(&format!("  {:<8}{}\n", chore.name, chore.about));
        if !chore.usage.is_empty() {
            text.push_str(&format!("  {:<8}  cargo x {} {}\n", "", chore.name, chore.usage));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{CHORES, help, run};

    #[test]
    fn help_names_every_chore() {
        for chore in CHORES {
            assert!(help().contains(chore.name), "{} is missing", chore.name);
        }
    }

    #[test]
    fn an_unknown_chore_is_refused_by_name() {
        let message = run(&["polish".to_owned()]).expect_err("there is no such chore");
        assert!(message.contains("polish") && message.contains("cargo x help"), "{message}");
    }
}
