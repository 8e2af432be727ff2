//! A user: who may log in under this name, and what such a connection may do.

use sha2::{Digest, Sha256};

use super::commands::CommandSet;
use super::patterns::KeyPattern;
use crate::secret::is_secret;

/// SHA-256 of a password.
pub(super) type PasswordHash = [u8; 32];

/// A set of things that are allowed together: these commands on these keys. A request has to fit one selector as a
/// whole.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selector {
    pub(super) commands: CommandSet,
    pub(super) all_keys: bool,
    pub(super) patterns: Vec<KeyPattern>,
    pub(super) all_channels: bool,
    pub(super) channels: Vec<Vec<u8>>,
}

impl Selector {
    fn is_unbounded(&self) -> bool {
        self.commands.is_all() && self.all_keys && self.all_channels
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub(super) name: Vec<u8>,
    pub(super) enabled: bool,
    pub(super) no_password: bool,
    /// Kept and shown; there is no RESTORE whose payload could be looked at.
    pub(super) skips_sanitizing: bool,
    pub(super) passwords: Vec<PasswordHash>,
    /// The first is the user's own; the others were given in parentheses.
    pub(super) selectors: Vec<Selector>,
    /// Kept by [`User::settle`].
    is_unbounded: bool,
}

impl User {
    /// Off, without passwords, and may do nothing.
    pub fn new(name: &[u8]) -> User {
        User {
            name: name.to_vec(),
            enabled: false,
            no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            selectors: vec![Selector::default()],
            is_unbounded: false,
        }
    }

    /// On, with any password, and may do everything: what `default` is unless somebody says otherwise.
    pub fn unbounded(name: &[u8]) -> User {
        let mut user = User { enabled: true, no_password: true, ..User::new(name) };
        let own = &mut user.selectors[0];
        own.commands.set_all(true);
        (own.all_keys, own.all_channels) = (true, true);
        user.settle();
        user
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether it may do everything, so that no request has to be looked at.
    #[inline]
    pub fn is_unbounded(&self) -> bool {
        self.is_unbounded
    }

    /// Whether anybody can log in as it.
    pub fn is_on(&self) -> bool {
        self.enabled
    }

    /// Whether a connection is this user's without a password, where it is the default user.
    pub fn is_open(&self) -> bool {
        self.enabled && self.no_password
    }

    /// Whether any password would do.
    pub fn needs_no_password(&self) -> bool {
        self.no_password
    }

    /// Whether somebody who presents this password is the user. The time depends on the length of the password and on how
    /// many the user has, not on how much of it is right.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let hash = hash_of(password);
        let fits = self.passwords.iter().fold(false, |fits, known| is_secret(known, &hash) | fits);
        self.enabled & (self.no_password | fits)
    }

    /// One password and no other, or with `None` any: `requirepass`.
    pub fn set_only_password(&mut self, password: Option<&[u8]>) {
        self.no_password = password.is_none();
        self.passwords = password.map(hash_of).into_iter().collect();
    }

    /// After every change of what follows from it.
    pub(super) fn settle(&mut self) {
        self.is_unbounded = self.selectors.iter().any(Selector::is_unbounded);
    }
}

pub(super) fn hash_of(password: &[u8]) -> PasswordHash {
    Sha256::digest(password).into()
}
