//! Target `settings`: any configuration file and any file of users is taken or refused with a reason, and what is printed means the
//! same again.

use std::path::PathBuf;
use std::sync::LazyLock;

use server::NodeConfig;
use server::sources::{Resolved, SettingError, Sources, resolve};
use session::acl::Users;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("zerohop-fuzz-{}.toml", std::process::id())));

/// Input: the file's text, of either kind.
pub fn run(data: &[u8]) {
    users(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.contains("/dev") || text.contains("\\u") || text.contains("/proc") {
        return; // A password file that is a device may have no end.
    }
    match read(text) {
        Err(error) => assert!(!error.0.is_empty()),
        Ok(resolved) => {
            let again = read(&resolved.print()).expect("what is printed is a configuration");
            assert_eq!(format!("{:?}", again.config), format!("{:?}", resolved.config));
        }
    }
}

fn read(text: &str) -> Result<Resolved, SettingError> {
    std::fs::write(&*FILE, text).expect("the temporary folder is writable");
    let sources = Sources { file: Some(FILE.clone()), ..Sources::default() };
    let resolved = resolve(&sources, NodeConfig::default());
    std::fs::remove_file(&*FILE).expect("the file was just written");
    resolved
}

fn users(content: &[u8]) {
    match Users::from_file(content, None) {
        Err((_, reason)) => assert!(!reason.is_empty()),
        Ok(users) => {
            let printed = users.to_file();
            let again = Users::from_file(&printed, None).expect("what is printed is a file of users");
            assert_eq!(again.to_file(), printed);
        }
    }
}
