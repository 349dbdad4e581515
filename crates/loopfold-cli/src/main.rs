//! The program `loopfold`; what it does is in the library.

fn main() -> std::process::ExitCode {
    loopfold_cli::main()
}
