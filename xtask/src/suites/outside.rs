//! Suites that judge the running binary from outside: splits, hostile clients, real clients, real data.

use std::path::Path;
use std::process::Command;

use super::{Company, Context, Counts, Suite, Turn};
use crate::{Outcome, needs, process, workspace};

/// Backends that everything runs on.
pub(super) const BACKENDS: [&str; 2] = ["epoll", "uring"];
/// Every two-way cut of 2,000 requests.
pub const SPLIT: Suite = Suite {
    name: "split",
    about: "2,000 requests cut at every byte, and their stream at random, answered as uncut; both backends and personalities",
    needs: &[&needs::REDIS],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let redis = program("redis-server")?;
        on_every_backend(context, |backend, proof| {
            // One core, so that a round trip on another connection proves that the first part was read.
            let mut command = with_server(context, (backend, "1"), proof)?;
            command.args([proof.as_str(), "split", "--redis-server", &redis]);
            command.args(["--target", "127.0.0.1:{port}", "--target", "127.0.0.1:{cluster}"]);
            context.counted(&mut command)
        })
    },
};

/// Users and what they may do.
pub const ACL: Suite = Suite {
    name: "acl",
    about: "600 conversations about users, their rules and refusals, answered as Valkey answers them; the file of users; both backends",
    needs: &[&needs::VALKEY],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let (zerohop, valkey) = (path_text(&context.zerohop()?), program("valkey-server")?);
        on_every_backend(context, |backend, proof| {
            let mut command = context.command(proof);
            command.args(["acl", "--zerohop", &zerohop, "--io", backend, "--valkey-server", &valkey]);
            context.counted(&mut command)
        })
    },
};

/// The CVE checklist.
pub const HOSTILE: Suite = Suite {
    name: "hostile",
    about: "the rows of the CVE checklist that apply to one node: input, memory before login, back-pressure, bounds; both backends",
    needs: &[],
    budget_seconds: 120,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let zerohop = path_text(&context.zerohop()?);
        on_every_backend(context, |backend, proof| {
            context.counted(context.command(proof).args(["hostile", "--zerohop", &zerohop, "--io", backend]))
        })
    },
};

/// The machine's package index, killed in the middle of a load.
pub const PACKAGE_INDEX: Suite = Suite {
    name: "package-index",
    about: "the Debian package index loaded by redis-cli --pipe, killed in a second load, restarted, compared record by record",
    needs: &[&needs::REDIS],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let (zerohop, redis_cli) = (path_text(&context.zerohop()?), program("redis-cli")?);
        on_every_backend(context, |backend, proof| {
            let mut command = context.command(proof);
            command.args(["package-index", "--zerohop", &zerohop, "--io", backend, "--durability", "interval"]);
            context.counted(command.args(["--redis-cli", &redis_cli]))
        })
    },
};

/// redis-py and valkey-glide.
pub const PYTHON_CLIENTS: Suite = Suite {
    name: "clients-python",
    about: "redis-py and valkey-glide, plain and cluster",
    needs: &[&needs::PYTHON, &needs::REDIS_PY],
    budget_seconds: 30,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let python = path_text(&needs::python());
        beside_server(context, &[&python, "tests/clients/python/client.py"])
    },
};

/// redis-py's own tests.
pub const REDIS_PY: Suite = Suite {
    name: "redis-py",
    about: "redis-py's own tests of the commands that exist, on one core",
    needs: &[&needs::PYTHON, &needs::REDIS_PY],
    budget_seconds: 60,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        let folder = path_text(&clients_folder().join("redis-py"));
        let python = path_text(&needs::python());
        let proof = proof()?;
        // One core: it asks what each command answers; the scripts of the other clients run on several.
        let mut command = with_server(context, ("auto", "1"), &proof)?;
        command.args([&python, "tests/clients/python/redis_py_suite.py", &folder, "{host}", "{port}"]);
        context.counted(&mut command)
    },
};

/// go-redis.
pub const GO_CLIENT: Suite = Suite {
    name: "clients-go",
    about: "go-redis, plain and cluster",
    needs: &[&needs::GO],
    budget_seconds: 90,
    turn: Turn::Shard("clients"),
    company: Company::SideBySide,
    run: |context| {
        let binary = path_text(&clients_folder().join("go-client"));
        let mut build = context.command("go");
        build.args(["build", "-C", "tests/clients/go", "-o", &binary, "."]);
        step(&mut build)?;
        beside_server(context, &[&binary])
    },
};

