//! What a batcher can be told: a policy as a plain value, bounds, and what is assumed before anything was measured.

use base::limits;

/// The policy of a destination. The default needs no parameter and no timer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PolicyConfig {
    /// What waits goes whenever somebody looks.
    Immediate,
    /// One outstanding batch per destination.
    #[default]
    SelfClocked,
    /// By count, bytes and a timer.
    Fixed(FixedConfig),
    /// As late as deadlines permit.
    Edf(EdfConfig),
    /// An interval that follows what the store makes of it.
    Stout(StoutConfig),
}

/// Parameters of [`PolicyConfig::Fixed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedConfig {
    /// Requests at which a batch goes at once.
    pub count_max: usize,
    /// Bytes at which a batch goes at once.
    pub bytes_max: usize,
    /// Time between two batches, microseconds.
    pub interval_us: u64,
    /// Whether a batch waits for the answer of the one before it, and the interval begins with that answer.
    pub is_stop_and_wait: bool,
}

impl FixedConfig {
    /// By the timer alone, however many batches are out.
    pub const fn pipelined(interval_us: u64) -> FixedConfig {
        FixedConfig { count_max: usize::MAX, bytes_max: usize::MAX, interval_us, is_stop_and_wait: false }
    }

    /// By the timer alone, one batch at a time.
    pub const fn stop_and_wait(interval_us: u64) -> FixedConfig {
        FixedConfig { is_stop_and_wait: true, ..FixedConfig::pipelined(interval_us) }
    }
}

/// Parameters of [`PolicyConfig::Edf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdfConfig {
    /// How long a request without a deadline waits at most, microseconds (Li 2015, section 4.3.3: one second).
    pub wait_us_max: u64,
}

impl Default for EdfConfig {
    fn default() -> EdfConfig {
        EdfConfig { wait_us_max: 1_000_000 }
    }
}

/// Parameters of [`PolicyConfig::Stout`]; where they come from is told in `docs/internals/batching.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoutConfig {
    /// Backing off: the interval grows by this share.
    pub alpha: f64,
    /// Accelerating: by this share the interval moves to its square root (in milliseconds).
    pub beta: f64,
    /// A performance below this share of the recent one is a reason to back off.
    pub factor: f64,
    /// Weight of a sample in the moving averages.
    pub weight: f64,
    /// Shortest interval, milliseconds.
    pub interval_ms_min: f64,
    /// Longest interval, milliseconds.
    pub interval_ms_max: f64,
    /// Interval at the beginning, milliseconds.
    pub interval_ms_start: f64,
    /// How long the best performance is remembered, microseconds.
    pub best_us: u64,
}

impl Default for StoutConfig {
    fn default() -> StoutConfig {
        StoutConfig {
            alpha: 0.05,
            beta: 0.8,
            factor: 0.8,
            weight: 1.0 / 15.0,
            interval_ms_min: 1.0,
            interval_ms_max: 400.0,
            interval_ms_start: 80.0,
            best_us: 1_000_000,
        }
    }
}

/// Floors, caps and steps of the tuner that keeps deadlines (Li 2015, algorithm 4.3, with the recovery it lacks).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunerConfig {
    /// Requests per batch: at least, after any number of halvings.
    pub count_min: usize,
    /// Requests per batch: at most.
    pub count_max: usize,
    /// Bytes per batch: at least.
    pub bytes_min: usize,
    /// Bytes per batch: at most.
    pub bytes_max: usize,
    /// Time kept in reserve before a deadline: at least, microseconds.
    pub reserve_us_min: u64,
    /// Time kept in reserve: at most, microseconds.
    pub reserve_us_max: u64,
    /// Batches in a row that came as expected before limits grow by a step.
    pub good_batches: u32,
}

impl Default for TunerConfig {
    fn default() -> TunerConfig {
        TunerConfig {
            count_min: 32,
            count_max: 4096,
            bytes_min: 4 << 10,
            bytes_max: limits::BATCH_BYTES_MAX,
            reserve_us_min: 100,
            reserve_us_max: 2000,
            good_batches: 16,
        }
    }
}

/// The latency that is assumed until some was measured: L = a·bytes + n·c_exe + c2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyPrior {
    /// a: per KiB, microseconds.
    pub per_kib_us: f64,
    /// c_exe: per request, microseconds.
    pub per_request_us: f64,
    /// c2: per batch, microseconds.
    pub per_batch_us: f64,
}

impl Default for LatencyPrior {
    fn default() -> LatencyPrior {
        LatencyPrior { per_kib_us: 1.0, per_request_us: 2.0, per_batch_us: 300.0 }
    }
}

/// How much may wait and be on its way to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchBounds {
    /// Requests of one bucket; one that has them goes at once.
    pub items_max: usize,
    /// Bytes of one bucket; one that has them goes at once.
    pub bytes_max: usize,
    /// Bytes of both buckets above which nothing more is taken.
    pub waiting_bytes_max: usize,
    /// Time that the destination works on what waits and what is out, as estimated, above which nothing more is taken,
    /// microseconds; [`limits::BATCH_ITEMS_UNJUDGED`] requests are taken in any case.
    pub work_us_max: u64,
    /// Bytes that were sent and are not answered, above which nothing goes.
    pub in_flight_bytes_max: usize,
    /// Batches that were sent and are not answered, above which nothing goes.
    pub in_flight_batches_max: usize,
}

impl Default for BatchBounds {
    fn default() -> BatchBounds {
        BatchBounds {
            items_max: limits::BATCH_ITEMS_MAX,
            bytes_max: limits::BATCH_BYTES_MAX,
            waiting_bytes_max: limits::BATCHES_WAITING_BYTES_MAX,
            work_us_max: limits::BATCH_WORK_US_MAX,
            in_flight_bytes_max: limits::BATCHES_IN_FLIGHT_BYTES_MAX,
            in_flight_batches_max: limits::BATCHES_IN_FLIGHT_MAX,
        }
    }
}

/// Everything a [`Batcher`](super::Batcher) is told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatcherConfig {
    /// When a batch goes that no deadline presses.
    pub policy: PolicyConfig,
    /// How much there may be.
    pub bounds: BatchBounds,
    /// How deadlines are kept.
    pub tuner: TunerConfig,
    /// What is assumed of the destination.
    pub prior: LatencyPrior,
}
