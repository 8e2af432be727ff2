//! All that a scrape may show, as of one round of questions.

use admin::sample::OwnCounts;

use crate::standing::CoreStanding;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// How long the proxy has run, microseconds.
    pub uptime_us: u64,
    /// What the cores run on.
    pub backend: &'static str,
    /// By core; `None`: it has not answered in time.
    pub cores: Vec<Option<Box<CoreStanding>>>,
    /// By core: how long it has owed an answer, microseconds; 0: it owes none.
    pub owed_us: Vec<u64>,
    /// What the admin port counts of itself.
    pub own: OwnCounts,
}

impl Sample {
    /// The cores that answered, by their numbers.
    pub fn answered(&self) -> impl Iterator<Item = (usize, &CoreStanding)> {
        self.cores.iter().enumerate().filter_map(|(core, standing)| Some((core, standing.as_deref()?)))
    }

    /// Why it is not well, a sentence each: cores that stand still, and if that is asked, a store of which nobody answers.
    pub fn reasons(&self, is_of_store: bool) -> Vec<String> {
        let silent = self.cores.iter().zip(&self.owed_us).enumerate().filter(|(_, (standing, _))| standing.is_none());
        let stuck = silent.map(|(core, (_, owed_us))| {
            format!("core {core} does not tick: it has not answered for {:.1} s", *owed_us as f64 / 1e6)
        });
        let mut reasons: Vec<String> = stuck.collect();
        let destinations = || self.answered().flat_map(|(_, standing)| &standing.destinations);
        if is_of_store && !destinations().any(|one| one.open > 0) {
            let mut down: Vec<&str> =
                destinations().filter(|one| one.down > 0).map(|one| one.address.as_str()).collect();
            down.sort_unstable();
            down.dedup();
            reasons.extend(down.iter().map(|address| format!("the store does not answer at {address}")));
        }
        reasons
    }
}
