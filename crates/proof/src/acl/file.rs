//! The file of users: what is saved comes back, and what is damaged is refused by name and line.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::process::{Server, new_directory};

use super::list;

/// Cases with their outcome.
pub fn cases(zerohop: &str, io_backend: &str) -> io::Result<Vec<(&'static str, bool)>> {
    let directory = new_directory()?;
    let file = directory.join("users.acl");
    let found = all(zerohop, io_backend, &file);
    fs::remove_dir_all(&directory)?;
    found
}

fn all(zerohop: &str, io_backend: &str, file: &Path) -> io::Result<Vec<(&'static str, bool)>> {
    let path = file.display().to_string();
    let start = || Server::start_zerohop(zerohop, &["--cores", "2", "--io", io_backend, "--aclfile", &path], None);
    let mut cases = vec![("a file that is not there is refused", is_refused(zerohop, &path, "No such file")?)];
    fs::write(file, "")?;
    fs::set_permissions(file, Permissions::from_mode(0o600))?;
    let mut node = start()?;
    let mut admin = node.connect()?;
    admin.call_line("ACL SETUSER al on >secret ~a* %R~b &c +@all -@write +select|0 (+get ~z)")?;
    admin.call_line("ACL SETUSER default >master")?;
    let saved = list(&mut admin)?;
    let answer = admin.call_line("ACL SAVE")?;
    cases.push((
        "it is saved",
        answer == b"+OK\r\n" && fs::read(file)? == [saved.join(&b'\n'), b"\n".to_vec()].concat(),
    ));
    cases.push(("its permissions stay", fs::metadata(file)?.permissions().mode() & 0o777 == 0o600));
    node.kill()?;
    let node = start()?;
    let mut admin = node.connect()?;
    let locked = admin.call_line("PING")?.starts_with(b"-NOAUTH");
    admin.call_line("AUTH master")?;
    cases.push(("it comes back at the start", locked && list(&mut admin)? == saved));
    let mut user = node.connect()?;
    let entered = user.call_line("AUTH al secret")? == b"+OK\r\n";
    cases.push(("and its users log in", entered && user.call_line("SET a 1")?.starts_with(b"-NOPERM")));
    let mut damaged = fs::read(file)?;
    damaged.extend_from_slice(b"user bo on +nosuch\n");
    fs::write(file, &damaged)?;
    let refused = String::from_utf8_lossy(&admin.call_line("ACL LOAD")?).into_owned();
    let names_line = refused.starts_with("-ERR") && refused.contains("users.acl:3: '+nosuch'");
    cases.push(("damaged, it is not loaded", names_line && list(&mut admin)? == saved));
    cases.push(("damaged, it is refused at the start", is_refused(zerohop, &path, "line 3: '+nosuch'")?));
    fs::write(file, "user default on nopass +@all ~* &*\n")?;
    let loaded = admin.call_line("ACL LOAD")? == b"+OK\r\n";
    cases.push(("a user that is not in it is gone with its connections", loaded && user.call_line("PING").is_err()));
    Ok(cases)
}

/// Whether a start ends with the code for a wrong setting, naming file and reason.
fn is_refused(zerohop: &str, path: &str, reason: &str) -> io::Result<bool> {
    let output = Command::new(zerohop).args(["serve", "--port", "0", "--aclfile", path]).output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(output.status.code() == Some(2) && text.contains(path) && text.contains(reason))
}
