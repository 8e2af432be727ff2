//! What records name by a number because it does not fit their slot: lists, long values.

/// Values by number; a freed number is given out again.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { places: Vec::new(), free: Vec::new() }
    }
}

/// Only records hold numbers, and each is freed with its record.
const DANGLING: &str = "a record names what is there";

impl<T> Numbered<T> {
    /// Takes a value in; its number.
    pub(super) fn add(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(value);
            return number;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    pub(super) fn get(&self, number: u32) -> &T {
        self.places[number as usize].as_ref().expect(DANGLING)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        self.places[number as usize].as_mut().expect(DANGLING)
    }

    /// Hands a value out and frees its number.
    pub(super) fn remove(&mut self, number: u32) -> T {
        let value = self.places[number as usize].take().expect(DANGLING);
        self.free.push(number);
        value
    }

    /// All values.
    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.places.into_iter().flatten()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.places.iter().flatten().count()
    }
}
