//! The log: what one tick changed becomes one group, groups fill segments, segments are replayed at start.
//!
//! - [`format`]: segment, group and record headers, byte for byte
//! - [`buffer`]: records of the tick under way
//! - [`writer`]: groups into segments; what is written, what is durable
//! - [`replay`]: from a segment's bytes back to changes; tells a torn tail from damage

pub mod buffer;
pub mod format;

pub use buffer::LogBuffer;
