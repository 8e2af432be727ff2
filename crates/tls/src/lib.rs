//! The cipher of the client ports, and of whom a machine dials: a layer between street and machine, and the keys it works with.
//!
//! ```text
//!            ciphertext                    plain bytes
//!   street ───────────► Layer::open ───────────────────► machine (the shard)
//!          ◄─────────── Layer::tick ◄───────────────────
//!            records      Cipher: one connection
//! ```
//!
//! A [`Layer`] is a machine that has a machine: what concerns its own connections it turns into what a connection without a
//! cipher would bring, and everything else it passes on as it is. So neither the street nor the machine knows of it, and it
//! works the same on every street. Read [`layer`], then `connection` and [`cipher`]; [`keys`] reads the files; [`client`] is the other end,
//! for `zerohop cli`, and [`dials`] the same for whom a machine dials.
//! The page: `docs/internals/tls.md`.

pub mod cipher;
pub mod client;
pub mod dials;
pub mod keys;
pub mod layer;

mod connection;
mod validity;

pub use dials::Dials;
pub use keys::{ClientCertificates, KeyError, KeyFiles, Keys};
pub use layer::Layer;