/// ioredis and node-redis.
pub const NODE_CLIENTS: Suite = Suite {
    name: "clients-node",
    about: "ioredis and node-redis, plain and cluster",
    needs: &[&needs::NODE],
    budget_seconds: 60,
    turn: Turn::Shard("clients"),
    company: Company::SideBySide,
    run: |context| {
        let folder = npm_folder(context, "tests/clients/node", "node")?;
        let script = folder.join("client.mjs");
        std::fs::copy(context.root.join("tests/clients/node/client.mjs"), &script).map_err(|e| e.to_string())?;
        beside_server(context, &["node", &path_text(&script)])
    },
};

/// jedis and lettuce.
pub const JAVA_CLIENTS: Suite = Suite {
    name: "clients-java",
    about: "jedis and lettuce, plain and cluster",
    needs: &[&needs::JAVA],
    budget_seconds: 120,
    turn: Turn::Shard("clients"),
    company: Company::SideBySide,
    run: |context| {
        let classpath = maven_classpath(context, "tests/clients/java", "java")?;
        beside_server(context, &["java", "-cp", &classpath, "Client"])
    },
};

/// redis-rs.
pub const RUST_CLIENT: Suite = Suite {
    name: "clients-rust",
    about: "redis-rs, plain and cluster",
    needs: &[],
    budget_seconds: 120,
    turn: Turn::Shard("clients"),
    company: Company::SideBySide,
    run: |context| {
        let folder = clients_folder().join("rust");
        let mut build = workspace::cargo();
        build
            .args(["build", "--quiet", "--manifest-path", "tests/clients/rust/Cargo.toml", "--target-dir"])
            .arg(&folder);
        step(&mut build)?;
        beside_server(context, &[&path_text(&folder.join("debug/client"))])
    },
};

/// A folder with the modules that a program in JavaScript names.
pub(super) fn npm_folder(context: &Context, source: &str, name: &str) -> Outcome<std::path::PathBuf> {
    let folder = clients_folder().join(name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(context.root.join(source).join(file), folder.join(file)).map_err(|e| e.to_string())?;
    }
    step(context.command("npm").args(["ci", "--silent", "--prefix", &path_text(&folder)]))?;
    Ok(folder)
}

/// Where the classes of a program in Java are that Maven compiles, and all that it names.
pub(super) fn maven_classpath(context: &Context, source: &str, name: &str) -> Outcome<String> {
    let folder = clients_folder().join(name);
    let list = folder.join("classpath.txt");
    let mut build = context.command("mvn");
    build.args(["-q", "-B", "-f", &format!("{source}/pom.xml"), "compile", "dependency:build-classpath"]);
    build.arg(format!("-DbuildDirectory={}", folder.display())).arg(format!("-Dmdep.outputFile={}", list.display()));
    step(&mut build)?;
    let libraries = std::fs::read_to_string(&list).map_err(|error| error.to_string())?;
    Ok(format!("{}:{}", folder.join("classes").display(), libraries.trim()))
}

pub(super) fn clients_folder() -> std::path::PathBuf {
    workspace::target_folder().join("clients")
}

pub(super) fn path_text(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn program(name: &str) -> Outcome<String> {
    needs::find(name).map(|path| path_text(&path)).ok_or_else(|| format!("{name} is not there"))
}

fn step(command: &mut Command) -> Outcome<()> {
    if process::shown(command)? { Ok(()) } else { Err(format!("`{}` failed", process::describe(command))) }
}

fn proof() -> Outcome<String> {
    workspace::checked_program("proof").map(|program| path_text(&program))
}

pub(super) fn on_every_backend(context: &Context, run: impl Fn(&str, &String) -> Outcome<Counts>) -> Outcome<Counts> {
    context.zerohop()?;
    let proof = proof()?;
    let mut counts = Counts::default();
    for backend in BACKENDS {
        println!("on {backend}:");
        counts.add(run(backend, &proof)?);
    }
    Ok(counts)
}

/// A command that runs what follows beside a server.
pub(super) fn with_server(context: &Context, (backend, cores): (&str, &str), proof: &str) -> Outcome<Command> {
    let mut command = context.command(proof);
    command.args([
        "with-server",
        "--zerohop",
        &path_text(&context.zerohop()?),
        "--io",
        backend,
        "--cores",
        cores,
        "--",
    ]);
    Ok(command)
}

/// Runs a client program with host, plain port and cluster port as its last arguments.
fn beside_server(context: &Context, program: &[&str]) -> Outcome<Counts> {
    let proof = proof()?;
    let mut command = with_server(context, ("auto", "2"), &proof)?;
    command.args(program).args(["{host}", "{port}", "{cluster}"]);
    context.counted(&mut command)
}
