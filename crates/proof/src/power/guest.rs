//! A virtual machine: started with a server in it, watched through its console, ended as the power ends a machine.

use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::console::{self, ENDED};
use super::disk::{BLOCK_BYTES, Disk};
use super::nbd;

/// Memory, MiB: the page cache of the load and a server.
const MEMORY_MIB: u32 = 768;
/// Processors: as many as the reference machine has.
const PROCESSORS: u32 = 2;

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

/// A port of this machine that leads to one inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Here, on the loopback address.
    pub outside: u16,
    /// There.
    pub inside: u16,
}

/// A disk that a thread serves at a socket.
struct Attached {
    socket: PathBuf,
    thread: JoinHandle<()>,
}

/// A machine that has power.
pub struct Guest {
    child: Child,
    console: PathBuf,
    disks: Vec<Attached>,
}

impl Guest {
    /// Starts a machine on the parts of `disk` that is reached by `forwards`; `variables` reach its `init`, and what it prints goes to the
    /// file `console`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn boot(
        machine: &Machine,
        (disk, parts): (&Arc<Mutex<Disk>>, u64),
        (variables, forwards): (&[(&str, String)], &[Forward]),
        console: &Path,
    ) -> io::Result<Guest> {
        let socket = |part| console.with_file_name(format!("disk-{part}.socket"));
        let disks = (0..parts).map(|part| attach(socket(part), disk, part)).collect::<io::Result<Vec<_>>>()?;
        let output = fs::File::create(console)?;
        let mut command = Command::new(&machine.qemu);
        // Emulated and not virtualised: the same machine wherever the campaign runs.
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-M", "q35", "-accel", "tcg", "-cpu", "max"]);
        command.args(["-display", "none", "-serial", "stdio"]);
        command.args(["-smp", &PROCESSORS.to_string(), "-m", &MEMORY_MIB.to_string()]);
        command.args(["-kernel", &machine.kernel, "-initrd", &machine.initramfs, "-append", &kernel_line(variables)]);
        for (number, Attached { socket, .. }) in disks.iter().enumerate() {
            let path = socket.display();
            command
                .args(["-blockdev", &format!("driver=nbd,node-name=disk{number},server.type=unix,server.path={path}")]);
            command.args(["-device", &device(number)]);
        }
        command.args(["-netdev", &network(forwards)]);
        command.args(["-device", "virtio-net-pci,netdev=net,romfile="]);
        let child = command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output).spawn();
        let child = child.inspect_err(|_| disks.iter().for_each(detach))?;
        Ok(Guest { child, console: console.to_path_buf(), disks })
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

    /// The last tick it has printed.
    pub fn tick(&self) -> u64 {
        console::last_tick(&self.output())
    }

    /// Ends it as the power does; nothing of it is alive afterwards.
    pub fn end(&mut self) {
        // Already gone is as good as killed.
        drop(self.child.kill());
        drop(self.child.wait());
        for disk in self.disks.drain(..) {
            detach(&disk);
            disk.thread.join().expect("no panic");
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

/// A thread that serves a part of the disk to the first one who connects.
fn attach(socket: PathBuf, disk: &Arc<Mutex<Disk>>, part: u64) -> io::Result<Attached> {
    if socket.exists() {
        fs::remove_file(&socket)?;
    }
    let (listener, disk) = (UnixListener::bind(&socket)?, Arc::clone(disk));
    let thread = thread::spawn(move || {
        // A machine that dies breaks its connection off: that is what it is here for.
        drop(listener.accept().and_then(|(stream, _)| nbd::serve(stream, &disk, part)));
    });
    Ok(Attached { socket, thread })
}

/// Wakes a thread to which no machine came.
fn detach(disk: &Attached) {
    drop(UnixStream::connect(&disk.socket));
}

/// A disk as the machine has it, with a cache that it has to flush.
fn device(number: usize) -> String {
    let block = format!("logical_block_size={BLOCK_BYTES},physical_block_size={BLOCK_BYTES}");
    format!("virtio-blk-pci,drive=disk{number},write-cache=on,{block}")
}

/// Nothing leads out of the guest but what leads in.
fn network(forwards: &[Forward]) -> String {
    let host = Ipv4Addr::LOCALHOST;
    let ways = forwards.iter().map(|Forward { outside, inside }| format!(",hostfwd=tcp:{host}:{outside}-:{inside}"));
    format!("user,id=net,restrict=on{}", ways.collect::<String>())
}

/// What the kernel does not know becomes the environment of `init`.
fn kernel_line(variables: &[(&str, String)]) -> String {
    let given: String = variables.iter().map(|(name, value)| format!(" {name}=\"{value}\"")).collect();
    // A machine that gets no processor for a while has a timer that seems broken, and its kernel would rather panic.
    format!("console=ttyS0 quiet panic=-1 mitigations=off no_timer_check{given}")
}

#[cfg(test)]
mod tests {
    use super::{Forward, kernel_line, network};

    #[test]
    fn variables_are_quoted() {
        let line = kernel_line(&[("SERVE", "/bin/zerohop serve".to_owned()), ("PLANTED_BUG", "M1".to_owned())]);
        assert!(line.ends_with(" SERVE=\"/bin/zerohop serve\" PLANTED_BUG=\"M1\""), "{line}");
    }

    #[test]
    fn every_port_has_its_way_in() {
        let forwards = [Forward { outside: 10_240, inside: 6379 }, Forward { outside: 7, inside: 8 }];
        let ways = "hostfwd=tcp:127.0.0.1:10240-:6379,hostfwd=tcp:127.0.0.1:7-:8";
        assert_eq!(network(&forwards), format!("user,id=net,restrict=on,{ways}"));
    }
}
