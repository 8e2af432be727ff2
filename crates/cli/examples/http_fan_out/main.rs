//! A server of HTTP that fetches many keys at once and answers with what it got: an application on `zerohop::serve`.
//!
//! ```text
//! cargo run --example http_fan_out -- redis://127.0.0.1:6379 127.0.0.1:8080 2        store, where to listen, cores
//! curl 'http://127.0.0.1:8080/keys?k=a&k=b&k=c'
//! {"keys":[{"key":"a","value":"1"},{"key":"b","value":null},{"error":"nobody answers at …","key":"c"}]}
//! ```
//!
//! `head` is what is read of HTTP, `keys` what is answered.

mod head;
mod keys;

use std::process::ExitCode;
use std::time::Duration;
use zerohop::client::Error;
use zerohop::serve::Options;

/// How long a key is waited for.
const TIMEOUT: Duration = Duration::from_secs(1);

fn run() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let cores = arguments.next().and_then(|cores| cores.parse().ok()).unwrap_or(1);
    let options = Options::new(&store)?.cores(cores).timeout(TIMEOUT).request_bytes_max(head::BYTES_MAX);
    let server = options.start(&listen, |_core| keys::Keys)?;
    println!("keys of {store} on http://{}/keys?k=KEY&k=KEY ({})", server.address(), server.backend());
    server.wait()
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
