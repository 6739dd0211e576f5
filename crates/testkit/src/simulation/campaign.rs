//! A whole check: first without faults, then with each at each place, then with several at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::check::Check;
use super::family::{Family, combine, enumerate};
use super::fault::{Faults, Point};
use super::lock;
use super::oracle::Baseline;
use super::record::Passed;
use super::report::{Failure, Part, Progress, Report, Row};
use super::script::Script;
use super::shrink::shrink;
use super::story::{Story, tell};
use super::violation::Violation;
use super::walking::{self, Ends};
use super::world::{Course, Run, play};

/// See the [module](self).
pub(super) fn run(check: &Check) -> Report {
    apart(|| run_here(check))
}

/// What happens in one world, judged by nobody.
pub(super) fn look(check: &Check, seed: u64, faults: Faults) -> Run {
    apart(|| play(&check.setup, &course(check, seed, faults)))
}

/// Works on a thread of its own: the one that calls may be a runtime's already.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn run_here(check: &Check) -> Report {
    let began = Instant::now();
    let first = play(&check.setup, &course(check, 0, Faults::default()));
    let passed = first.remains.passed.clone();
    let count = |wanted: fn(&Point) -> bool| passed.iter().filter(|passed| wanted(&passed.point)).count();
    let mut report = Report {
        program: check.setup.subject.name().to_owned(),
        steps: check.script.steps.len(),
        writes: count(|point| matches!(point, Point::Write(_))),
        reads: count(|point| matches!(point, Point::Read(_))),
        events: count(|point| matches!(point, Point::Event(_))),
        rows: Vec::new(),
        failures: Vec::new(),
        left_out: Vec::new(),
        took: began.elapsed(),
    };
    let baseline = check.rules.baseline(&first);
    let found = check.rules.judge_baseline(check.setup.subject.name(), &first);
    report.rows.push(Row {
        part: Part::Baseline,
        worlds: 1,
        pruned: 0,
        failed: usize::from(!found.is_empty()),
    });
    if found.is_empty() {
        try_everything(check, &baseline, &passed, &mut report);
    } else {
        let failing = course(check, 0, Faults::default());
        report.failures.push(explain(check, Part::Baseline, failing, first, found));
    }
    report.took = began.elapsed();
    report
}

/// The one question whether the script ends as another one does.
fn compare_scripts(check: &Check, other: &Script, report: &mut Report) {
    let found = match walking::compare(check, &check.script, other) {
        Ends::Same => None,
        Ends::Refused => {
            report.left_out.push("the server refuses one of the two scripts".to_owned());
            None
        }
        Ends::Other(found) => Some(*found),
    };
    report.rows.push(Row {
        part: Part::SpecChanges,
        worlds: 2,
        pruned: 0,
        failed: usize::from(found.is_some()),
    });
    if let Some(found) = found {
        let failing = course(check, 0, Faults::default());
        report.failures.push(finish(check, Part::SpecChanges, failing, found, |_| None));
    }
}

fn try_everything(check: &Check, baseline: &Baseline, passed: &[Passed], report: &mut Report) {
    if let Some((seed, faults)) = &check.replay {
        let courses = vec![course(check, *seed, faults.clone())];
        return try_part(check, baseline, Part::Replay, &courses, 0, report);
    }
    if let Some(other) = &check.same_end_as {
        return compare_scripts(check, other, report);
    }
    let has_webhooks = !check.setup.webhooks.0.is_empty();
    for family in check.families.difference(&check.without) {
        let places = enumerate(*family, passed, has_webhooks);
        if *family == Family::WebhooksDown && !has_webhooks {
            report.left_out.push(format!("{family}: the world has none"));
            continue;
        }
        let courses: Vec<Course> =
            places.faults.iter().map(|fault| course(check, 0, Faults(vec![*fault]))).collect();
        try_part(check, baseline, Part::Each(*family), &courses, places.pruned, report);
    }
    if check.seeds > 0 {
        let wanted = |family: &Family| check.families.is_empty() || check.families.contains(family);
        let families = Family::ALL.into_iter();
        let families = families.filter(|family| wanted(family) && !check.without.contains(family));
        let all: Vec<_> =
            families.flat_map(|family| enumerate(family, passed, has_webhooks).faults).collect();
        let combined = |seed| course(check, seed, combine(seed, &all));
        let courses: Vec<Course> =
            (0..check.seeds).map(|nth| combined(check.first_seed.wrapping_add(nth))).collect();
        try_part(check, baseline, Part::Combinations, &courses, 0, report);
    }
    if let Some((definition, sequences)) = &check.walk {
        walking::run(check, definition, *sequences, report);
    }
}

fn course(check: &Check, seed: u64, faults: Faults) -> Course {
    Course { seed, faults, script: check.script.clone() }
}

