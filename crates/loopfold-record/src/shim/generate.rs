//! Generates the C source of the preloaded library: the fixed parts, and a wrapper for every call
//! of the table that the site's `mpi.h` declares.
//!
//! Types come from the preprocessed header, so that constness and the wider counts of MPI 4 are
//! those of the site; what is recorded comes from the table. A wrapper calls `PMPI_…` and then
//! writes the words that `layout` lists. Each call also has a wrapper for its Fortran names, as the
//! Fortran bindings may call `PMPI_…` themselves.

use crate::layout::{Word, words_of};
use loopfold_sources::{MpiArgument, MpiCall, mpi_calls};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The fixed parts, before and behind the numbers of the calls.
const BEFORE_CALLS: [&str; 5] = [
    include_str!("runtime.c"),
    include_str!("comms.c"),
    include_str!("lost.c"),
    include_str!("helper.c"),
    include_str!("start.c"),
];
const BEHIND_CALLS: [&str; 2] = [include_str!("special.c"), include_str!("fortran.c")];

/// What the generated source depends on, beside the header and the table of calls.
pub(crate) fn parts() -> impl Iterator<Item = &'static str> {
    BEFORE_CALLS
        .into_iter()
        .chain(BEHIND_CALLS)
        .chain([include_str!("generate.rs"), include_str!("../layout.rs")])
}

/// The source, given the output of the preprocessor for `#include <mpi.h>`.
pub(crate) fn source(header: &str) -> String {
    let declared = declarations(header);
    let has = |name: &str| declared.contains_key(name);
    let mut out = String::from("/* Generated; see runtime.c and the files beside it. */\n");
    if has("PMPI_Session_init") {
        out.push_str("#define LF_HAS_SESSIONS\n");
    }
    for part in BEFORE_CALLS {
        out.push_str(part);
    }
    out.push_str("\nenum {\n");
    for (number, call) in mpi_calls().iter().enumerate() {
        let _ = writeln!(out, "    LF_{} = {number},", call.name);
    }
    out.push_str("};\n");
    for part in BEHIND_CALLS {
        out.push_str(part);
    }
    for call in mpi_calls().iter().filter(|call| !call.is_special) {
        for (suffix, is_wide) in [("", false), ("_c", true)] {
            let name = format!("P{}{suffix}", call.name);
            let Some(parameters) = declared.get(&name) else { continue };
            if parameters.len() == call.arguments.len() {
                c_wrapper(&mut out, call, suffix, parameters);
                if !is_wide {
                    fortran_wrapper(&mut out, call);
                }
            }
        }
    }
    out
}

/// The parameters of every function of the profiling interface, as they are declared.
fn declarations(header: &str) -> HashMap<String, Vec<String>> {
    let mut found = HashMap::new();
    for (start, _) in header.match_indices("PMPI_") {
        let rest = &header[start..];
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(0);
        let (name, rest) = rest.split_at(end);
        if let Some(parameters) = rest.trim_start().strip_prefix('(').and_then(parameters) {
            found.entry(name.to_string()).or_insert(parameters);
        }
    }
    found
}

/// The parameters up to the closing bracket; without preprocessor lines between them.
fn parameters(text: &str) -> Option<Vec<String>> {
    let (mut depth, mut parameters, mut one) = (0, Vec::new(), String::new());
    for letter in text.chars() {
        match letter {
            ')' if depth == 0 => {
                parameters.push(one);
                break;
            }
            ',' if depth == 0 => parameters.push(std::mem::take(&mut one)),
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' | '{' | '}' | '#' => return None,
            _ => {}
        }
        if !(letter == ',' && depth == 0) {
            one.push(if letter.is_whitespace() { ' ' } else { letter });
        }
    }
    let parameters: Vec<String> = parameters.iter().map(|one| one.trim().to_string()).collect();
    Some(if parameters == ["void"] { Vec::new() } else { parameters })
}

/// A parameter under another name: `int counts[]` becomes `int a3[]`.
fn renamed(parameter: &str, number: usize) -> String {
    let (head, brackets) = parameter.split_at(parameter.find('[').unwrap_or(parameter.len()));
    let head = head.trim_end();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let own = head.rfind(|letter: char| !is_letter(letter)).map_or(0, |end| end + 1);
    // A type alone has no name to replace.
    let kind = if head[..own].trim().is_empty() { format!("{head} ") } else { head[..own].to_string() };
    format!("{kind}a{number}{brackets}")
}

