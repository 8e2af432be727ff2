//! Where a redirect may lead: to a member of the cluster, as the server that was named knows it, and nowhere else. Whoever it leads
//! to gets the password, and a node that is not what it was may name anybody.
//!
//! ```text
//!  reply ─► MOVED slot host:port ─► is it a member?  known ─► there
//!                                                    not known ─► CLUSTER NODES at the server that was named ─► there, or an error
//! ```

use client::cluster::{Place, Redirect, node_lines};
use wire::reply_parse::Value;

use super::connection::{Connection, Target};

/// What a reply says of another place; `ASK`, and what names no place, is an error like others.
pub fn moved(reply: &Value, host_unknown: &str) -> Option<Redirect> {
    let Value::Error(text) = reply else { return None };
    Redirect::of(text, host_unknown).filter(|redirect| !redirect.is_ask)
}

/// The members of a cluster, as one server knows them.
#[derive(Default)]
pub struct Members(Vec<Place>);

impl Members {
    /// Whether it may be gone to; `named` is asked when it is not known yet.
    ///
    /// # Errors
    /// It may not; or `named` cannot say who may.
    pub fn check(&mut self, place: &Place, named: &Target) -> Result<(), String> {
        if self.0.contains(place) {
            return Ok(());
        }
        let words = ["CLUSTER", "NODES"].map(|word| word.as_bytes().to_vec());
        let asked = Connection::open(named).and_then(|mut connection| connection.call(&words));
        let unknown =
            |why: &str| format!("redirected to {place}, and {named} cannot say whether that is a member: {why}");
        self.0 = match asked.map_err(|why| unknown(&why))? {
            Value::Bulk(text) | Value::Verbatim(_, text) => listed(&String::from_utf8_lossy(&text), &named.host),
            Value::Error(text) => return Err(unknown(&String::from_utf8_lossy(&text))),
            _ => return Err(unknown("its reply to CLUSTER NODES is none")),
        };
        match self.0.contains(place) {
            true => Ok(()),
            false => {
                Err(format!("redirected to {place}, which {named} does not know as a member: nothing was sent there"))
            }
        }
    }
}

/// By each of its names a node may be called.
fn listed(text: &str, host_unknown: &str) -> Vec<Place> {
    node_lines(text, host_unknown).flat_map(|line| line.places).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_slot_that_moved_leads_elsewhere() {
        let of = |text: &str| moved(&Value::Error(text.into()), "own").map(|redirect| redirect.place.to_string());
        assert_eq!(of("MOVED 7 :7001"), Some("own:7001".to_owned()));
        assert_eq!([of("ASK 7 a:7001"), of("MOVED 7 a:0"), of("ERR no")], [None, None, None]);
        assert_eq!(moved(&Value::Simple(b"MOVED 7 a:7001".to_vec()), "own"), None, "no error");
    }

    #[test]
    fn a_member_may_be_called_by_each_of_its_names() {
        let text = "a 10.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5\n\
                    b ::1:7002@17002,name.example,shard-id=abc slave a 0 0 1 connected\n";
        let places = ["10.0.0.1:7001", "[::1]:7002", "name.example:7002"].map(|text| Place::parse(text, "").unwrap());
        assert_eq!(listed(text, "own"), places);
    }
}
