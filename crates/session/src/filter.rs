//! Which connections CLIENT LIST and CLIENT KILL mean. Parsed once, applied on every core.

use crate::acl::Users;
use crate::session::Session;
use base::Now;
use wire::number::parse_integer;
use wire::{Arguments, Reply, error};

/// Kinds of connections as clients name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// Every client so far.
    Normal,
    /// The link to a primary.
    Primary,
    /// A replica's link.
    Replica,
    /// A subscriber.
    Pubsub,
}

impl ClientKind {
    fn named(text: &[u8]) -> Option<ClientKind> {
        let kinds = [
            ("normal", ClientKind::Normal),
            ("master", ClientKind::Primary),
            ("slave", ClientKind::Replica),
            ("replica", ClientKind::Replica),
            ("pubsub", ClientKind::Pubsub),
        ];
        kinds.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name.as_bytes())).map(|(_, kind)| kind)
    }
}

/// A connection is meant when it satisfies every part that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFilter {
    /// One of these client ids; empty means any.
    pub ids: Vec<u64>,
    /// Of this kind.
    pub kind: Option<ClientKind>,
    /// With this address at the other end.
    pub peer: Option<Vec<u8>>,
    /// With this address at our end.
    pub local: Option<Vec<u8>>,
    /// Of the user with this name.
    pub user: Option<Vec<u8>>,
    /// Not the one with this client id.
    pub except: Option<u64>,
    /// Connected for at least this long, seconds.
    pub age_s_min: Option<u64>,
}

impl ClientFilter {
    /// Whether `session` is meant.
    pub fn matches(&self, session: &Session, now: Now) -> bool {
        let age_s = now.monotonic_us.saturating_sub(session.created_us) / 1_000_000;
        (self.ids.is_empty() || self.ids.contains(&session.client_id))
            && self.kind.is_none_or(|kind| kind == ClientKind::Normal)
            && self.peer.as_ref().is_none_or(|peer| peer == session.peer.as_bytes())
            && self.local.as_ref().is_none_or(|local| local == session.local.as_bytes())
            && self.user.as_ref().is_none_or(|user| user == session.user.name())
            && self.except != Some(session.client_id)
            && self.age_s_min.is_none_or(|least| age_s >= least)
    }

    /// `CLIENT LIST [TYPE type | ID id...]`; `None` when an error was written.
    pub(crate) fn for_list(arguments: Arguments<'_>, reply: &mut Reply<'_>) -> Option<ClientFilter> {
        let mut filter = ClientFilter::default();
        match arguments.get(2) {
            None => {}
            Some(word) if word.eq_ignore_ascii_case(b"type") && arguments.len() == 4 => {
                filter.kind = Some(read_kind(&arguments[3], reply)?);
            }
            Some(word) if word.eq_ignore_ascii_case(b"id") && arguments.len() > 3 => {
                for text in arguments.from(3) {
                    let Some(id) = parse_integer(text) else {
                        reply.error("ERR", "Invalid client ID");
                        return None;
                    };
                    filter.ids.push(id as u64);
                }
            }
            Some(_) => {
                error::SYNTAX.write(reply);
                return None;
            }
        }
        Some(filter)
    }

    /// `CLIENT KILL` in its form with filters; `None` when an error was written.
    pub(crate) fn for_kill(
        (myself, users): (u64, &Users),
        arguments: Arguments<'_>,
        reply: &mut Reply<'_>,
    ) -> Option<ClientFilter> {
        let mut filter = ClientFilter { except: Some(myself), ..ClientFilter::default() };
        let mut rest = arguments.from(2);
        while let Some(word) = rest.get(0) {
            let (Some(value), word) = (rest.get(1), word.to_ascii_lowercase()) else {
                error::SYNTAX.write(reply);
                return None;
            };
            filter.add_kill_option((myself, users), &word, value, reply)?;
            rest = rest.from(2);
        }
        Some(filter)
    }

    fn add_kill_option(
        &mut self,
        (myself, users): (u64, &Users),
        word: &[u8],
        value: &[u8],
        reply: &mut Reply<'_>,
    ) -> Option<()> {
        match word {
            b"id" => self.ids = vec![read_positive(value, "client-id should be greater than 0", reply)?],
            b"maxage" => {
                self.age_s_min = Some(read_positive(value, "maxage is not an integer or out of range", reply)?)
            }
            b"type" => self.kind = Some(read_kind(value, reply)?),
            b"addr" => self.peer = Some(value.to_vec()),
            b"laddr" => self.local = Some(value.to_vec()),
            b"user" if users.get(value).is_some() => self.user = Some(value.to_vec()),
            b"user" => {
                error::quoted(reply, "No such user ", value);
                return None;
            }
            b"skipme" if value.eq_ignore_ascii_case(b"yes") => self.except = Some(myself),
            b"skipme" if value.eq_ignore_ascii_case(b"no") => self.except = None,
            _ => {
                error::SYNTAX.write(reply);
                return None;
            }
        }
        Some(())
    }
}

fn read_kind(text: &[u8], reply: &mut Reply<'_>) -> Option<ClientKind> {
    let kind = ClientKind::named(text);
    if kind.is_none() {
        error::quoted(reply, "Unknown client type ", text);
    }
    kind
}

fn read_positive(text: &[u8], otherwise: &str, reply: &mut Reply<'_>) -> Option<u64> {
    let number = parse_integer(text).filter(|&number| number > 0);
    if number.is_none() {
        reply.error("ERR", otherwise);
    }
    number.map(i64::cast_unsigned)
}
