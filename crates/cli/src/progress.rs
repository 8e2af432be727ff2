//! A bar on a terminal while something is done that takes its time.

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Less than this is read before anybody wonders, bytes.
const SHOWN_FROM_BYTES: u64 = 512 << 20;

/// Told bytes read and bytes to read; draws on standard error, if that is a terminal, and leaves nothing behind.
pub fn bar() -> impl FnMut(u64, u64) {
    let mut bar: Option<ProgressBar> = None;
    move |done, total| {
        if total >= SHOWN_FROM_BYTES {
            bar.get_or_insert_with(|| bar_for("reading the log", total)).set_position(done);
        }
    }
}

/// The same for work that somebody asked for and waits for: from the first byte on.
pub fn of(what: &'static str) -> impl FnMut(u64, u64) {
    let mut bar: Option<ProgressBar> = None;
    move |done, total| bar.get_or_insert_with(|| bar_for(what, total)).set_position(done)
}

/// The same, of keys.
pub fn of_keys(what: &'static str) -> impl FnMut(u64, u64) {
    let mut bar: Option<ProgressBar> = None;
    move |done, total| {
        let style = || {
            ProgressStyle::with_template(&format!("{what} {{wide_bar}} {{human_pos}}/{{human_len}} keys, {{eta}} left"))
                .expect("the template is one that indicatif knows")
        };
        bar.get_or_insert_with(|| ProgressBar::new(total).with_style(style()).with_finish(ProgressFinish::AndClear))
            .set_position(done);
    }
}

fn bar_for(what: &str, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{what} {{wide_bar}} {{bytes}}/{{total_bytes}}, {{eta}} left"))
        .expect("the template is one that indicatif knows");
    ProgressBar::new(total).with_style(style).with_finish(ProgressFinish::AndClear)
}
