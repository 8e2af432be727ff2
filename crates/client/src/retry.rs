//! How much may be asked again: a share of what is asked at all, so that retries never make an overload worse.

/// Tenths of a request that one new request earns; ten of them pay for one retry.
const EARNED: u32 = 1;
const PRICE: u32 = 10;
/// Most retries that can be saved up.
const SAVED_MAX: u32 = 64;

/// The account of one core: at most a tenth of its requests are asked again (Finagle has a fifth, Envoy counts those under way).
#[derive(Debug)]
pub struct RetryBudget {
    tenths: u32,
}

impl Default for RetryBudget {
    fn default() -> RetryBudget {
        RetryBudget { tenths: SAVED_MAX * PRICE }
    }
}

impl RetryBudget {
    /// A request was asked for the first time.
    #[inline]
    pub fn earn(&mut self) {
        self.tenths = (self.tenths + EARNED).min(SAVED_MAX * PRICE);
    }

    /// Whether one may be asked again; that is paid for.
    pub fn spend(&mut self) -> bool {
        let Some(rest) = self.tenths.checked_sub(PRICE) else { return false };
        self.tenths = rest;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_requests_that_all_fail_a_tenth_is_asked_again() {
        let (mut budget, mut again) = (RetryBudget::default(), 0);
        for _ in 0..10_000 {
            budget.earn();
            again += u32::from(budget.spend());
        }
        assert!((1000..=1000 + SAVED_MAX).contains(&again), "{again}");
        assert!(!RetryBudget { tenths: PRICE - 1 }.spend());
    }
}
