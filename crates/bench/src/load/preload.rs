//! Writes every key once before the measured load.

use std::io::{self, Read, Write};

use super::dial::{Stream, no_password};
use super::keys::{KeyChooser, KeyForm};
use super::plan::LoadPlan;
use super::request::Requests;
use super::route::Destination;
use super::scan::{Scanner, Tally};

/// Requests sent before their replies are read: few enough for any server's buffers.
const BATCH: u64 = 256;
/// Bytes sent before replies are read, once reached.
const BATCH_BYTES: usize = 1 << 20;

/// Writes keys `0..count` to the destinations that own them; `on_progress` hears how many are done.
pub fn preload(plan: &LoadPlan, destinations: &[Destination], mut on_progress: impl FnMut(u64)) -> Result<(), String> {
    let mut requests = Requests::new(plan, KeyChooser::new(&plan.keys), plan.seed);
    let form = KeyForm::new(&plan.keys);
    let mut key = Vec::new();
    let mut done = 0;
    for destination in destinations {
        let mut stream = Stream::open_ready(&destination.target, plan)?;
        let mut scanner = Scanner::new(plan.dialect);
        let mut tally = Tally::default();
        let mut output = Vec::new();
        let mut input = vec![0u8; 64 << 10];
        let mut keys = (0..plan.keys.count).filter(|number| {
            key.clear();
            form.write(&mut key, *number);
            destination.slots.as_ref().is_none_or(|slots| slots.owns(&key))
        });
        loop {
            let mut waiting = 0u64;
            output.clear();
            while waiting < BATCH && output.len() < BATCH_BYTES {
                let Some(number) = keys.next() else { break };
                requests.append_set(&mut output, number);
                waiting += 1;
            }
            if waiting == 0 {
                break;
            }
            done += waiting;
            stream.write_all(&output).map_err(|error| format!("preload cannot write: {error}"))?;
            while waiting > 0 {
                let bytes = match stream.read(&mut input) {
                    // Whoever stood still for a while (SIGSTOP) is told so.
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map_err(|error| format!("preload cannot read: {error}"))?,
                };
                if bytes == 0 {
                    return Err("the server closed the preload connection".into());
                }
                let replies = scanner
                    .feed(&input[..bytes], &mut tally)
                    .map_err(|refused| format!("preload: not a reply: {}", refused.0))?;
                if let Some(error) = &tally.first_error {
                    return Err(
                        no_password(error).unwrap_or_else(|| format!("preload: the server refused a write: {error}"))
                    );
                }
                waiting = waiting.saturating_sub(replies);
            }
            on_progress(done);
        }
    }
    Ok(())
}
