//! The page that tells people how an application reaches the proxy, read as what it is told here.

use super::stores::Shape;

/// The port that the page names.
const PORT: &str = "6380";

/// The first block of code behind the heading of this name.
pub(super) fn block<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, section) = page.split_once(&format!("\n## {heading}\n"))?;
    let section = section.split("\n## ").next()?;
    let (_, block) = section.split_once("\n```")?;
    let (_, block) = block.split_once('\n')?;
    block.split_once("```").map(|(block, _)| block)
}

/// With another port; and before a cluster with what the page says of clusters: there is one database, and what Django writes at once
/// is of one slot.
pub(super) fn settled(block: &str, port: u16, shape: Shape) -> String {
    let mut text = block.to_owned();
    if shape == Shape::Cluster {
        for database in 1..=9 {
            text = text.replace(&format!("{PORT}/{database}"), &format!("{PORT}/0"));
            text = text.replace(&format!("database={database}"), "database=0");
        }
        text = text.replace("\"KEY_PREFIX\": \"shop\"", "\"KEY_PREFIX\": \"{shop}\"");
    }
    text.replace(PORT, &port.to_string())
}

#[cfg(test)]
mod tests {
    use super::{block, settled};
    use crate::applications::program::Kind;
    use crate::applications::stores::Shape;

    #[test]
    fn the_page_says_of_each_application_how_it_reaches_the_proxy() {
        let page = include_str!("../../../../docs/applications.md");
        for kind in Kind::ALL {
            let text = block(page, kind.heading()).expect("it has a block of code");
            assert!(settled(text, 7001, Shape::One).contains("7001"), "{text}");
            assert!(!settled(text, 7001, Shape::One).contains("6380"), "{text}");
            assert!(settled(text, 7001, Shape::Cluster) != settled(text, 7001, Shape::One), "{text}");
        }
        assert!(settled(block(page, "Django").unwrap_or_default(), 1, Shape::Cluster).contains("{shop}"));
        assert_eq!(block(page, "Cobol"), None);
    }
}
