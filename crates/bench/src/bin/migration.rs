//! Migrations under a load that saturates, as a program: every way in turn, a line of JSON for each migration.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use bench::cluster::Place;
use bench::cluster::zerohop::{Setup, Zerohop};
use bench::migration::product::Product;
use bench::migration::subject::Pair;
use bench::migration::{Arm, Cell, Plan, run};
use bench::program::{Room, end, seconds};
use clap::Parser;
use serde_json::json;

/// The program beside this one that is an end.
const END: &str = "migration-end";

#[derive(Parser)]
#[command(
    name = "migration",
    about = "Move all keys under a load that saturates, in every way, and report what clients got"
)]
struct Arguments {
    #[command(flatten)]
    room: Room,
    /// The program zerohop; without it only the pair is measured
    #[arg(long)]
    zerohop: Option<PathBuf>,
    /// SETs in a hundred, the source's rate in hundredths, and for a load that does not saturate its hundredths of that: 10:70, 10:100:30
    #[arg(long = "cell", value_parser = cell, required = true)]
    cells: Vec<Cell>,
    /// Only these arms, as their lines name them
    #[arg(long = "arm")]
    arms: Vec<String>,
    /// Migrations of each arm in each cell, in turn
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Pairs
    #[arg(long, default_value_t = 2_000_000)]
    keys: u32,
    /// Operations a second that the destination serves
    #[arg(long, default_value_t = 20_000.0)]
    rate: f64,
    /// Seconds that a migration of the pair takes
    #[arg(long, default_value_t = 6.0)]
    length: f64,
    /// The part of the destination's rate that copying costs at either end
    #[arg(long, default_value_t = 0.1)]
    copying: f64,
    /// Workers, each with a client
    #[arg(long, default_value_t = 64)]
    workers: usize,
    /// Pieces of who migrates in pieces
    #[arg(long, default_value_t = 1000)]
    pieces: u32,
    /// Orders in which Zerohop moves slots in pieces
    #[arg(long, default_value_t = 16)]
    orders: u32,
    /// Seconds of load before each
    #[arg(long, default_value_t = 1.0)]
    steady: f64,
    /// What an acknowledged write of Zerohop survives: interval or commit
    #[arg(long, default_value = "interval")]
    durability: String,
    /// Milliseconds of a lease of Zerohop, where its own are too short for the machine
    #[arg(long)]
    lease_ms: Option<u32>,
}

fn main() -> ExitCode {
    end("migration", Arguments::parse().run())
}

fn cell(text: &str) -> Result<Cell, String> {
    let numbers: Vec<u32> = text
        .split(':')
        .map(|part| part.parse().map_err(|_| format!("{part} is no number")))
        .collect::<Result<_, _>>()?;
    let (write_percent, budget_percent, load_percent) = match numbers[..] {
        [write, budget] => (write, budget, None),
        [write, budget, load] => (write, budget, Some(load)),
        _ => return Err("two or three numbers are expected".to_owned()),
    };
    let is_in = |percent: u32| (1..=100).contains(&percent);
    match write_percent <= 100 && is_in(budget_percent) && load_percent.is_none_or(is_in) {
        true => Ok(Cell { write_percent, budget_percent, load_percent }),
        false => Err("they are parts of a hundred".to_owned()),
    }
}

impl Arguments {
    fn plan(&self) -> Result<Plan, String> {
        let is_good = self.rate > 0.0 && self.workers > 0 && self.keys as usize >= self.workers && self.length > 0.0;
        let least = self.cells.iter().map(|cell| cell.budget_percent).min().unwrap_or(100);
        if !is_good || !(0.0..f64::from(least) / 100.0).contains(&self.copying) {
            return Err(
                "--rate, --workers, --keys and --length are above 0, --copying is below each source's rate".to_owned()
            );
        }
        Ok(Plan {
            keys: self.keys,
            workers: self.workers,
            per_second: self.rate,
            length: seconds(self.length)?,
            copying: self.copying,
            pieces: self.pieces,
            orders: self.orders,
            steady: seconds(self.steady)?,
        })
    }

    fn run(&self) -> Result<(), String> {
        let plan = self.plan()?;
        let place = Place::new(&self.room.directory)?;
        let program = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
        let command = |port: u16| {
            let mut command = Command::new(program.with_file_name(END));
            command.args(["--port", &port.to_string()]);
            command
        };
        let mut pair = Pair::start(command, self.room.port)?;
        let mut product = None;
        if let Some(program) = &self.zerohop {
            let options = vec!["--durability".to_owned(), self.durability.clone()];
            let setup = Setup { lease_ms: self.lease_ms, options, ..Setup::default() };
            let store = Zerohop::start(program, &setup, &place.at("zerohop"), self.room.port + 2)?;
            product = Some(Product::new(store, plan.keys)?);
        }
        product.iter().for_each(|product| println!("{}", json!({ "store": product.name() })));
        let mut arms = Arm::OF_PAIR.to_vec();
        arms.extend(product.iter().flat_map(|_| Arm::OF_PRODUCT));
        arms.retain(|arm| self.arms.is_empty() || self.arms.iter().any(|name| json!(arm) == json!(name)));
        for round in 0..self.rounds {
            for cell in &self.cells {
                for step in 0..arms.len() {
                    // Each begins as often as the others.
                    let arm = arms[(round + step) % arms.len()];
                    let seen = match &mut product {
                        Some(product) if Arm::OF_PRODUCT.contains(&arm) => run(product, arm, *cell, &plan),
                        _ => run(&mut pair, arm, *cell, &plan),
                    };
                    let Cell { write_percent, budget_percent, load_percent } = cell;
                    let seen = seen.map_err(|problem| format!("{arm:?}: {problem}"))?;
                    println!(
                        "{}",
                        json!({ "slice": { "write_percent": write_percent, "budget_percent": budget_percent,
                        "load_percent": load_percent, "seen": seen } })
                    );
                }
            }
        }
        Ok(())
    }
}