/// The wrapper of the C binding.
fn c_wrapper(out: &mut String, call: &MpiCall, suffix: &str, parameters: &[String]) {
    let parameters: Vec<String> =
        parameters.iter().enumerate().map(|(number, parameter)| renamed(parameter, number)).collect();
    let parameters = if parameters.is_empty() { "void".to_string() } else { parameters.join(", ") };
    let plain: Vec<String> = (0..call.arguments.len()).map(|number| format!("a{number}")).collect();
    let mut passed = plain.clone();
    let (mut before, mut values) = (String::new(), HashMap::new());
    for (number, &role) in call.arguments.iter().enumerate() {
        let value = match role {
            MpiArgument::Status => {
                let _ = write!(
                    before,
                    "    MPI_Status own;\n    MPI_Status *const status = a{number} == MPI_STATUS_IGNORE ? &own : a{number};\n"
                );
                passed[number] = "status".to_string();
                "status".to_string()
            }
            MpiArgument::ReceivedMessage => {
                let _ = writeln!(
                    before,
                    "    const MPI_Message message = a{number} ? *a{number} : MPI_MESSAGE_NULL;"
                );
                "message".to_string()
            }
            _ if is_output(role) => format!("*a{number}"),
            _ => format!("a{number}"),
        };
        values.insert(role, value);
    }
    let name = &call.name;
    if makes_communicator(call) {
        before.push_str("    lf_made_inside = MPI_COMM_NULL;\n");
    }
    let _ = write!(
        out,
        "\nLF_EXPORT int {name}{suffix}({parameters})\n{{\n    if (!lf_begin()) {{\n        const int result = P{name}{suffix}({});\n{}        return result;\n    }}\n{before}\
         \x20   const uint64_t start = lf_start();\n    const int result = P{name}{suffix}({});\n    const uint64_t end = lf_now();\n",
        plain.join(", "),
        made_inside(call, &values, "result == MPI_SUCCESS"),
        passed.join(", "),
    );
    put_words(out, call, &values, "result == MPI_SUCCESS", "LF_AS_IT_IS");
    let _ = write!(
        out,
        "    lf_put(LF_{name}, start, end, LF_SITE, words, count);\n    lf_end();\n    return result;\n}}\n"
    );
}

/// Arguments that are known when the call returns.
fn is_output(role: MpiArgument) -> bool {
    use MpiArgument as A;
    matches!(
        role,
        A::Request
            | A::PersistentRequest
            | A::Flag
            | A::Message
            | A::NewCommunicator
            | A::DuplicateCommunicator
            | A::Members
    )
}

/// The wrapper of the Fortran names.
fn fortran_wrapper(out: &mut String, call: &MpiCall) {
    let lower = call.name["MPI_".len()..].to_ascii_lowercase();
    let count = call.arguments.len();
    let numbers: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
    let list = |of: &[String]| of.iter().map(|name| format!("void *{name}, ")).collect::<String>();
    let parameters = format!("{}MPI_Fint *error, long l0, long l1", list(&numbers));
    let types = format!("{}MPI_Fint *, long, long", "void *, ".repeat(count));
    let passed =
        |of: &[String]| of.iter().map(|name| format!("{name}, ")).collect::<String>() + "error, l0, l1";
    let (mut before, mut after, mut values) = (String::new(), String::new(), HashMap::new());
    let mut given = numbers.clone();
    for (number, &role) in call.arguments.iter().enumerate() {
        use MpiArgument as A;
        let handle = |kind: &str| format!("PMPI_{kind}_f2c(*(MPI_Fint *)a{number})");
        let value = match role {
            A::Other => continue,
            A::InPlace => format!("a{number}"),
            A::Type | A::ReceiveType => handle("Type"),
            A::Communicator | A::NewCommunicator | A::DuplicateCommunicator | A::Members => handle("Comm"),
            A::Operation => handle("Op"),
            A::Request | A::PersistentRequest => handle("Request"),
            A::Message => handle("Message"),
            A::ReceivedMessage => {
                let _ = writeln!(before, "    const MPI_Message message = {};", handle("Message"));
                "message".to_string()
            }
            A::Status => {
                let _ = write!(
                    before,
                    "    MPI_Fint own[LF_STATUS_INTS];\n    MPI_Fint *const given = lf_fortran_status(a{number}, own);\n"
                );
                after.push_str("    MPI_Status received, *const status = &received;\n    PMPI_Status_f2c(given, &received);\n");
                given[number] = "given".to_string();
                "status".to_string()
            }
            A::Counts
            | A::ReceiveCounts
            | A::NeighborCounts
            | A::Types
            | A::ReceiveTypes
            | A::Sides
            | A::Periods => {
                format!("((const MPI_Fint *)a{number})")
            }
            A::Size => format!("(*(const MPI_Aint *)a{number})"),
            _ => format!("LF_INT(a{number})"),
        };
        values.insert(role, value);
    }
    if makes_communicator(call) {
        before.push_str("    lf_made_inside = MPI_COMM_NULL;\n");
    }
    let _ = write!(
        out,
        "#ifdef LF_FORTRAN\nstatic void lf_f_{lower}(void (*original)({types}), const void *site, {parameters})\n{{\n\
         \x20   LF_OWN_ERROR;\n    if (!lf_begin()) {{\n        original({});\n{}        return;\n    }}\n{before}    const uint64_t start = lf_start();\n    original({});\n\
         \x20   const uint64_t end = lf_now();\n{after}",
        passed(&numbers),
        made_inside(call, &values, "*error == MPI_SUCCESS"),
        passed(&given),
    );
    put_words(out, call, &values, "*error == MPI_SUCCESS", "PMPI_Type_f2c");
    let _ = write!(
        out,
        "    lf_put(LF_{}, start, end, site, words, count);\n    lf_end();\n}}\nLF_FORTRAN_CALL({lower}, {}, ({parameters}), {})\n#endif\n",
        call.name,
        lower.to_ascii_uppercase(),
        passed(&numbers),
    );
}

