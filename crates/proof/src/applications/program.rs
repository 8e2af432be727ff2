//! One application as a process: told where its store is as its page says, tried, and then serving users.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use ports::PortBlock;

use super::ApplicationsArguments;
use super::stores::Shape;
use super::{http, page};
use crate::process::new_directory;

/// Of what an application complained, what is shown when something is wrong.
const ERRORS_BYTES_MAX: usize = 6000;

/// The applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Kind {
    /// Django's own cache and sessions.
    Django,
    /// Sessions of Express by connect-redis.
    Express,
    /// The cache of Spring by lettuce.
    Spring,
    /// Locks, rate limits and pub/sub by redis-py.
    RedisPy,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Django, Kind::Express, Kind::Spring, Kind::RedisPy];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Django => "django",
            Kind::Express => "express",
            Kind::Spring => "spring",
            Kind::RedisPy => "redis-py",
        }
    }

    /// What the page calls it.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Kind::Django => "Django",
            Kind::Express => "Express with connect-redis",
            Kind::Spring => "Spring Boot",
            Kind::RedisPy => "redis-py and limits",
        }
    }

    /// Locks and limits are scripts, and subscribers want pub/sub.
    pub(super) fn works_with(self, shape: Shape) -> bool {
        self != Kind::RedisPy || !shape.is_zerohop()
    }

    fn settings_file(self) -> &'static str {
        match self {
            Kind::Django | Kind::RedisPy => "store.py",
            Kind::Express => "store.mjs",
            Kind::Spring => "application.properties",
        }
    }

    fn command(self, arguments: &ApplicationsArguments, (home, port): (&Path, u16)) -> io::Result<Command> {
        let source = std::path::absolute(arguments.sources.join(self.name()))?;
        // It ends with the thread that started it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).current_dir(home);
        match self {
            Kind::Django | Kind::RedisPy => {
                command.arg(std::path::absolute(&arguments.python)?).arg(source.join("application.py"));
                command.env("PYTHONPATH", home).env("PYTHONDONTWRITEBYTECODE", "1").arg(port.to_string());
            }
            Kind::Express => {
                // Modules are looked for beside who imports them.
                fs::copy(source.join("application.mjs"), home.join("application.mjs"))?;
                let modules = std::path::absolute(&arguments.node_modules)?;
                std::os::unix::fs::symlink(modules, home.join("node_modules"))?;
                command.args(["node", "application.mjs"]).arg(port.to_string());
            }
            Kind::Spring => {
                // It starts often and lives for seconds.
                command.args(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", &arguments.classpath]);
                command.args(["shop.Application", "--spring.config.location=file:application.properties"]);
                command.args(["--spring.main.banner-mode=off", "--logging.level.root=warn"]);
                command.arg(format!("--server.port={port}"));
            }
        }
        Ok(command)
    }
}

/// See the module; ended with the value.
pub(super) struct Program {
    pub(super) kind: Kind,
    /// Where it serves users.
    pub(super) port: u16,
    /// What its steps gave.
    pub(super) said: Vec<String>,
    child: Child,
    home: PathBuf,
    _block: PortBlock,
}

impl Program {
    /// Starts it on a store at that port, and waits until it has tried all its steps.
    pub(super) fn start(
        arguments: &ApplicationsArguments,
        kind: Kind,
        store: u16,
        shape: Shape,
    ) -> io::Result<Program> {
        let (block, home) = (PortBlock::take()?, new_directory()?);
        let text = fs::read_to_string(&arguments.page)?;
        let shown = page::block(&text, kind.heading()).ok_or_else(|| {
            io::Error::other(format!("{} has no code for {}", arguments.page.display(), kind.heading()))
        })?;
        fs::write(home.join(kind.settings_file()), page::settled(shown, store, shape))?;
        let port = block.first();
        let mut command = kind.command(arguments, (&home, port))?;
        let errors = File::create(home.join("errors.txt"))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        let mut program = Program { kind, port, said: Vec::new(), child, home, _block: block };
        let output = program.child.stdout.take().expect("it is piped");
        for line in BufReader::new(output).lines() {
            match line? {
                line if line == "ready" => return Ok(program),
                line => program.said.push(line),
            }
        }
        let why = program.errors();
        Err(io::Error::other(format!("{} ended before it was ready: {:?}\n{why}", kind.name(), program.said)))
    }

    /// Whether it does something of its own before and after others harm its store.
    pub(super) fn has_hooks(&self) -> bool {
        self.kind == Kind::RedisPy
    }

    /// Has it do that; what each step gave.
    pub(super) fn hook(&self, name: &str) -> io::Result<Vec<String>> {
        let answer = http::get(self.port, &format!("/{name}"), None)?;
        let lines = answer.body.lines().map(str::to_owned).collect();
        Ok(if answer.status == 200 { lines } else { vec![format!("{name}: {} {}", answer.status, answer.body)] })
    }

    /// The end of what it complained of.
    pub(super) fn errors(&self) -> String {
        let text = fs::read(self.home.join("errors.txt")).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(ERRORS_BYTES_MAX)..]).into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Who has ended already is of no use either.
        self.child.kill().and_then(|()| self.child.wait()).ok();
        fs::remove_dir_all(&self.home).ok();
    }
}
