//! Names that clients give themselves. CLIENT LIST prints them between spaces, so they may not hold any.

use wire::Reply;

/// Longest name, bytes; every connection keeps three.
const NAME_BYTES_MAX: usize = 1024;

/// Checks a name for `what` (`Client names`, `lib-name`) and writes the error if it is none.
pub(crate) fn accept(reply: &mut Reply<'_>, what: &str, name: &[u8]) -> Option<Box<[u8]>> {
    if !name.iter().all(u8::is_ascii_graphic) {
        reply.error("ERR", &format!("{what} cannot contain spaces, newlines or special characters."));
        return None;
    }
    if name.len() > NAME_BYTES_MAX {
        reply.error("ERR", &format!("{what} cannot be longer than {NAME_BYTES_MAX} bytes."));
        return None;
    }
    Some(name.into())
}