fn makes_communicator(call: &MpiCall) -> bool {
    words_of(call).contains(&Word::NewCommunicator)
}

/// The number of the communicator that a call makes.
fn new_communicator(call: &MpiCall, values: &HashMap<MpiArgument, String>) -> Option<(String, String)> {
    use MpiArgument as A;
    let parent = values.get(&A::Communicator).map_or("MPI_COMM_NULL", String::as_str);
    let made = |role: A| values.get(&role).filter(|_| call.has(role));
    if let Some(comm) = made(A::DuplicateCommunicator) {
        return Some((comm.clone(), format!("lf_duplicate({parent}, {comm})")));
    }
    let (comm, with_members) =
        made(A::Members).map(|comm| (comm, 1)).or(made(A::NewCommunicator).map(|comm| (comm, 0)))?;
    Some((comm.clone(), format!("lf_new_comm({parent}, {comm}, {with_members})")))
}

/// The statement by which a call that is not recorded numbers a communicator.
fn made_inside(call: &MpiCall, values: &HashMap<MpiArgument, String>, succeeded: &str) -> String {
    new_communicator(call, values).map_or_else(String::new, |(comm, make)| {
        format!("        if ({succeeded})\n            LF_MADE_INSIDE({comm}, {make});\n")
    })
}

/// True for what is known only if the call succeeds.
fn is_result(word: Word) -> bool {
    use Word as W;
    matches!(
        word,
        W::NewCommunicator | W::Flag | W::Received | W::Request | W::Message | W::ReceivedMessage | W::Grid
    )
}

/// The statements that collect the words of a record. That of a call that fails has only what the
/// call was given, without asking MPI about handles that it may have refused.
fn put_words(
    out: &mut String,
    call: &MpiCall,
    values: &HashMap<MpiArgument, String>,
    succeeded: &str,
    to_type: &str,
) {
    use MpiArgument as A;
    let value = |role: A| values.get(&role).cloned().unwrap_or_else(|| "0".to_string());
    let is_list = call.has(A::Sides);
    if is_list {
        let _ = writeln!(
            out,
            "    const int64_t sides = {succeeded} && {0} > 0 ? {0} : 0;\n    int64_t words[LF_MOST + 2 * sides];",
            value(A::Dimensions)
        );
    } else {
        let _ = writeln!(out, "    int64_t words[LF_MOST];");
    }
    let _ = writeln!(out, "    unsigned count = 0;\n    words[0] = 0;");
    let mut is_open = false;
    for word in words_of(call) {
        if is_result(word) && !is_open {
            is_open = true;
            let _ = writeln!(out, "    if ({succeeded}) {{");
        }
        let text = match word {
            Word::Destination => format!("lf_peer({})", value(A::Destination)),
            Word::Source => format!("lf_peer({})", value(A::Source)),
            Word::From => format!("lf_peer({})", value(A::From)),
            Word::Target => format!("lf_peer({})", value(A::Target)),
            Word::Root => format!("lf_peer({})", value(A::Root)),
            Word::Operation => format!("lf_operation({})", value(A::Operation)),
            Word::Tag => format!("lf_tag({})", value(A::Tag)),
            Word::ReceiveTag => format!("lf_tag({})", value(A::ReceiveTag)),
            Word::Bytes => format!("!({succeeded}) ? 0 : {}", bytes(call, values, to_type)),
            Word::ReceiveBytes => {
                let one =
                    format!("(int64_t){} * lf_size_of({})", value(A::ReceiveCount), value(A::ReceiveType));
                format!("!({succeeded}) ? 0 : {one}")
            }
            Word::Communicator => {
                let comm = value(A::Communicator);
                format!("{succeeded} ? lf_comm({comm}) : lf_known_comm({comm})")
            }
            Word::Color => value(A::Color),
            Word::Key => value(A::Key),
            Word::NewCommunicator => {
                new_communicator(call, values).map_or_else(|| "-1".to_string(), |(_, make)| make)
            }
            Word::Part => value(A::Part),
            Word::Flag => format!("({}) != 0", value(A::Flag)),
            Word::Received => {
                let is_there =
                    if call.has(A::Flag) { format!("!({}) ? 0 : ", value(A::Flag)) } else { String::new() };
                format!("{is_there}lf_received({})", value(A::Status))
            }
            Word::Request => format!(
                "LF_HANDLE({})",
                value(if call.has(A::Request) { A::Request } else { A::PersistentRequest })
            ),
            Word::Message => {
                let is_there =
                    if call.has(A::Flag) { format!("!({}) ? 0 : ", value(A::Flag)) } else { String::new() };
                format!("{is_there}LF_HANDLE({})", value(A::Message))
            }
            Word::ReceivedMessage => format!("LF_HANDLE({})", value(A::ReceivedMessage)),
            // Behind all others, as it has no fixed length.
            Word::Grid => continue,
        };
        let _ = writeln!(out, "    words[count++] = {text};");
    }
    if is_list {
        let _ = write!(
            out,
            "    words[count++] = sides;\n\
             \x20   for (int side = 0; side < sides; side++)\n        words[count++] = {0}[side];\n\
             \x20   for (int side = 0; side < sides; side++)\n        words[count++] = {1}[side] != 0;\n",
            value(A::Sides),
            value(A::Periods),
        );
    }
    if is_open {
        out.push_str("    }\n");
    }
}

