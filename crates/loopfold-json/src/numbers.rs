//! Rounded numbers and times.

/// Rounded to this many decimals.
pub fn rounded(value: f64, decimals: i32) -> f64 {
    let factor = 10f64.powi(decimals);
    (value * factor).round() / factor
}

/// Nanoseconds in 64 bits; what does not fit is the nearest that does.
pub fn nanoseconds(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
