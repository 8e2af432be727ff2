//! The command of `zerohop cli` as it was given: its words, and with `-x` standard input behind them.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use clap::ArgMatches;
use wire::request::ParseLimits;

/// The longest argument that a server takes, bytes.
const VALUE_BYTES_MAX: usize = ParseLimits::AUTHENTICATED.bulk_bytes_max;

/// # Errors
/// An option that there is not, `-x` without a command, or more input than a value may have.
pub fn of_command(matches: &ArgMatches) -> Result<Vec<Vec<u8>>, String> {
    let given = matches.get_many::<OsString>("words").into_iter().flatten();
    let mut words: Vec<Vec<u8>> = given.map(|word| word.clone().into_vec()).collect();
    let name = words.first().map_or_else(String::new, |word| String::from_utf8_lossy(word).into_owned());
    if name.len() > 1 && name.starts_with('-') {
        return Err(format!("no option {name}; `zerohop cli --help` lists them"));
    }
    if matches.get_flag("input") {
        if words.is_empty() {
            return Err(
                "-x takes the last argument of a command from standard input: zerohop cli -x set KEY".to_owned()
            );
        }
        words.push(input()?);
    }
    Ok(words)
}

fn input() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("standard input: {error}"))?;
    match bytes.len() > VALUE_BYTES_MAX {
        true => Err(format!("standard input has more than the {VALUE_BYTES_MAX} bytes that a value may have")),
        false => Ok(bytes),
    }
}

/// Seconds, also parts of one.
///
/// # Errors
/// What is no number of seconds.
pub fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds, as 1 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "a number of seconds that is not negative".to_owned())
}