/// How many bytes a call sends, or receives if it does only that.
fn bytes(call: &MpiCall, values: &HashMap<MpiArgument, String>, to_type: &str) -> String {
    use MpiArgument as A;
    let value = |role: A| values.get(&role).cloned().unwrap_or_else(|| "0".to_string());
    if call.has(A::Size) {
        return format!("(int64_t){}", value(A::Size));
    }
    // What is reduced is scattered in the own group.
    let of = if call.has(A::Operation) { "lf_local_members" } else { "lf_members" };
    let members = format!("{of}({})", value(A::Communicator));
    let many = |counts: A, kind: A, kinds: A| match (call.has(counts), call.has(kinds)) {
        (true, true) => format!("LF_SUM_TYPED({}, {}, {to_type}, {members})", value(counts), value(kinds)),
        (true, false) => format!("LF_SUM({}, {members}) * lf_size_of({})", value(counts), value(kind)),
        (false, _) => "0".to_string(),
    };
    let one = |count: A, kind: A| match (call.has(count), call.has(kind)) {
        (true, true) => format!("(int64_t){} * lf_size_of({})", value(count), value(kind)),
        (false, true) => format!("lf_size_of({})", value(kind)),
        _ => "0".to_string(),
    };
    let sent = if call.has(A::Counts) {
        many(A::Counts, A::Type, A::Types)
    } else if call.has(A::NeighborCounts) {
        format!(
            "LF_SUM({}, lf_neighbors({})) * lf_size_of({})",
            value(A::NeighborCounts),
            value(A::Communicator),
            value(A::Type)
        )
    } else {
        one(A::Count, A::Type)
    };
    let sent = if call.has(A::Parts) { format!("(int64_t){} * {sent}", value(A::Parts)) } else { sent };
    if !call.has(A::InPlace) {
        return sent;
    }
    let received = if call.has(A::ReceiveCounts) {
        many(A::ReceiveCounts, A::ReceiveType, A::ReceiveTypes)
    } else if call.has(A::ReceiveCount) {
        one(A::ReceiveCount, A::ReceiveType)
    } else {
        "0".to_string()
    };
    format!("lf_in_place({}) ? {received} : {sent}", value(A::InPlace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_a_header() {
        let header = "int MPI_Send(int x);\n__attribute__((x)) int PMPI_Send(const void *buf, int count,\n  MPI_Datatype t,\
                      int ranges[][3]) ;int PMPI_Finalize(void);";
        let found = declarations(header);
        assert_eq!(found["PMPI_Send"], ["const void *buf", "int count", "MPI_Datatype t", "int ranges[][3]"]);
        assert!(found["PMPI_Finalize"].is_empty());
        let names: Vec<String> =
            found["PMPI_Send"].iter().enumerate().map(|(number, one)| renamed(one, number)).collect();
        assert_eq!(names, ["const void *a0", "int a1", "MPI_Datatype a2", "int a3[][3]"]);
    }

    #[test]
    fn only_calls_that_the_header_declares_are_wrapped() {
        let text = source("int PMPI_Barrier(MPI_Comm comm);");
        assert!(text.contains("int MPI_Barrier(MPI_Comm a0)"));
        assert!(!text.contains("int MPI_Bcast("));
        assert!(!text.contains("#define LF_HAS_SESSIONS"));
    }
}
