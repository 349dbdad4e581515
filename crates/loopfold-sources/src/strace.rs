//! Reads system calls as strace logs them, with or without `-f`, any of `-t`, `-tt`, `-ttt`,
//! `-r`, and `-T`, to a file (`7 12:00:00 read(…`) or the terminal (`[pid 7] 12:00:00 read(…`).
//!
//! Events, streams, fields and costs are those of [`crate::call_log`].

use crate::call_log::{self, Tool};
use crate::line_reader::fit_of_lines;
use crate::{Context, Description, Fit, Result, Source};
use std::io::BufRead;

/// See the module.
pub(crate) struct Strace;

impl Source for Strace {
    fn name(&self) -> &'static str {
        "strace"
    }

    fn about(&self) -> &'static str {
        "system calls logged by strace (-f, -t, -tt, -ttt, -r, -T)"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["errno", "result", "args", "fd"]
    }

    fn description(&self) -> Description {
        Description {
            event: "a call, by name; signals and exits",
            stream: "a process",
            times: "start, duration (-T, or until resumed)",
            example: "loopfold loops strace.txt --key name,errno",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        // ltrace writes the same lines, but of other calls.
        fit_of_lines(head, Fit::Likely, |line| call_log::judge(line, Tool::Strace, is_common))
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        call_log::read(Tool::Strace, input, context)
    }
}

/// Whether this is one of the system calls that make up most of any log.
fn is_common(name: &[u8]) -> bool {
    COMMON.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
}

/// In alphabetical order.
const COMMON: &[&str] = &[
    "accept",
    "accept4",
    "access",
    "arch_prctl",
    "bind",
    "brk",
    "chdir",
    "chmod",
    "clock_gettime",
    "clock_nanosleep",
    "clone",
    "clone3",
    "close",
    "connect",
    "dup",
    "dup2",
    "dup3",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "eventfd2",
    "execve",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fchmod",
    "fcntl",
    "fdatasync",
    "flock",
    "fork",
    "fstat",
    "fstat64",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futex",
    "getcwd",
    "getdents",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getpeername",
    "getpgrp",
    "getpid",
    "getppid",
    "getrandom",
    "getrlimit",
    "getrusage",
    "getsockname",
    "getsockopt",
    "gettid",
    "gettimeofday",
    "getuid",
    "getxattr",
    "inotify_add_watch",
    "io_getevents",
    "io_submit",
    "io_uring_enter",
    "ioctl",
    "kill",
    "lgetxattr",
    "listen",
    "lseek",
    "lstat",
    "madvise",
    "membarrier",
    "mkdir",
    "mkdirat",
    "mmap",
    "mmap2",
    "mprotect",
    "mremap",
    "msync",
    "munmap",
    "nanosleep",
    "newfstatat",
    "open",
    "openat",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "preadv",
    "prlimit64",
    "pselect6",
    "pwrite64",
    "pwritev",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "rename",
    "renameat",
    "renameat2",
    "restart_syscall",
    "rmdir",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_yield",
    "select",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "set_robust_list",
    "set_tid_address",
    "setitimer",
    "setpgid",
    "setsockopt",
    "shutdown",
    "sigaltstack",
    "socket",
    "socketpair",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "sysinfo",
    "tgkill",
    "timerfd_settime",
    "times",
    "umask",
    "uname",
    "unlink",
    "unlinkat",
    "utimensat",
    "vfork",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, note_of, read, streams_of, times_of};

    const LOG: &str = r#"7 1700000000.000001 execve("/bin/x", ["x"], 0x7ff /* 3 vars */) = 0 <0.000100>
