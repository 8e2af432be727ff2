//! Who is still counted when everybody has gone, with what the system says of both ends of each one's socket: whether the end never
//! came, or came and was not seen.

use std::{fs, io};

use crate::connection::Connection;
use crate::kill::told::gauge;

/// Where the system lists sockets, in text.
const SOCKETS: &str = "/proc/net/tcp";

/// Those beside `connection` itself.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// As INFO counts them.
    pub count: u64,
    /// As CLIENT LIST names them, each with its sockets.
    pub clients: Vec<String>,
}

/// Asks on a connection that nobody else uses.
///
/// # Errors
/// Those of the connection, and when the system lists no sockets.
pub(super) fn left(connection: &mut Connection) -> io::Result<Left> {
    let info = connection.call_line("INFO clients")?;
    let count = gauge(&info, "connected_clients").unwrap_or(u64::MAX).saturating_sub(1);
    if count == 0 {
        return Ok(Left::default());
    }
    let own = connection.stream().local_addr()?.port();
    let (list, sockets) = (connection.call_line("CLIENT LIST")?, fs::read_to_string(SOCKETS)?);
    let list = String::from_utf8_lossy(&list).into_owned();
    let others = list.lines().filter_map(|line| Some((line, port(line)?))).filter(|(_, port)| *port != own);
    let named = |(line, port)| format!("{line} {}", states(&sockets, port).join(" "));
    Ok(Left { count, clients: others.map(named).collect() })
}

/// The client's port in a line of CLIENT LIST.
fn port(line: &str) -> Option<u16> {
    line.split(' ').find_map(|word| word.strip_prefix("addr="))?.rsplit(':').next()?.parse().ok()
}

/// Both ends of a connection whose client has this port: addresses, state and bytes in queues, as the system writes them.
fn states(sockets: &str, port: u16) -> Vec<String> {
    let address = format!(":{port:04X}");
    let is_its = |fields: &Vec<&str>| fields.len() > 4 && fields[1..3].iter().any(|field| field.ends_with(&address));
    let fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(is_its).map(|fields| format!("[{}]", fields[1..5].join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::{port, states};

    #[test]
    fn a_client_is_found_among_the_systems_sockets() {
        let line = "id=7 addr=127.0.0.1:60336 laddr=127.0.0.1:7711 fd=63 name= age=61 idle=61 qbuf=29";
        let sockets = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
                       0: 0100007F:1E1F 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1\n\
                       1: 0100007F:1E1F 0100007F:EBB0 08 00000000:00000001 00:00000000 00000000 0 0 8 1\n\
                       2: 0100007F:1E1F 0100007F:EBB1 01 00000000:00000000 00:00000000 00000000 0 0 9 1\n";
        assert_eq!(port(line), Some(60336));
        assert_eq!(states(sockets, 60336), ["[0100007F:1E1F 0100007F:EBB0 08 00000000:00000001]"]);
        assert_eq!(port("id=8 addr=/run/socket:0 fd=3"), Some(0));
        assert_eq!(port("no line"), None);
    }
}
