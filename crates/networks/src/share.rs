//! How many peers each group gets. Pure.

#[cfg(test)]
mod tests;

/// Splits `replicas` by `weights`, in integers, by the largest remainder.
///
/// Each group gets its exact share, rounded down or up; the shares add up to `replicas`; a heavier group never gets less than a lighter one, and
/// the first of two equals not less than the second. A group without weight gets none. If there is no weight at all, nobody gets any: such a
/// network is refused by [`check::problems`](crate::check::problems). What is negative counts as zero.
pub fn split(replicas: i32, weights: &[i32]) -> Vec<i32> {
    let replicas = i128::from(replicas.max(0));
    let weights: Vec<i128> = weights.iter().map(|weight| i128::from(*weight).max(0)).collect();
    let total: i128 = weights.iter().sum();
    if total == 0 {
        return vec![0; weights.len()];
    }
    let mut shares: Vec<i128> = weights.iter().map(|weight| replicas * weight / total).collect();
    let left = replicas - shares.iter().sum::<i128>();
    let mut places: Vec<usize> = (0..weights.len()).collect();
    // The sort is stable, so that the first of two equals comes first.
    places.sort_by_key(|&place| std::cmp::Reverse(replicas * weights[place] % total));
    for place in places.into_iter().take(usize::try_from(left).unwrap_or_default()) {
        shares[place] += 1;
    }
    // No share is larger than `replicas`, which was an `i32`.
    shares.into_iter().map(|share| i32::try_from(share).unwrap_or(i32::MAX)).collect()
}
