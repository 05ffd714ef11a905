//! Whole numbers and floating point.

/// Fibonacci number, by recursion.
#[must_use]
pub fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

/// Greatest common divisor.
#[must_use]
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether a number is prime, by division.
#[must_use]
pub fn is_prime(n: u64) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// Power of a modulus.
#[must_use]
pub fn power(base: u64, exponent: u64, modulus: u64) -> u64 {
    let (mut base, mut exponent, mut result) = (base % modulus, exponent, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

/// Whole square root.
#[must_use]
pub fn whole_root(n: u64) -> u64 {
    let mut root = n;
    let mut next = root.div_ceil(2);
    while next < root {
        root = next;
        next = (root + n / root) / 2;
    }
    root
}

/// Steps of the Collatz sequence down to one.
#[must_use]
pub fn collatz(n: u64) -> u64 {
    let (mut n, mut steps) = (n, 0);
    while n > 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

/// Bits that are set, one by one.
#[must_use]
pub fn bits(n: u64) -> u32 {
    let (mut n, mut bits) = (n, 0);
    while n != 0 {
        n &= n - 1;
        bits += 1;
    }
    bits
}

/// Square root by Newton's method.
#[must_use]
pub fn root(number: f64) -> f64 {
    (0..20).fold(number, |root, _| 0.5 * (root + number / root))
}

/// Sine by its series.
#[must_use]
pub fn sine(x: f64) -> f64 {
    let step = |(sum, term): (f64, f64), n: u32| {
        let n = f64::from(n);
        let term = -term * x * x / ((2.0 * n) * (2.0 * n + 1.0));
        (sum + term, term)
    };
    (1..12).fold((x, x), step).0
}

/// Dot product.
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Product of two square matrices.
pub fn multiply<const N: usize>(a: &[[f64; N]; N], b: &[[f64; N]; N], out: &mut [[f64; N]; N]) {
    for (row, line) in out.iter_mut().zip(a) {
        for (column, cell) in row.iter_mut().enumerate() {
            *cell = line.iter().zip(b).map(|(x, other)| x * other[column]).sum();
        }
    }
}

/// Iterations until a point leaves the Mandelbrot set's circle.
#[must_use]
pub fn mandelbrot(re: f64, im: f64) -> u32 {
    let (mut x, mut y) = (0.0, 0.0);
    (0..200)
        .take_while(|_| {
            (x, y) = (x * x - y * y + re, 2.0 * x * y + im);
            x * x + y * y <= 4.0
        })
        .count() as u32
}
