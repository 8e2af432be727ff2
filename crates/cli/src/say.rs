//! Words to the operator. Standard output may be a closed pipe: a server outlives whoever read its first lines.

use std::io::Write;

/// A line on standard output.
pub fn line(text: &str) {
    let mut output = std::io::stdout().lock();
    // A reader that went away is no reason to stop.
    writeln!(output, "{text}").and_then(|()| output.flush()).ok();
}

/// How far it is, where no bar can be drawn.
pub fn progress(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

/// Something odd that does not keep it from working.
pub fn warning(text: &str) {
    writeln!(std::io::stderr(), "zerohop: warning: {text}").ok();
}

/// Why it does not work.
pub fn problem(text: &str) {
    writeln!(std::io::stderr(), "zerohop: {text}").ok();
}

/// What a node of several writes on its standard error.
pub fn warning_of(node: &str, text: &str) {
    writeln!(std::io::stderr(), "{node}: {text}").ok();
}
