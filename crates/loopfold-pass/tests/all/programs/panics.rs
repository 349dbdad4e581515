//! Panics: caught, through frames with and without cleanup, out of threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

struct Guard<'a>(&'a mut u32);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0 += if *self.0 % 2 == 0 { 10 } else { 1 };
    }
}

#[inline(never)]
fn plain(n: u32) -> u32 {
    if n == 0 { std::panic::resume_unwind(Box::new(7u32)) } else { plain(n - 1) + 1 }
}

#[inline(never)]
fn guarded(n: u32, count: &mut u32) -> u32 {
    let guard = Guard(count);
    if n % 2 == 1 {
        return plain(n) + 1;
    }
    guarded(n.saturating_sub(1), guard.0) + 2
}

#[inline(never)]
fn matched(words: &[&str]) -> usize {
    let mut sum = 0;
    for (at, word) in words.iter().enumerate() {
        sum += match (at % 3, word.len()) {
            (0, 0) => 1,
            (0, n) if n > 3 => n * 2,
            (1, 1 | 2) => 5,
            (_, n) => word.bytes().filter(|byte| byte.is_ascii_lowercase()).count() + n,
        };
    }
    sum
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let (mut count, mut sum) = (0, 0);
    for n in 1..6 {
        match catch_unwind(AssertUnwindSafe(|| guarded(n, &mut count))) {
            Ok(value) => sum += value,
            Err(payload) => sum += 100 * payload.downcast_ref::<u32>().copied().unwrap_or(1),
        }
    }
    let joined = std::thread::spawn(|| plain(3)).join();
    sum += joined.map_err(|_| ()).unwrap_or(1000);
    sum += std::thread::spawn(|| (1..50u32).filter(|n| n % 7 == 2).map(|n| n * n).sum::<u32>()).join().unwrap_or(0);
    let words = ["", "abcd", "x", "Hello", "", "yz", "loop"];
    println!("{sum} {count} {}", matched(&words));
    0
}
