//! A bar on a terminal while logs are read that take their time.

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Less than this is read before anybody wonders, bytes.
const SHOWN_FROM_BYTES: u64 = 512 << 20;

/// Told bytes read and bytes to read; draws on standard error, if that is a terminal, and leaves nothing behind.
pub fn bar() -> impl FnMut(u64, u64) {
    let mut bar: Option<ProgressBar> = None;
    move |done, total| {
        if total >= SHOWN_FROM_BYTES {
            bar.get_or_insert_with(|| new_bar(total)).set_position(done);
        }
    }
}

fn new_bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("reading the log {wide_bar} {bytes}/{total_bytes}, {eta} left")
        .expect("the template is one that indicatif knows");
    ProgressBar::new(total).with_style(style).with_finish(ProgressFinish::AndClear)
}
