//! Failures made as short as they get: fewer faults, the usual order, fewer steps of the user.

use super::fault::Faults;
use super::violation::Violation;
use super::world::{Course, Run};

/// How many worlds shortening may cost.
const TRIES_MAX: usize = 60;

type Found = (Run, Vec<Violation>);

/// The shortest course found that still fails in the same way, what it came to, and how many were tried. `fails` runs
/// a course, and has something to say only if it fails.
pub(super) fn shrink(
    course: Course,
    found: Found,
    mut fails: impl FnMut(&Course) -> Option<Found>,
) -> (Course, Found, usize) {
    let mut shortest = (course, found);
    let mut tried = 0;
    while let Some((course, found)) = {
        let known = shortest.1.1.clone();
        shorter(&shortest.0).into_iter().find_map(|course| {
            if tried == TRIES_MAX {
                return None;
            }
            tried += 1;
            let found = fails(&course)?;
            is_same_failure(&known, &found.1).then_some((course, found))
        })
    } {
        shortest = (course, found);
    }
    let (course, found) = shortest;
    (course, found, tried)
}

/// Whether a shorter course fails for the same reason. Another failure may be worth its own report. A script that lacks a step may be
/// refused later, which is the doing of whoever shortened it.
fn is_same_failure(known: &[Violation], found: &[Violation]) -> bool {
    let is_known = |violation: &Violation| known.iter().any(|known| known.is_like(violation));
    let is_refused = |violation: &&Violation| matches!(violation, Violation::Refused { .. });
    found.iter().any(is_known) && found.iter().filter(is_refused).all(is_known)
}

/// Courses that are a little shorter, the most promising first.
fn shorter(course: &Course) -> Vec<Course> {
    let mut courses = Vec::new();
    if course.seed != 0 {
        courses.push(Course { seed: 0, ..course.clone() });
    }
    // With the usual order something has to go wrong: that it goes well is what the course is compared with.
    if course.faults.0.len() > 1 || course.seed != 0 {
        for index in 0..course.faults.0.len() {
            let mut faults = course.faults.0.clone();
            faults.remove(index);
            courses.push(Course { faults: Faults(faults), ..course.clone() });
        }
    }
    // Later steps first: leaving them out does not move what comes before.
    for index in (0..course.script.steps.len()).rev() {
        let mut shorter = course.clone();
        shorter.script.steps.remove(index);
        courses.push(shorter);
    }
    courses
}

#[cfg(test)]
mod tests;
