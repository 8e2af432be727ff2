//! The fuzzing program: one binary with every target, chosen by `--target=NAME`. `cargo x fuzz` builds and drives it.
#![no_main]

mod changes;
mod commands;
mod copies;
mod inline;
mod lines;
mod machine;
mod managers;
mod manifest;
mod recovery;
mod replies;
mod requests;
mod settings;
mod source;
mod table;
mod texts;
mod vocabulary;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// What one input is given to. A broken promise panics, which libFuzzer reports with the input that broke it.
type Target = fn(&[u8]);

/// Every target by its name; `xtask/src/fuzz/targets.rs` says what each proves.
const TARGETS: [(&str, Target); 14] = [
    ("requests", requests::run),
    ("inline", inline::run),
    ("replies", replies::run),
    ("texts", texts::run),
    ("commands", commands::run),
    ("machine", machine::run),
    ("changes", changes::run),
    ("recovery", recovery::run),
    ("manifest", manifest::run),
    ("managers", managers::run),
    ("copies", copies::run),
    ("lines", lines::run),
    ("settings", settings::run),
    ("table", table::run),
];

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    #[cfg(feature = "planted")]
    base::planted::plant(
        std::env::var("PLANTED_BUG")
            .ok()
            .map(|name| base::planted::Bug::named(&name).expect("PLANTED_BUG names one of the bugs in base::planted")),
    );
    let wanted = std::env::args().find_map(|argument| argument.strip_prefix("--target=").map(str::to_owned));
    let wanted = wanted.expect("--target=NAME says which target");
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    found.expect("`cargo x fuzz` lists the targets").1
}

fuzz_target!(|data: &[u8]| {
    CHOSEN.get_or_init(chosen)(data);
});
