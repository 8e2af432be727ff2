//! A machine's monotonic clock: it starts somewhere, runs wrong, goes on while processes die, and begins anew with the power.

/// See the module.
pub struct Clock {
    booted_us: u64,
    offset_us: u64,
    /// Parts of a million too fast.
    skew_ppm: i64,
}

impl Clock {
    /// A machine that has been on for a while.
    pub fn new(now_us: u64, offset_us: u64, skew_ppm: i64) -> Clock {
        Clock { booted_us: now_us, offset_us, skew_ppm }
    }

    /// The machine has power again.
    pub fn boot(&mut self, now_us: u64, offset_us: u64) {
        (self.booted_us, self.offset_us) = (now_us, offset_us);
    }

    /// What it says when the world's clock says `now_us`.
    pub fn read_us(&self, now_us: u64) -> u64 {
        let passed = i128::from(now_us - self.booted_us);
        self.offset_us + (passed + passed * i128::from(self.skew_ppm) / 1_000_000) as u64
    }

    /// When it will have reached `clock_us`, by the world's.
    pub fn world_us(&self, clock_us: u64) -> u64 {
        let passed = i128::from(clock_us.saturating_sub(self.offset_us)) * 1_000_000;
        self.booted_us + (passed / i128::from(1_000_000 + self.skew_ppm)) as u64 + 1
    }
}
