//! Sorting and searching.

/// By insertion.
pub fn insertion(numbers: &mut [u32]) {
    for end in 1..numbers.len() {
        let mut at = end;
        while at > 0 && numbers[at - 1] > numbers[at] {
            numbers.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// By bubbles.
pub fn bubble(numbers: &mut [u32]) {
    for end in (1..numbers.len()).rev() {
        for at in 0..end {
            if numbers[at] > numbers[at + 1] {
                numbers.swap(at, at + 1);
            }
        }
    }
}

/// By selection.
pub fn selection(numbers: &mut [u32]) {
    for start in 0..numbers.len() {
        if let Some(least) = (start..numbers.len()).min_by_key(|at| numbers[*at]) {
            numbers.swap(start, least);
        }
    }
}

/// By a heap.
pub fn heap(numbers: &mut [u32]) {
    fn sift(numbers: &mut [u32], mut at: usize) {
        while let Some(child) =
            (2 * at + 1..numbers.len().min(2 * at + 3)).max_by_key(|c| numbers[*c])
        {
            if numbers[at] >= numbers[child] {
                return;
            }
            numbers.swap(at, child);
            at = child;
        }
    }
    for at in (0..numbers.len() / 2).rev() {
        sift(numbers, at);
    }
    for end in (1..numbers.len()).rev() {
        numbers.swap(0, end);
        sift(&mut numbers[..end], 0);
    }
}

/// Position of a number among sorted ones.
#[must_use]
pub fn search(numbers: &[u32], wanted: u32) -> Option<usize> {
    numbers.binary_search(&wanted).ok()
}

/// Reverses in place.
pub fn reverse(numbers: &mut [u32]) {
    numbers.reverse();
}

/// Sum of a Fenwick tree's first `count` numbers, which it is built from.
pub fn fenwick(numbers: &mut [u32], count: usize) -> u32 {
    for at in 1..=numbers.len() {
        let parent = at + (at & at.wrapping_neg());
        if parent <= numbers.len() {
            numbers[parent - 1] = numbers[parent - 1].wrapping_add(numbers[at - 1]);
        }
    }
    let (mut at, mut sum) = (count, 0_u32);
    while at > 0 {
        sum = sum.wrapping_add(numbers[at - 1]);
        at &= at - 1;
    }
    sum
}
