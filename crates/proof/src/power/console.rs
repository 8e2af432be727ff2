//! What a guest prints: which server said what, what was found in its directory, ticks.

use crate::kill::told::Check;

/// What the guest prints when something ends that should not.
pub const ENDED: &str = "guest: ended with ";

/// What one of several nodes has printed.
pub fn of_node(output: &str, node: usize) -> String {
    let name = format!("node {node}: ");
    output.lines().filter_map(|line| line.strip_prefix(&name)).map(|line| format!("{}\r\n", line.trim_end())).collect()
}

/// With which status a server ended, once it has.
pub fn ended_with(output: &str) -> Option<String> {
    let (_, status) = output.split_once(ENDED)?;
    Some(status.split_once('\r')?.0.to_owned())
}

/// What `zerohop check` said of a directory before the server started, an error if it was not good; `None` if there was none.
pub fn checked(output: &str) -> Option<Result<Check, String>> {
    let (told, status) = output.split_once("guest: check\r\n")?.1.split_once("guest: checked ")?;
    let is_good = status.starts_with("0\r\n");
    // Ticks come at any moment, also between its lines.
    let told: String = told.split_inclusive('\n').filter(|line| !line.starts_with("tick ")).collect();
    Some(if is_good { Ok(Check::parse(&told).unwrap_or_default()) } else { Err(told) })
}

/// The last tick.
pub fn last_tick(output: &str) -> u64 {
    // The last line may not be whole.
    let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().rev().find_map(|line| line.strip_prefix("tick ")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Check, checked, ended_with, last_tick, of_node};

    const OUTPUT: &str = "node 0: guest: check\r\nnode 1: guest: new\r\ntick 1\r\nnode 0: d: it would start\r\n\
                          node 0:   records      7\r\nnode 0: guest: checked 0\r\nnode 2: guest: check\r\n\
                          node 2: MANIFEST is damaged\r\nnode 2: guest: checked 2\r\nnode 1: guest: ended with 137\r\nnode 0: gu";

    #[test]
    fn nodes_are_told_apart_and_their_directories_judged() {
        let of = |node| of_node(OUTPUT, node);
        assert_eq!(checked(&of(0)), Some(Ok(Check { keys: 0, records: 7 })));
        assert_eq!((checked(&of(1)), of(1).contains("guest: new")), (None, true));
        assert_eq!(checked(&of(2)), Some(Err("MANIFEST is damaged\r\n".to_owned())));
        assert_eq!([0, 1, 2].map(|node| ended_with(&of(node))), [None, Some("137".to_owned()), None]);
    }

    #[test]
    fn ticks_between_the_lines_of_a_check_are_none_of_it() {
        let output =
            "guest: check\r\ntick 1\r\nd: it would start\r\ntick 2\r\n  records      7\r\nguest: checked 0\r\n";
        assert_eq!(checked(output), Some(Ok(Check { keys: 0, records: 7 })));
    }

    #[test]
    fn the_last_whole_tick_counts() {
        assert_eq!(last_tick("guest: up\r\ntick 1\r\nready\r\ntick 12\r\ntick 13"), 12);
        assert_eq!(last_tick("tick 1"), 0);
    }
}
