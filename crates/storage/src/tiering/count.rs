//! How many values of a group are in which state, and their bytes.

use super::Place;
use crate::record::Header;

/// See the module's picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No run has it.
    Dirty,
    /// Memory and a run have it.
    Clean,
    /// A run has it.
    Cold,
}

impl State {
    /// Of a record that has room for a place.
    fn of(place: Place) -> State {
        match place {
            Place { is_cold: true, .. } => State::Cold,
            Place { offset: 0, .. } => State::Dirty,
            _ => State::Clean,
        }
    }
}

/// Values and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub keys: usize,
    pub bytes: usize,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub dirty: Sum,
    pub clean: Sum,
    pub cold: Sum,
    /// Places in the first and in the second run.
    pub in_run: [usize; 2],
}

impl Tally {
    fn of(&mut self, state: State) -> &mut Sum {
        match state {
            State::Dirty => &mut self.dirty,
            State::Clean => &mut self.clean,
            State::Cold => &mut self.cold,
        }
    }

    /// A record came, or is as this now.
    pub fn add(&mut self, header: &Header) {
        let Some(place) = header.place else { return };
        let sum = self.of(State::of(place));
        (sum.keys, sum.bytes) = (sum.keys + 1, sum.bytes + header.value_len as usize);
        if place.offset > 0 {
            self.in_run[usize::from(place.second)] += 1;
        }
    }

    /// A record goes, or was this before.
    pub fn take(&mut self, header: &Header) {
        let Some(place) = header.place else { return };
        let sum = self.of(State::of(place));
        (sum.keys, sum.bytes) = (sum.keys - 1, sum.bytes - header.value_len as usize);
        if place.offset > 0 {
            self.in_run[usize::from(place.second)] -= 1;
        }
    }
}
