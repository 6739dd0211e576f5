//! The numbers of both contenders as a table.

use super::scenarios::{CHANGED_OF, Run, Scenario};
use crate::measure::as_f64;
use crate::report::{number, render_lines};

const MIB: f64 = 1024.0 * 1024.0;

/// What the issue that asked for the framework aims at.
#[derive(Clone, Copy)]
enum Aim {
    /// At most so much of kube's.
    Share(f64),
    /// At most so much, in the row's unit.
    AtMost(f64),
    None,
}

/// Rows as they come.
pub(crate) struct Table {
    lines: Vec<[String; 7]>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { lines: vec![["", "unit", "kube", "ours", "ours / kube", "aim", "holds"].map(str::to_owned)] }
    }

    fn row(&mut self, what: &str, unit: &str, kube: f64, ours: f64, aim: Aim) {
        let ratio = (kube > 0.0).then(|| ours / kube);
        let verdict = |holds: bool| if holds { "yes" } else { "NO" };
        // Figures are compared as they are printed, give or take a request that was made twice.
        let (aim, holds) = match aim {
            Aim::Share(share) => (format!("≤ {share}×"), ratio.map_or("", |ratio| verdict(ratio <= share))),
            Aim::AtMost(most) => {
                (format!("≤ {most} {unit}").trim_end().to_owned(), verdict(ours <= most + 0.005))
            }
            Aim::None => (String::new(), ""),
        };
        let ratio = ratio.map_or(String::new(), number);
        self.lines.push([what.into(), unit.into(), number(kube), number(ours), ratio, aim, holds.into()]);
    }

    /// All scenarios of one cluster.
    pub(crate) fn add_runs(&mut self, server: &str, shops: usize, kube: &Run, ours: &Run) {
        let all = as_f64(shops as u64);
        let changed = as_f64(shops.div_ceil(CHANGED_OF) as u64);
        let scenarios = [
            ("cold", [&kube.cold, &ours.cold], all, 5.0),
            ("resync", [&kube.resync, &ours.resync], all, 0.0),
            ("1 % changed", [&kube.change, &ours.change], changed, 2.0),
            ("restart", [&kube.restart, &ours.restart], all, 0.0),
        ];
        for (name, [kube, ours], concerned, writes_aim) in scenarios {
            let mut row = |what: &str, unit: &str, read: &dyn Fn(&Scenario) -> f64, aim| {
                self.row(&format!("{server}: {name}, {what}"), unit, read(kube), read(ours), aim);
            };
            let converges = kube.converged_seconds > 0.0;
            if converges {
                let writes = |s: &Scenario| as_f64(s.writes_until_converged) / concerned;
                row("writes until converged", "per shop", &writes, Aim::None);
            }
            row("writes", "per shop", &|s| as_f64(s.counts.writes()) / concerned, Aim::AtMost(writes_aim));
            row("reads", "per shop", &|s| as_f64(s.counts.reads) / concerned, Aim::None);
            row("syncs", "per shop", &|s| as_f64(s.counts.syncs) / concerned, Aim::None);
            if converges {
                row("time to converge", "s", &|s| s.converged_seconds, Aim::None);
            }
            row("time until quiet", "s", &|s| s.quiet_seconds, Aim::None);
            row("CPU", "s", &|s| s.cpu_seconds, Aim::Share(0.5));
            row("CPU of the API server", "s", &|s| s.server_cpu_seconds, Aim::None);
            if name == "cold" || name == "restart" {
                row("peak memory", "MiB", &|s| as_f64(s.peak_bytes) / MIB, Aim::Share(0.5));
            }
            row("settled memory", "MiB", &|s| as_f64(s.resident_bytes) / MIB, Aim::Share(0.5));
        }
    }

    /// What a cache takes per byte of JSON.
    pub(crate) fn add_stores(&mut self, json_bytes: u64, kube: u64, kube_pruned: u64, ours: u64) {
        let per_byte = |bytes: u64| as_f64(bytes) / as_f64(json_bytes);
        let row = |table: &mut Self, what: &str, kube: u64| {
            table.row(what, "B", per_byte(kube), per_byte(ours), Aim::AtMost(1.5));
        };
        row(self, "cache of Pods per byte of JSON", kube);
        row(self, "the same, kube's told to drop managedFields", kube_pruned);
    }

    pub(crate) fn render(&self) -> String {
        render_lines(&self.lines)
    }
}
