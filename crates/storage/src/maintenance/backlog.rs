//! Backlog: whether runs fall behind. A period is a stride of log, in which one run should be made; debt that grows for three of
//! them in a row is an alarm, until it is less than a stride.

/// Periods.
const GROWN_MAX: u8 = 3;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog {
    /// Bytes of log at which the next look counts.
    look_at_bytes: u64,
    debt_bytes: u64,
    grown: u8,
    is_alarmed: bool,
    alarms: u64,
}

impl Backlog {
    /// Looks at the debt, bytes of log since the next run came due, of a log that has grown to `log_bytes`. Whether the alarm
    /// began or ended.
    pub fn look(&mut self, debt_bytes: u64, log_bytes: u64, stride_bytes: u64) -> bool {
        let was_alarmed = self.is_alarmed;
        if debt_bytes < stride_bytes {
            (self.grown, self.is_alarmed) = (0, false);
        }
        if log_bytes >= self.look_at_bytes {
            self.look_at_bytes = log_bytes + stride_bytes;
            let has_grown = debt_bytes >= stride_bytes && debt_bytes > self.debt_bytes;
            self.grown = if has_grown { self.grown + 1 } else { 0 };
            self.debt_bytes = debt_bytes;
            if self.grown >= GROWN_MAX {
                (self.grown, self.is_alarmed) = (0, true);
            }
        }
        self.alarms += u64::from(self.is_alarmed && !was_alarmed);
        self.is_alarmed != was_alarmed
    }

    /// Whether runs are behind and fall further behind.
    pub fn is_alarmed(&self) -> bool {
        self.is_alarmed
    }

    /// Alarms since the start.
    pub fn alarms(&self) -> u64 {
        self.alarms
    }
}
