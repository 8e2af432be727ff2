//! A virtual machine: started with a server in it, watched through its console, ended as the power ends a machine.

use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ports::PortBlock;

use super::disk::{BLOCK_BYTES, Disk};
use super::nbd;

/// The server's port inside.
pub const PORT: u16 = 6379;
/// Memory, MiB: the page cache of the load and a server.
const MEMORY_MIB: u32 = 768;
/// Processors: as many as the reference machine has.
const PROCESSORS: u32 = 2;
/// What the guest prints when something ends that should not.
const ENDED: &str = "guest: ended with ";

/// What a machine is made of.
#[derive(Clone, Debug)]
pub struct Machine {
    /// QEMU.
    pub qemu: String,
    /// The kernel's image.
    pub kernel: String,
    /// A root with the server, its libraries and the guest's `init`.
    pub initramfs: String,
}

/// A machine that has power.
pub struct Guest {
    child: Child,
    console: PathBuf,
    socket: PathBuf,
    disk_thread: Option<JoinHandle<()>>,
    /// `host:port` of the server in it, once that is ready.
    pub address: String,
    /// Of that port.
    _block: PortBlock,
}

impl Guest {
    /// Starts a machine on `disk`; `variables` reach its `init`, and what it prints goes to the file `console`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn boot(
        machine: &Machine,
        disk: &Arc<Mutex<Disk>>,
        variables: &[(&str, String)],
        console: &Path,
    ) -> io::Result<Guest> {
        let socket = console.with_file_name("disk.socket");
        let disk_thread = Some(attach(&socket, disk)?);
        let block = PortBlock::take()?;
        let port = block.first();
        let output = fs::File::create(console)?;
        let mut command = Command::new(&machine.qemu);
        // Emulated and not virtualised: the same machine wherever the campaign runs.
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-M", "q35", "-accel", "tcg", "-cpu", "max"]);
        command.args(["-display", "none", "-serial", "stdio"]);
        command.args(["-smp", &PROCESSORS.to_string(), "-m", &MEMORY_MIB.to_string()]);
        command.args(["-kernel", &machine.kernel, "-initrd", &machine.initramfs, "-append", &kernel_line(variables)]);
        command.arg("-blockdev");
        command.arg(format!("driver=nbd,node-name=disk,server.type=unix,server.path={}", socket.display()));
        command.arg("-device");
        command.arg(format!(
            "virtio-blk-pci,drive=disk,write-cache=on,logical_block_size={BLOCK_BYTES},physical_block_size={BLOCK_BYTES}"
        ));
        let host = Ipv4Addr::LOCALHOST;
        command.args(["-netdev", &format!("user,id=net,restrict=on,hostfwd=tcp:{host}:{port}-:{PORT}")]);
        command.args(["-device", "virtio-net-pci,netdev=net,romfile="]);
        let child = command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output).spawn();
        let child = child.inspect_err(|_| detach(&socket))?;
        let address = format!("{host}:{port}");
        Ok(Guest { child, console: console.to_path_buf(), socket, disk_thread, address, _block: block })
    }

    /// What it has printed.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.console).unwrap_or_default()).into_owned()
    }

    /// Whether it runs, and nothing in it has ended that should not.
    pub fn is_well(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None)) && !self.output().contains(ENDED)
    }

    /// Asks for a clean stop of the server, and does not wait.
    ///
    /// # Errors
    /// When the machine is gone.
    pub fn stop(&mut self) -> io::Result<()> {
        self.child.stdin.as_mut().expect("it was piped").write_all(b"stop\n")
    }

    /// With which status the server ended, once it has.
    pub fn ended_with(&self) -> Option<String> {
        let output = self.output();
        let (_, status) = output.split_once(ENDED)?;
        Some(status.split_once('\r')?.0.to_owned())
    }

    /// The last tick it has printed.
    pub fn tick(&self) -> u64 {
        last_tick(&self.output())
    }

    /// Ends it as the power does; nothing of it is alive afterwards.
    pub fn end(&mut self) {
        // Already gone is as good as killed.
        drop(self.child.kill());
        drop(self.child.wait());
        detach(&self.socket);
        if let Some(thread) = self.disk_thread.take() {
            thread.join().expect("no panic");
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

/// A thread that serves the disk to the first one who connects.
fn attach(socket: &Path, disk: &Arc<Mutex<Disk>>) -> io::Result<JoinHandle<()>> {
    if socket.exists() {
        fs::remove_file(socket)?;
    }
    let (listener, disk) = (UnixListener::bind(socket)?, Arc::clone(disk));
    Ok(thread::spawn(move || {
        // A machine that dies breaks its connection off: that is what it is here for.
        drop(listener.accept().and_then(|(stream, _)| nbd::serve(stream, &disk)));
    }))
}

/// Wakes a thread to which no machine came.
fn detach(socket: &Path) {
    drop(UnixStream::connect(socket));
}

/// What the kernel does not know becomes the environment of `init`.
fn kernel_line(variables: &[(&str, String)]) -> String {
    let given: String = variables.iter().map(|(name, value)| format!(" {name}=\"{value}\"")).collect();
    format!("console=ttyS0 quiet panic=-1 mitigations=off{given}")
}

fn last_tick(output: &str) -> u64 {
    // The last line may not be whole.
    let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().rev().find_map(|line| line.strip_prefix("tick ")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{kernel_line, last_tick};

    #[test]
    fn the_last_whole_tick_counts() {
        assert_eq!(last_tick("guest: up\r\ntick 1\r\nready\r\ntick 12\r\ntick 13"), 12);
        assert_eq!(last_tick("tick 1"), 0);
    }

    #[test]
    fn variables_are_quoted() {
        let line = kernel_line(&[("SERVE", "/bin/zerohop serve".to_owned()), ("PLANTED_BUG", "M1".to_owned())]);
        assert!(line.ends_with(" SERVE=\"/bin/zerohop serve\" PLANTED_BUG=\"M1\""), "{line}");
    }
}
