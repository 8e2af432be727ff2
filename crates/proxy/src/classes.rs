//! Classes: by when callers want their replies and how much of the store is theirs, as the operator says it for listeners and users.
//!
//! ```text
//!  by when:   ZH.QOS of the connection ─ none ─► that of its class
//!  its class: that of the user it logged in as ─ none ─► that of the listener ─ none ─► the default one
//! ```
//!
//! A class is a tenant: all its callers together have one weight, and `ZH.QOS` leaves nobody's class.

use crate::caller::Caller;
use crate::counts::ClassCounts;
use crate::machine::ProxyMachine;
use crate::standing::Word;
use base::limits::PROXY_CLASSES_MAX;
use base::street::TickInput;
use client::Qos;
use session::acl::Users;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// As the operator calls it.
    pub name: String,
    /// By when its callers want their replies that do not say it themselves.
    pub qos: Qos,
    /// Its part of a store that has not enough for all, against the weights of the others; 1 to `PROXY_WEIGHT_MAX`.
    pub weight: u32,
    /// Whether its writes are collapsed whatever their keys are.
    pub collapses: bool,
}

impl Default for Class {
    fn default() -> Class {
        Class { name: Class::DEFAULT.to_owned(), qos: Qos::Batch, weight: 1, collapses: false }
    }
}

impl Class {
    /// The name of the class whose number is [`ClassNumber::DEFAULT`].
    pub const DEFAULT: &str = "default";
}

/// A class by its place among all that this proxy has known since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassNumber(pub u16);

impl ClassNumber {
    /// The first one, which is always there.
    pub const DEFAULT: ClassNumber = ClassNumber(0);

    /// As a place.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Which classes there are, and who is in which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// By number, each name once; the first one is called [`Class::DEFAULT`].
    pub all: Vec<Class>,
    /// That of callers of whom nothing else is said.
    pub default: ClassNumber,
    /// Of those that come through a listener, by its number.
    pub of_listeners: Vec<Option<ClassNumber>>,
    /// Of those that logged in by this name. Who gave a password alone is `default`.
    pub of_users: BTreeMap<Vec<u8>, ClassNumber>,
}

impl Default for Classes {
    fn default() -> Classes {
        Classes {
            all: vec![Class::default()],
            default: ClassNumber::DEFAULT,
            of_listeners: Vec::new(),
            of_users: BTreeMap::new(),
        }
    }
}

impl Classes {
    fn of(&self, caller: &Caller) -> ClassNumber {
        let login = caller.identity.login.as_ref();
        let user = match caller.is_guarded {
            true => caller.user.as_ref().map(|user| user.name()),
            false => login.map(|(user, _)| user.as_deref().unwrap_or(b"default")),
        };
        let of_user = user.and_then(|user| self.of_users.get(user));
        let of_listener = || self.of_listeners.get(usize::from(caller.whence.listener))?.as_ref();
        *of_user.or_else(of_listener).unwrap_or(&self.default)
    }

    /// The class of that number.
    #[inline]
    pub fn get(&self, number: ClassNumber) -> &Class {
        &self.all[number.index()]
    }

    /// The same classes with the numbers that they had in `before`, so that what was counted stays theirs. Classes that are no more
    /// keep their numbers, which nobody is in.
    ///
    /// # Errors
    /// There have been too many names.
    pub fn numbered_after(self, before: &Classes) -> Result<Classes, String> {
        let mut all = before.all.clone();
        let number = |class: Class| {
            let place = all.iter().position(|known| known.name == class.name).unwrap_or(all.len());
            match all.get_mut(place) {
                Some(known) => *known = class,
                None => all.push(class),
            }
            ClassNumber(place as u16)
        };
        let numbers: Vec<ClassNumber> = self.all.into_iter().map(number).collect();
        if all.len() > PROXY_CLASSES_MAX {
            return Err(format!(
                "since it was started it had {} classes, and {PROXY_CLASSES_MAX} is the end",
                all.len()
            ));
        }
        let now = |old: ClassNumber| numbers[old.index()];
        Ok(Classes {
            all,
            default: now(self.default),
            of_listeners: self.of_listeners.into_iter().map(|class| class.map(now)).collect(),
            of_users: self.of_users.into_iter().map(|(user, class)| (user, now(class))).collect(),
        })
    }
}

