//! Which backend serves a core, chosen at run time, and the entry into its loop.

use crate::acceptor::Acceptor;
use crate::clock::Clock;
use crate::core_loop::CoreLoop;
use crate::dialer::Dialer;
use crate::disk_thread::Wake;
use crate::driver::Driver;
use crate::epoll::Epoll;
use crate::handover::{Arrivals, Exit};
use crate::listener::Listener;
use crate::log_files::{LogFiles, LogFilesConfig};
use crate::mailbox::Mailbox;
use crate::named_files::NamedFiles;
use crate::thread::pin_current_thread;
use crate::uring::{self, Uring};
use base::limits::CONNECTIONS_PER_CORE_MAX;
use base::street::Machine;
use rustix::net::SocketFlags;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What the operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// io_uring where it works, else epoll.
    #[default]
    Auto,
    /// io_uring or not at all.
    Uring,
    /// epoll.
    Epoll,
}

/// What a core runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBackend {
    /// See [`crate::uring`].
    Uring,
    /// See [`crate::epoll`].
    Epoll,
}

/// io_uring: when the kernel does the work of an operation that became possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TaskWork {
    /// Only while the core waits for it (`IORING_SETUP_DEFER_TASKRUN`).
    #[default]
    Deferred,
    /// At any system call of the core (`IORING_SETUP_COOP_TASKRUN`).
    Cooperative,
}

impl ChosenBackend {
    /// The name for INFO and messages.
    pub fn name(self) -> &'static str {
        match self {
            ChosenBackend::Uring => "io_uring",
            ChosenBackend::Epoll => "epoll",
        }
    }
}

impl Backend {
    /// Decides, by trying. The second value says why io_uring was passed over, if it was wanted.
    ///
    /// # Errors
    /// With the reason, when io_uring is demanded and does not work here.
    pub fn choose(self) -> Result<(ChosenBackend, Option<String>), String> {
        match (self, probe()) {
            (Backend::Epoll, _) => Ok((ChosenBackend::Epoll, None)),
            (_, Ok(())) => Ok((ChosenBackend::Uring, None)),
            (Backend::Auto, Err(reason)) => Ok((ChosenBackend::Epoll, Some(reason))),
            (Backend::Uring, Err(reason)) => Err(reason),
        }
    }
}

/// Whether io_uring works here with everything this crate needs of it, and if not, why.
///
/// # Errors
/// The reason in words for an operator.
pub fn probe() -> Result<(), String> {
    uring::probe()
}

/// What one core needs to run.
pub struct CoreConfig {
    /// What it runs on.
    pub backend: ChosenBackend,
    /// For io_uring only.
    pub task_work: TaskWork,
    /// Its bound sockets.
    pub listeners: Vec<Listener>,
    /// Connections it serves at once; more are told so and closed.
    pub connections_max: usize,
    /// Counts those; for INFO, and one for all cores if shared.
    pub connections_refused: Arc<AtomicU64>,
    /// Where its log lies; without, no disk thread is started and log effects fail.
    pub log: Option<LogFilesConfig>,
    /// The directory of the files that a machine writes, replaces and reads by name: a manager's is the data directory, which is
    /// locked by this process.
    /// Without, no disk thread is started for them and their effects fail.
    pub files: Option<PathBuf>,
    /// Where connections go that are handed over; without, nobody takes any.
    pub exit: Exit,
    /// Those that another process hands over.
    pub arrivals: Option<Arrivals>,
    /// The CPU to stay on.
    pub cpu: Option<usize>,
}

impl CoreConfig {
    /// A core with these sockets, no log, no files, not pinned.
    pub fn new(backend: ChosenBackend, listeners: Vec<Listener>) -> CoreConfig {
        let task_work = TaskWork::default();
        CoreConfig {
            backend,
            task_work,
            listeners,
            connections_max: CONNECTIONS_PER_CORE_MAX,
            connections_refused: Arc::default(),
            log: None,
            files: None,
            exit: Exit::default(),
            arrivals: None,
            cpu: None,
        }
    }
}

/// Runs one core on the calling thread until its machine stops; gives the machine back.
///
/// # Errors
/// When the operating system refuses what the loop cannot do without (memory, descriptors, waiting itself).
pub fn run_core<M: Machine>(config: CoreConfig, machine: M, mailbox: Mailbox<M::Message>) -> io::Result<M> {
    let doorbell = Arc::clone(mailbox.doorbell());
    let wake: Wake = {
        let doorbell = Arc::clone(&doorbell);
        Arc::new(move || doorbell.ring())
    };
    let log = config.log.map(|log| LogFiles::start(log, mailbox.core(), Arc::clone(&wake))).transpose()?;
    let files = config.files.map(|directory| NamedFiles::start(directory, mailbox.core(), wake)).transpose()?;
    // After the disk threads were started, which would otherwise be kept on this core's CPU too.
    if let Some(cpu) = config.cpu {
        pin_current_thread(cpu)?;
    }
    let accepted = match config.backend {
        ChosenBackend::Uring => SocketFlags::empty(),
        // io_uring waits by itself; epoll must not be made to wait.
        ChosenBackend::Epoll => SocketFlags::NONBLOCK,
    };
    let acceptor = Acceptor::new(config.listeners, accepted, config.connections_refused);
    let around = Around { log, files, exit: config.exit, arrivals: config.arrivals };
    match config.backend {
        ChosenBackend::Uring => {
            let driver = Uring::new(config.task_work, acceptor, config.connections_max, doorbell)?;
            enter(driver, machine, mailbox, around)
        }
        ChosenBackend::Epoll => {
            let driver = Epoll::new(acceptor, config.connections_max, &doorbell)?;
            enter(driver, machine, mailbox, around)
        }
    }
}

fn enter<D: Driver, M: Machine>(driver: D, machine: M, mailbox: Mailbox<M::Message>, around: Around) -> io::Result<M> {
    let dialer = Dialer::new(Arc::clone(mailbox.doorbell()));
    let Around { log, files, exit, arrivals } = around;
    CoreLoop { driver, machine, mailbox, log, files, dialer, exit, arrivals, clock: Clock::new() }.run()
}

/// What a loop has beside its driver and its machine.
struct Around {
    log: Option<LogFiles>,
    files: Option<NamedFiles>,
    exit: Exit,
    arrivals: Option<Arrivals>,
}
