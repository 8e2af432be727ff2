//! A planted bug for a whole process (AT-01): only in the build that carries them, for harnesses that start the binary.

use base::planted::{Bug, plant};

/// Its value is a word like `M13`.
const VARIABLE: &str = "PLANTED_BUG";

/// Plants the bug that the environment names; none without the variable.
pub(crate) fn plant_from_environment() {
    let Ok(name) = std::env::var(VARIABLE) else { return };
    // A harness that is to catch a bug must not run without it.
    let bug = Bug::named(&name).unwrap_or_else(|| panic!("{VARIABLE}: no bug is called {name}"));
    plant(Some(bug));
}