/// What may change while a proxy runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changeable {
    /// Who is in which class.
    pub classes: Classes,
    /// Connections of one core to the store.
    pub connections_max: usize,
    /// Beginnings of keys whose writes are collapsed.
    pub collapse: Vec<Vec<u8>>,
    /// Users of the proxy's own, where it has any.
    pub users: Option<Arc<Users>>,
}

/// What a core is told from outside.
pub type Order = Arc<Changeable>;

impl ProxyMachine {
    /// Takes what the operator changed, which callers notice with their next request, and who asks how the core stands.
    #[inline]
    pub(crate) fn take_orders(&mut self, input: &mut TickInput<'_, Word>) {
        for (from, word) in input.hops.drain(..) {
            match word {
                Word::Order(order) => {
                    self.seats.bound(order.connections_max);
                    self.classes = order.classes.clone();
                    self.collapse(&order.collapse);
                    self.classes_version += 1;
                    if let Some(users) = &order.users {
                        self.replace_users(users);
                    }
                    self.desk.counts.resize_with(self.classes.all.len(), ClassCounts::default);
                }
                Word::Leave { wait_us } => self.begin_to_leave(input.now.monotonic_us + wait_us),
                Word::Ask => self.asked_by.push(from),
                // Cores ask nobody.
                Word::Standing(_) => {}
            }
        }
    }

    /// Gives a caller the class that it is in by now. Whether it has to wait for its replies first: they are counted for the class
    /// that asked, and requests of another one may take another connection, where they would overtake those on their way.
    #[inline]
    pub(crate) fn is_of_old_class(&mut self, caller: &mut Caller) -> bool {
        if caller.classes_version == self.classes_version {
            return false;
        }
        let class = self.classes.of(caller);
        let qos = if caller.named_qos { caller.qos } else { self.classes.get(class).qos };
        // Whether a request may pass those that are collapsed is told by what held for them.
        if ((class, qos) != (caller.class, caller.qos) || caller.has_collapsed) && caller.order.owed() > 0 {
            return true;
        }
        (caller.classes_version, caller.class) = (self.classes_version, class);
        if qos != caller.qos {
            self.leave_group(caller);
            caller.qos = qos;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn classes(names: &[&str]) -> Classes {
        let all = ["default"].iter().chain(names).map(|name| Class { name: (*name).to_owned(), ..Class::default() });
        Classes { all: all.collect(), default: ClassNumber(1), ..Classes::default() }
    }

    #[test]
    fn a_class_keeps_its_number_whatever_becomes_of_the_others() {
        let first = classes(&["a", "b"]);
        let mut second = classes(&["c", "b"]);
        second.all[2].weight = 7;
        second.of_listeners = vec![None, Some(ClassNumber(2))];
        second.of_users = BTreeMap::from([(b"ann".to_vec(), ClassNumber(1))]);
        let second = second.numbered_after(&first).unwrap();
        let names: Vec<&str> = second.all.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["default", "a", "b", "c"]);
        assert_eq!((second.default, second.get(ClassNumber(2)).weight), (ClassNumber(3), 7));
        assert_eq!(second.of_listeners, [None, Some(ClassNumber(2))]);
        assert_eq!(second.of_users[b"ann".as_slice()], ClassNumber(3));
        assert_eq!(classes(&["b", "a"]).numbered_after(&first).unwrap().default, ClassNumber(2));
        assert_eq!(first.clone().numbered_after(&first).unwrap(), first);
    }

    #[test]
    fn names_of_earlier_files_count_against_the_bound() {
        let names: Vec<String> = (0..PROXY_CLASSES_MAX).map(|number| number.to_string()).collect();
        let many: Vec<&str> = names.iter().map(String::as_str).collect();
        let before = classes(&many[..PROXY_CLASSES_MAX - 1]);
        assert!(classes(&many[..1]).numbered_after(&before).is_ok());
        assert!(
            classes(&many[PROXY_CLASSES_MAX - 1..]).numbered_after(&before).unwrap_err().contains("256 is the end")
        );
    }
}
