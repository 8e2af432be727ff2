//! The suite of the Python package: its wheel is built and judged, installed as a stranger does, and its tests run on what was installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use ports::PortBlock;

use super::{Company, Context, Counts, Suite, Turn};
use crate::{Outcome, needs, process, wheel, workspace};

/// What a wheel may take, bytes.
const WHEEL_BYTES_MAX: u64 = 15_000_000;

/// In the shard that builds the static binary anyway, which the wheel brings along.
pub const PYTHON: Suite = Suite {
    name: "python",
    about: "the Python package: a wheel of at most 15 MB for manylinux_2_28; its tests, types and examples, on the program in it",
    needs: &[&needs::CLIPPY, &needs::COMPILER, &needs::PYTHON, &needs::WHEEL_TOOLS],
    budget_seconds: 180,
    turn: Turn::Shard("artefacts"),
    company: Company::SideBySide,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    let mut counts = Counts::one(lints()?);
    let wheel = wheel::build()?;
    counts.add(Counts::one(is_as_promised(&wheel)?));
    let installed = install(&wheel)?;
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut tests = context.command(&needs::wheel_python().display().to_string());
    let program = installed.join("bin/zerohop");
    // In one word each: pytest takes a path that stands alone for a folder of tests.
    tests.args(["-m", "pytest", &format!("--port={}", block.first()), &format!("--program={}", program.display())]);
    // Not the folder of the sources, which has no extension module: the tests are to find what was installed.
    tests.current_dir(context.root.join("python/tests")).env("PYTHONPATH", &installed);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    counts.add(context.counted(&mut tests)?);
    Ok(counts)
}

/// Clippy, which the workspace's own suite does not ask about this package.
fn lints() -> Outcome<bool> {
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--quiet", "--locked", "--manifest-path", "python/Cargo.toml", "--all-targets"]);
    clippy.arg("--target-dir").arg(workspace::tools_folder().join("wheel-build")).args(["--", "-D", "warnings"]);
    process::shown(&mut clippy)
}

fn is_as_promised(wheel: &Path) -> Outcome<bool> {
    let bytes = std::fs::metadata(wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {bytes} bytes of at most {WHEEL_BYTES_MAX}");
    Ok(bytes <= WHEEL_BYTES_MAX && name.ends_with(&format!("-abi3-{}.whl", wheel::PLATFORM)))
}

/// Installs it alone into an empty folder, as pip does for anybody: pip refuses what is not for this system.
fn install(wheel: &Path) -> Outcome<PathBuf> {
    let folder = workspace::tools_folder().join("wheel-installed");
    if let Err(error) = std::fs::remove_dir_all(&folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(format!("{}: {error}", folder.display()));
    }
    let mut pip = Command::new(needs::wheel_python());
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]).arg(&folder).arg(wheel);
    process::output(&mut pip)?;
    Ok(folder)
}
