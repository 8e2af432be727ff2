//! What the next tick will be told, and whether it may wait.

use base::street::Event;

/// Events in the order in which they happened. A *quiet* event only gives a buffer back to a machine that said it does
/// not wait for it; it travels with the next tick and causes none.
pub(crate) struct EventList {
    pub events: Vec<Event>,
    prompt: bool,
}

impl EventList {
    pub fn new() -> EventList {
        EventList { events: Vec::with_capacity(1024), prompt: false }
    }

    #[inline]
    pub fn push(&mut self, event: Event) {
        self.prompt = true;
        self.events.push(event);
    }

    /// Push one way or the other.
    #[inline]
    pub fn push_completion(&mut self, event: Event, quiet: bool) {
        self.prompt |= !quiet;
        self.events.push(event);
    }

    /// Puts a quiet event before all others: it happened while they waited.
    #[cold]
    pub fn push_first(&mut self, event: Event) {
        self.events.insert(0, event);
    }

    /// Whether something waits that must not wait for something else to happen.
    pub fn is_prompt(&self) -> bool {
        self.prompt
    }

    /// The tick has drained the list.
    pub fn reset(&mut self) {
        self.events.clear();
        self.prompt = false;
    }
}
