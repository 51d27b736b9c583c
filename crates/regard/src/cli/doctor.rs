//! `regard doctor`: description and self-test of this machine.

use super::{Global, Outcome, write_json};
use crate::self_test::{self, SelfTestReport};
use crate::show::table::Table;
use crate::{machine, show::terminal};
use anyhow::{Context, Result, bail};
use clap::Args;
use regard_kernels::pool;
use regard_kernels::simd::{self, Isa};
use serde::Serialize;
use std::io::Write;
use std::process::Command;

/// Show CPU features and test the kernels on this machine
///
/// Lists the CPU, its features, the instruction set of the kernels and the number of threads. The
/// kernels of every instruction set of this CPU compute attention forward and backward for several
/// scores, masks and normalisers, and are compared with a reference in float64. The exit code is 1
/// if one of them is wrong.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regard doctor
  REGARD_ISA=portable regard doctor
  regard doctor --json | jq '.paths[] | select(.available)'")]
pub struct Flags {
    /// Only test the chosen instruction set, in this process
    #[arg(long, hide = true)]
    self_test: bool,
}

#[derive(Serialize)]
struct Findings {
    version: &'static str,
    cpu: String,
    arch: &'static str,
    os: &'static str,
    features: Vec<&'static str>,
    missing_features: Vec<&'static str>,
    cores: usize,
    threads: usize,
    #[serde(rename = "REGARD_NUM_THREADS")]
    env_threads: Option<String>,
    isa: &'static str,
    #[serde(rename = "REGARD_ISA")]
    env_isa: Option<String>,
    paths: Vec<Path>,
    ok: bool,
}

#[derive(Serialize)]
struct Path {
    isa: &'static str,
    lanes: usize,
    available: bool,
    chosen: bool,
    test: Option<SelfTestReport>,
    /// Reason for a missing report, if the test ran.
    failure: Option<String>,
}

pub fn run(flags: Flags, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
    if flags.self_test {
        let report = self_test::run()?;
        write_json(out, &report)?;
        return Ok(if report.ok { Outcome::Positive } else { Outcome::Negative });
    }
    let findings = look();
    if global.json {
        write_json(out, &findings)?;
    } else {
        tell(&findings, out)?;
    }
    Ok(if findings.ok { Outcome::Positive } else { Outcome::Negative })
}

fn look() -> Findings {
    let (have, lack): (Vec<_>, Vec<_>) = machine::features().into_iter().partition(|(_, has)| *has);
    let names = |rows: Vec<(&'static str, bool)>| rows.into_iter().map(|row| row.0).collect();
    let paths: Vec<Path> = Isa::ALL.iter().map(|isa| path(*isa)).collect();
    Findings {
        version: env!("CARGO_PKG_VERSION"),
        cpu: machine::cpu(),
        arch: std::env::consts::ARCH,
        os: std::env::consts::OS,
        features: names(have),
        missing_features: names(lack),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        threads: pool::threads(),
        env_threads: std::env::var("REGARD_NUM_THREADS").ok(),
        isa: simd::isa().name(),
        env_isa: std::env::var("REGARD_ISA").ok(),
        ok: paths.iter().all(|p| !p.available || p.test.as_ref().is_some_and(|t| t.ok)),
        paths,
    }
}

fn path(isa: Isa) -> Path {
    let available = isa.available();
    let tested = available.then(|| test(isa));
    let (test, failure) = match tested {
        Some(Ok(report)) => (Some(report), None),
        Some(Err(error)) => (None, Some(format!("{error:#}"))),
        None => (None, None),
    };
    let (name, lanes) = (isa.name(), isa.lanes());
    Path { isa: name, lanes, available, chosen: isa == simd::isa(), test, failure }
}

/// Tests an instruction set in a child process: it is chosen once per process, and an illegal
/// instruction ends the process.
fn test(isa: Isa) -> Result<SelfTestReport> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let child = Command::new(program)
        .args(["doctor", "--self-test", "--json"])
        .env("REGARD_ISA", isa.name())
        .env("REGARD_NUM_THREADS", pool::threads().to_string())
        .output()
        .context("cannot start the self-test")?;
    // With exit code 1 there is a report, with the errors.
    match serde_json::from_slice::<SelfTestReport>(&child.stdout) {
        Ok(report) if report.isa == isa.name() => Ok(report),
        Ok(report) => bail!("got a report of {1}, need {0}", isa.name(), report.isa),
        Err(_) => {
            let said = String::from_utf8_lossy(&child.stderr);
            bail!("{}: {}", child.status, said.lines().next().unwrap_or("no report"))
        }
    }
}

fn tell(findings: &Findings, out: &mut dyn Write) -> Result<()> {
    let Findings { cpu, arch, os, version, cores, threads, isa, .. } = findings;
    let set = |name: &str, value: &Option<String>| match value {
        Some(value) => format!("{name}={value}"),
        None => format!("{name} is not set"),
    };
    let lanes = simd::isa().lanes();
    writeln!(out, "regard    {version} on {os}, {arch}")?;
    writeln!(out, "cpu       {cpu}, {cores} cores")?;
    writeln!(out, "features  {}", findings.features.join(" "))?;
    if !findings.missing_features.is_empty() {
        writeln!(out, "missing   {}", findings.missing_features.join(" "))?;
    }
    let env = set("REGARD_NUM_THREADS", &findings.env_threads);
    writeln!(out, "threads   {threads} ({env})")?;
    let env = set("REGARD_ISA", &findings.env_isa);
    writeln!(out, "kernels   {isa}, {lanes} floats at a time ({env})\n")?;
    let mut table = Table::new(["kernels", "lanes", "self-test against a float64 reference"]);
    for path in &findings.paths {
        let verdict = match (&path.test, &path.failure) {
            (Some(test), _) => format!(
                "{}: {} problems, largest error {:.1e} forward, {:.1e} backward",
                if test.ok { "ok" } else { "WRONG" },
                test.problems,
                test.forward,
                test.backward
            ),
            (None, Some(failure)) => format!("FAILED: {failure}"),
            (None, None) => "not run: not available on this CPU".into(),
        };
        let mark = if path.chosen { " (chosen)" } else { "" };
        table.row([format!("{}{mark}", path.isa), path.lanes.to_string(), verdict]);
    }
    write!(out, "{}", table.render("", terminal::width_of_terminal()))?;
    if !findings.ok {
        writeln!(
            out,
            "\nSome kernels are wrong here. Set REGARD_ISA to one that is ok, and report the bug."
        )?;
    }
    Ok(())
}