/// Runs all courses of a part, and explains the first that is not as it should be.
fn try_part(
    check: &Check,
    baseline: &Baseline,
    part: Part,
    courses: &[Course],
    pruned: usize,
    report: &mut Report,
) {
    let cut_short = AtomicUsize::new(0);
    let judge = |course: &Course| {
        let run = play(&check.setup, course);
        let mut found = check.rules.judge(baseline, &run);
        // What was not reached in a combination may have been prevented by what came before it.
        if part != Part::Combinations {
            found.extend(run.unreached());
        } else if run.unreached().is_some() {
            cut_short.fetch_add(1, Ordering::Relaxed);
        }
        if found.is_empty() { Verdict::Fine } else { Verdict::Failed((run, found)) }
    };
    let tally = each(check, part, courses, judge);
    report.rows.push(Row { part, worlds: courses.len(), pruned, failed: tally.failed });
    let cut_short = cut_short.into_inner();
    if cut_short > 0 {
        report
            .left_out
            .push(format!("a fault or more in {cut_short} combinations, which another one prevented"));
    }
    if let Some((index, (run, found))) = tally.first {
        report.failures.push(explain(check, part, courses[index].clone(), run, found));
    }
}

/// What became of one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict<F> {
    Fine,
    /// It could not be tried.
    LeftOut,
    Failed(F),
}

/// What became of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tally<F> {
    pub(super) done: usize,
    pub(super) left_out: usize,
    pub(super) failed: usize,
    /// The first that failed, by its index, whichever ended first.
    pub(super) first: Option<(usize, F)>,
}

impl<F> Tally<F> {
    fn add(&mut self, index: usize, verdict: Verdict<F>) {
        self.done += 1;
        match verdict {
            Verdict::Fine => {}
            Verdict::LeftOut => self.left_out += 1,
            Verdict::Failed(found) => {
                self.failed += 1;
                if self.first.as_ref().is_none_or(|(first, _)| index < *first) {
                    self.first = Some((index, found));
                }
            }
        }
    }
}

/// Judges many things on as many threads as wanted. All failures but the first are only counted, so that a thousand of
/// them do not fill the memory with traces. Progress is told in order, to the last.
pub(super) fn each<T: Sync, F: Send>(
    check: &Check,
    part: Part,
    all: &[T],
    judge: impl Fn(&T) -> Verdict<F> + Sync,
) -> Tally<F> {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally { done: 0, left_out: 0, failed: 0, first: None });
    std::thread::scope(|scope| {
        for _ in 0..check.threads.min(all.len()) {
            scope.spawn(|| {
                while let Some((index, one)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    all.get(index).map(|one| (index, one))
                } {
                    let verdict = judge(one);
                    let mut tally = lock(&tally);
                    tally.add(index, verdict);
                    // Told under the lock, so that nobody hears of the last before the last but one.
                    if let Some(tell) = &check.progress {
                        tell(&Progress { part, done: tally.done, total: all.len(), failed: tally.failed });
                    }
                }
            });
        }
    });
    tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes a failure as short as it gets, and tells its story.
fn explain(check: &Check, part: Part, course: Course, run: Run, found: Vec<Violation>) -> Failure {
    finish(check, part, course, (run, found), |course| judge_alone(check, course))
}

/// The same with another judge.
pub(super) fn finish(
    check: &Check,
    part: Part,
    course: Course,
    found: (Run, Vec<Violation>),
    judge: impl FnMut(&Course) -> Option<(Run, Vec<Violation>)>,
) -> Failure {
    let found_with = (course.seed, course.faults.clone());
    let (course, (run, violations), tried) = shrink(course, found, judge);
    let straight = match part {
        Part::SpecChanges => check.same_end_as.clone().or_else(|| walking::straight(&course.script)),
        _ => None,
    };
    let story = tell(&Story {
        program: check.setup.subject.name(),
        part,
        course: &course,
        violations: &violations,
        trace: &run.remains.trace,
        straight: straight.as_ref(),
        tried,
    });
    let Course { seed, faults, .. } = course;
    Failure { part, seed, faults, found_with, violations, trace: run.remains.trace, story }
}

/// Runs a course with a baseline of its own, as its script may be another.
fn judge_alone(check: &Check, course: &Course) -> Option<(Run, Vec<Violation>)> {
    let quiet = Course { seed: 0, faults: Faults::default(), script: course.script.clone() };
    if course.faults.0.is_empty() && course.seed == 0 {
        let run = play(&check.setup, &quiet);
        let found = check.rules.judge_baseline(check.setup.subject.name(), &run);
        return (!found.is_empty()).then_some((run, found));
    }
    let first = play(&check.setup, &quiet);
    if !first.remains.violations.is_empty() {
        return None;
    }
    let run = play(&check.setup, course);
    let found = check.rules.judge(&check.rules.baseline(&first), &run);
    (!found.is_empty()).then_some((run, found))
}

#[cfg(test)]
mod tests;
