//! Lists of completion indexes such as `1,3-5`.

/// How many indexes a list names, all below `completions`; or why it is no list.
pub(super) fn count(list: &str, completions: i64) -> Result<i64, String> {
    let mut named = 0;
    let mut previous: Option<i64> = None;
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(previous) = previous.filter(|end| *end >= first) {
            return Err(format!("non-increasing order, previous: {previous}, current: {first}"));
        }
        named += end - first + 1;
        previous = Some(end);
    }
    Ok(named)
}

/// The first index that stands in both lists; parts that cannot be read are skipped.
pub(super) fn overlap(a: &str, b: &str, completions: i64) -> Option<i64> {
    let read = |list: &str| -> Vec<(i64, i64)> {
        list.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (a, b) = (read(a), read(b));
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 <= y.1 && y.0 <= x.1 {
            return Some(x.0.max(y.0));
        }
        if x.0 <= y.0 { i += 1 } else { j += 1 }
    }
    None
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let ends: Vec<&str> = part.split('-').collect();
    if ends.len() > 2 {
        return Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts \
             separated by '-'"
        ));
    }
    let read = |text: &str| {
        let index: i64 =
            text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= completions { Err(format!("too large index: {text:?}")) } else { Ok(index) }
    };
    let first = read(ends[0])?;
    let Some(end) = ends.get(1) else { return Ok((first, first)) };
    let end = read(end)?;
    if first >= end {
        return Err(format!("non-increasing order, previous: {first}, current: {end}"));
    }
    Ok((first, end))
}

#[cfg(test)]
mod tests {
    use super::{count, overlap};

    #[test]
    fn indexes_are_counted_in_order() {
        assert_eq!(count("", 5), Ok(0));
        assert_eq!(count("0,2-4", 5), Ok(4));
        assert_eq!(count("5", 5), Err("too large index: \"5\"".to_owned()));
        assert_eq!(count("3,1", 5), Err("non-increasing order, previous: 3, current: 1".to_owned()));
        assert_eq!(count("x", 5), Err("cannot convert string to integer for index: \"x\"".to_owned()));
    }

    #[test]
    fn the_first_shared_index_is_found() {
        assert_eq!(overlap("0,2-4", "1,3", 5), Some(3));
        assert_eq!(overlap("0-1", "2-3", 5), None);
    }
}