7 1700000000.000200 openat(AT_FDCWD, "a) = 1", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>
7 1700000000.000300 wait4(-1,  <unfinished ...>
8 1700000000.000310 read(3, "x=(", 3)   = 3 <0.000001>
8 1700000000.000320 close(3 <unfinished ...>
9 1700000000.000330 <... futex resumed>) = 0 <0.5>
8 1700000000.000340 <... close resumed>) = 0
8 1700000000.000350 exit_group(0)       = ?
8 1700000000.000360 +++ exited with 0 +++
7 1700000000.000400 <... wait4 resumed>[{WIFEXITED(s)}], 0, NULL) = 8 <0.000100>
7 1700000000.000500 --- SIGCHLD {si_signo=SIGCHLD, si_pid=8} ---
7 1700000000.000600 read(0,  <unfinished ...>
7 1700000000.000700 +++ killed by SIGKILL +++
"#;

    #[test]
    fn calls_are_events_of_their_process() {
        assert_eq!(Strace.fits(LOG.as_bytes()), Fit::Likely);
        let reading = read(&Strace, LOG, Reading::default());
        assert_eq!(streams_of(&reading), ["process 7", "process 8", "process 9"]);
        assert_eq!(
            events_of(&reading, "process 7"),
            ["execve", "openat", "wait4", "--- SIGCHLD ---", "read", "+++ killed +++"]
        );
        assert_eq!(events_of(&reading, "process 8"), ["read", "close", "exit_group", "+++ exited +++"]);
        assert_eq!(events_of(&reading, "process 9"), ["futex"]);
        assert_eq!(times_of(&reading, "process 7")[2], (1_700_000_000_000_300_000, 100_000));
        assert_eq!(times_of(&reading, "process 8")[1], (1_700_000_000_000_320_000, 20_000));
    }

    #[test]
    fn fields_come_when_they_are_wanted() {
        let by = |key: &str| events_of(&read(&Strace, LOG, Reading::by(&["name", key])), "process 7");
        assert_eq!(by("errno")[..3], ["execve errno=0", "openat errno=ENOENT", "wait4 errno=0"]);
        assert_eq!(by("result")[1], "openat result=-1 ENOENT (No such file or directory)");
        assert_eq!(by("args")[1], r#"openat args=AT_FDCWD, "a) = 1", O_RDONLY"#);
        assert_eq!(by("args")[2], "wait4 args=-1,[{WIFEXITED(s)}], 0, NULL");
        assert_eq!(by("fd")[4], "read fd=0");
        let of_8 = events_of(&read(&Strace, LOG, Reading::by(&["name", "fd"])), "process 8");
        assert_eq!(of_8[..2], ["read fd=3", "close fd=3"]);
    }

    #[test]
    fn all_forms_of_prefixes_are_known() {
        let forms: &[(&str, &str, i64)] = &[
            ("read(3) = 1", "input", i64::MIN),
            ("[pid    12] read(3) = 1", "process 12", i64::MIN),
            ("12 read(3) = 1", "process 12", i64::MIN),
            ("12<make> 00:00:01 read(3) = 1", "process 12", 1_000_000_000),
            ("00:00:01.5 read(3) = 1", "input", 1_500_000_000),
            ("     0.000020 read(3) = 1", "input", 20_000),
            ("00:00:01 (+     0.000020) [00007f00] read(3) = 1", "input", 1_000_000_000),
            ("1700000000 read(3) = 1", "input", 1_700_000_000_000_000_000),
            ("[pid 12] [  0] read(3) = 1", "process 12", i64::MIN),
        ];
        for &(line, stream, start) in forms {
            let reading = read(&Strace, line, Reading::default());
            assert_eq!(events_of(&reading, stream), ["read"], "{line}");
            assert_eq!(times_of(&reading, stream)[0].0, start, "{line}");
        }
    }

    #[test]
    fn relative_times_add_up_and_clocks_pass_midnight() {
        let reading = read(&Strace, "0.000000 a() = 0\n1.5 b() = 0\n0.5 c() = 0\n", Reading::default());
        let starts: Vec<i64> = times_of(&reading, "input").iter().map(|time| time.0).collect();
        assert_eq!(starts, [0, 1_500_000_000, 2_000_000_000]);
        let reading = read(&Strace, "23:59:59 a() = 0\n00:00:00 b() = 0\n", Reading::default());
        assert_eq!(times_of(&reading, "input")[1].0, 86_400_000_000_000);
    }

    #[test]
    fn a_log_of_library_calls_is_something_else() {
        assert!(COMMON.is_sorted());
        let log =
            "strlen(\"a\") = 1\nmemcpy(0x1, 0x2, 3) = 0x1\nread(3, \"\", 1) = 0\n+++ exited (status 0) +++\n";
        assert_eq!(Strace.fits(log.as_bytes()), Fit::No);
    }

    #[test]
    fn on_a_terminal_messages_interrupt_calls() {
        let log = "\
pipe2([3, 4], 0) = 0
clone(child_stack=NULL, flags=SIGCHLDstrace: Process 8 attached
, child_tidptr=0x7f) = 8
[pid     8] set_robust_list(0x7f, 24) = 0
[pid     7] vfork(strace: Process 9 attached
 <unfinished ...>
[pid     9] close(3) = 0
[pid     8] +++ exited with 0 +++
[pid     7] <... vfork resumed>) = 9
exit_group(0) = ?
";
        let reading = read(&Strace, log, Reading::default());
        assert_eq!(streams_of(&reading), ["input", "process 8", "process 9"]);
        assert_eq!(events_of(&reading, "input"), ["pipe2", "clone", "vfork", "exit_group"]);
        assert_eq!(note_of(&reading, "input", "title").unwrap(), "process 7");
        let args = events_of(&read(&Strace, log, Reading::by(&["args"])), "input");
        assert_eq!(args[1], "child_stack=NULL, flags=SIGCHLD, child_tidptr=0x7f");
    }

    #[test]
    fn only_nonsense_is_damage() {
        let odd = "strace: Process 3 attached\n\n7 read(3, \"cut sho\n7 exit(0 <unfinished ...>) = ?\n7 ???( <unfinished\n";
        let reading = read(&Strace, odd, Reading::lenient());
        assert_eq!(events_of(&reading, "process 7"), ["read", "exit"]);
        assert_eq!(damage_of(&reading), 1);
        assert!(read(&Strace, "= 1\n", Reading::default()).unwrap_err().starts_with("line 1: neither"));
    }
}
