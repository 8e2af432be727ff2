//! What may be said after `cargo x bench <name>`.

use crate::Outcome;

/// Options of every comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interleaved pairs. 15 or more decide a bar; fewer are a look.
    pub pairs: usize,
    /// Measured seconds of one slice.
    pub slice_seconds: f64,
    /// Load before each slice, seconds.
    pub warm_up_seconds: f64,
    /// Backends of Zerohop and of the null servers.
    pub backends: Vec<String>,
    /// Only these cells, separated by commas.
    pub only: Option<String>,
    /// Durability of Zerohop where the comparison does not fix it.
    pub durability: String,
    /// Keys of the data set where the comparison does not fix it.
    pub keys: u64,
    /// The same where it was said, for comparisons that have sizes of their own.
    pub keys_asked: Option<u64>,
    /// Length of an idle measurement, seconds.
    pub idle_seconds: u64,
    /// Nodes that are killed, one after the other.
    pub kills: usize,
    /// Moves of slots of each store, in turn.
    pub rounds: usize,
}

/// The options as help prints them.
pub const USAGE: &str = "[--pairs 15] [--slice 0.6] [--warm-up 0.15] [--io uring,epoll] [--only CELL] \
                         [--durability memory] [--keys 1000000] [--idle-seconds 60] [--kills 100] [--rounds 9] \
                         [--quick]";

/// Fewer pairs, or shorter slices, decide nothing.
const PAIRS_MIN: usize = 15;
const SLICE_SECONDS_MIN: f64 = 0.5;
const KILLS_MIN: usize = 100;
const ROUNDS_MIN: usize = 9;

impl Default for Options {
    fn default() -> Options {
        Options {
            pairs: PAIRS_MIN,
            slice_seconds: 0.6,
            warm_up_seconds: 0.15,
            backends: vec!["uring".into(), "epoll".into()],
            only: None,
            durability: "memory".into(),
            keys: 1_000_000,
            keys_asked: None,
            idle_seconds: 60,
            kills: KILLS_MIN,
            rounds: ROUNDS_MIN,
        }
    }
}

impl Options {
    /// Whether this is too short for a verdict.
    pub fn is_look(&self) -> bool {
        self.pairs < PAIRS_MIN
            || self.slice_seconds < SLICE_SECONDS_MIN
            || self.idle_seconds < 60
            || self.kills < KILLS_MIN
            || self.rounds < ROUNDS_MIN
    }

    /// From the words after the comparison's name. `--quick` is 5 pairs of 0.3 s, or 10 kills, or 2 rounds: a look, no verdict.
    pub fn of(words: &[String]) -> Outcome<Options> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--quick" {
                (options.pairs, options.slice_seconds) = (5, 0.3);
                (options.kills, options.rounds) = (10, 2);
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let wrong = || format!("{word} {value}: a number above 0 is expected");
            match word.as_str() {
                "--pairs" => options.pairs = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
                "--slice" => options.slice_seconds = value.parse().ok().filter(|s| *s > 0.0).ok_or_else(wrong)?,
                "--warm-up" => options.warm_up_seconds = value.parse().ok().filter(|s| *s >= 0.0).ok_or_else(wrong)?,
                "--io" => options.backends = value.split(',').map(str::to_owned).collect(),
                "--only" => options.only = Some(value.clone()),
                "--durability" => options.durability.clone_from(value),
                "--keys" => {
                    options.keys = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
                    options.keys_asked = Some(options.keys);
                }
                "--rounds" => options.rounds = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
                "--idle-seconds" => options.idle_seconds = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
                "--kills" => options.kills = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
                _ => return Err(format!("no option is called {word}; known are {USAGE}")),
            }
        }
        match options.backends.iter().find(|backend| !matches!(backend.as_str(), "uring" | "epoll")) {
            Some(backend) => Err(format!("--io {backend}: uring or epoll is expected")),
            None => Ok(options),
        }
    }

    /// Durability of nodes of a cluster, which have none that keeps nothing: `interval` in place of that.
    pub fn cluster_durability(&self) -> &str {
        if self.durability == "memory" { "interval" } else { &self.durability }
    }

    /// Whether the cell `name` was asked for: `P16` asks for every cell with that part, `get-P16` for fewer.
    pub fn wants(&self, name: &str) -> bool {
        let asks = |wish: &str| wish.split('-').all(|part| name.split('-').any(|piece| piece == part));
        self.only.as_ref().is_none_or(|wishes| wishes.split(',').any(asks))
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn of(words: &[&str]) -> Result<Options, String> {
        Options::of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_said_is_what_is_measured() {
        let options = of(&["--pairs", "21", "--io", "epoll", "--only", "P16"]).expect("known options");
        assert_eq!((options.pairs, options.backends.len()), (21, 1));
        assert!(options.wants("get-P16") && options.wants("set-P16-500c") && !options.wants("get-P1"));
        let two = of(&["--only", "get-P1,set-P16"]).expect("known options");
        assert!(two.wants("get-P1") && two.wants("set-P16") && !two.wants("get-P16") && !two.wants("set-P1"));
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        assert!(of(&["--pears", "3"]).is_err_and(|message| message.contains("--pears")));
        assert!(of(&["--io", "kqueue"]).is_err_and(|message| message.contains("kqueue")));
        assert!(of(&["--pairs", "0"]).is_err());
        assert!(of(&["--pairs"]).is_err());
    }
}
