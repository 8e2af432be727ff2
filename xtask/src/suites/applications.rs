//! The suite `applications`: Django, Express, Spring and redis-py, none of which knows of a proxy, before one.

use super::outside::{BACKENDS, maven_classpath, npm_folder, path_text, program};
use super::{Company, Suite, Turn, commit_number};
use crate::{needs, workspace};

/// Where their sources are, and below the folder of clients what is built of them.
const SOURCES: &str = "tests/clients/applications";

/// Stock applications, directly and through the proxy, and while the primary of their store is killed.
pub const APPLICATIONS: Suite = Suite {
    name: "applications",
    about: "Django, connect-redis and Spring before Zerohop and Valkey, redis-py's locks, `limits` and pub/sub before Valkey: through the proxy as directly, and while a primary is killed",
    needs: &[&needs::VALKEY, &needs::PYTHON, &needs::APPLICATIONS, &needs::NODE, &needs::JAVA],
    budget_seconds: 240,
    turn: Turn::Shard("applications"),
    company: Company::SideBySide,
    run: |context| {
        let zerohop = path_text(&context.zerohop()?);
        let modules = npm_folder(context, &format!("{SOURCES}/express"), "express")?.join("node_modules");
        let classpath = maven_classpath(context, &format!("{SOURCES}/spring"), "spring")?;
        let python = path_text(&needs::applications_python());
        // Both backends in every run would be over the budget.
        let backend = BACKENDS[usize::from(commit_number(&context.commit) % 2 == 1)];
        let mut command = context.command(&path_text(&workspace::checked_program("proof")?));
        command.args(["applications", "--zerohop", &zerohop, "--io", backend]);
        command.args(["--valkey-server", &program("valkey-server")?, "--python", &python]);
        command.args(["--node-modules", &path_text(&modules), "--classpath", &classpath]);
        println!("on {backend}:");
        context.counted(&mut command)
    },
};
