//! The log: what one tick changed becomes one group, groups fill segments, segments are replayed at start.
//!
//! - [`mod@format`]: segment and group headers, byte for byte
//! - [`record`]: what is in front of a record, and the records of a group
//! - [`buffer`]: records of the tick under way
//! - [`writer`]: groups into segments; what is written, what is durable
//! - [`manifest`]: which logs there are and where they end
//! - [`replay`]: from a segment's bytes back to changes; tells a torn tail from damage

pub mod buffer;
pub mod format;
pub mod manifest;
pub mod record;
pub mod replay;
pub mod writer;

pub use buffer::LogBuffer;
pub use manifest::{MANIFEST_FILE_NAME, Manifest};
pub use replay::{AheadKey, Damage, FileEnd, ReadFile, Recovery, Replayed, Unsure, recover};
pub use writer::{LogIdentity, LogWriter};
