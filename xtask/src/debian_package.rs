//! The Debian package: binary, unit files and licence, packed by dpkg-deb without root.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, needs, process, workspace};

/// The unit whose command the check starts.
const UNIT: &str = "usr/lib/systemd/system/zerohop.service";

/// Packs `binary` into `output`; `None` where there is no dpkg-deb.
pub fn build(binary: &Path, output: &Path) -> Outcome<Option<PathBuf>> {
    let Some(dpkg_deb) = needs::find("dpkg-deb") else { return Ok(None) };
    let tree = output.join("debian-tree");
    lay_out(&tree, binary).map_err(|error| format!("{}: {error}", tree.display()))?;
    let package = output.join(format!("zerohop_{}_amd64.deb", env!("CARGO_PKG_VERSION")));
    process::output(Command::new(dpkg_deb).args(["--root-owner-group", "--build"]).arg(&tree).arg(&package))?;
    Ok(Some(package))
}

/// The package's tree, made anew.
fn lay_out(tree: &Path, binary: &Path) -> std::io::Result<()> {
    if tree.exists() {
        std::fs::remove_dir_all(tree)?;
    }
    let root = workspace::root();
    let files = [
        (binary.to_path_buf(), "usr/bin/zerohop"),
        (root.join("packaging/zerohop.service"), UNIT),
        (root.join("packaging/zerohop@.service"), "usr/lib/systemd/system/zerohop@.service"),
        (root.join("LICENSE"), "usr/share/doc/zerohop/copyright"),
    ];
    for (from, to) in files {
        let to = tree.join(to);
        std::fs::create_dir_all(to.parent().expect("every packaged path has a folder"))?;
        std::fs::copy(from, to)?;
    }
    std::fs::create_dir_all(tree.join("DEBIAN"))?;
    std::fs::write(tree.join("DEBIAN/control"), control())
}

fn control() -> String {
    format!(
        "Package: zerohop\nVersion: {}\nArchitecture: amd64\nMaintainer: The Zerohop maintainers <zerohop@localhost>\n\
         Section: database\nPriority: optional\nDescription: Redis-compatible key-value store, one thread per core\n \
         The unit zerohop.service serves 127.0.0.1:6379 with data in /var/lib/zerohop;\n zerohop@PORT.service serves \
         further stores.\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Unpacks `package` into the empty folder `root` as systemd would find it; the command of its unit.
pub fn unpack(package: &Path, root: &Path) -> Outcome<Vec<String>> {
    process::output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(root))?;
    let unit = std::fs::read_to_string(root.join(UNIT)).map_err(|error| format!("{UNIT}: {error}"))?;
    if let Some(state) = value(&unit, "StateDirectory") {
        let folder = root.join("var/lib").join(state);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let command = value(&unit, "ExecStart").ok_or("the unit has no ExecStart")?;
    Ok(command.split_whitespace().map(str::to_owned).collect())
}

/// The value of `key=` in a unit file.
fn value<'a>(unit: &'a str, key: &str) -> Option<&'a str> {
    unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::{control, value};

    #[test]
    fn the_control_file_is_well_formed() {
        let control = control();
        assert!(control.ends_with('\n'));
        let mut lines = control.lines();
        assert!(lines.all(|line| line.starts_with(' ') || line.contains(": ")), "{control}");
    }

    #[test]
    fn unit_values_are_found() {
        assert_eq!(value("[Service]\nExecStart=/a b\nExecStartPre=c\n", "ExecStart"), Some("/a b"));
        assert_eq!(value("[Service]\n", "ExecStart"), None);
    }
}
