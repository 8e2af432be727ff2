//! A store in a directory: what is put is there again when it is opened the next time.
//!
//! `cargo run -p zerohop --example hello [DIRECTORY]`; the directory is `./hello-data` if none is named.

use zerohop::{Error, Store};

fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| String::from("hello-data"));
    let store = Store::open(&directory)?;
    let greetings = store.append(b"greetings", b"!")?;
    println!("{directory} was greeted {greetings} times");
    store.close()
}
