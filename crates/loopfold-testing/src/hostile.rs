//! Names that somebody chose: to drive a terminal, to end a text in whatever form it is put, to be
//! executed, or to pass for something else.

/// The names; some are not UTF-8, and one is empty.
pub const NAMES: &[&[u8]] = &[
    b"",
    b" ",
    b"\t",
    // Terminals: colours, titles, what answers into the input, control characters of 8 bits.
    b"\x1b[2J\x1b[31mred",
    b"\x1b]0;title\x07",
    b"\x1b]52;c;aWQK\x1b\\",
    b"\x1bP$q\"p\x1b\\",
    "\u{9b}31m\u{9d}0;x\u{9c}".as_bytes(),
    b"bell\x07 back\x08 return\r feed\x0c null\x00 del\x7f",
    b"line\nbreak",
    b"\r\n",
    // Characters that show something else than is there.
    "\u{202e}drawkcab\u{202c}".as_bytes(),
    "\u{2066}isolated\u{2069}\u{200b}\u{feff}\u{ad}".as_bytes(),
    "\u{e0041}\u{2028}\u{2029}\u{85}".as_bytes(),
    "größe → 数 🦀".as_bytes(),
    // Not UTF-8.
    b"\xff\xfe",
    b"\xe2\x80",
    b"\xc0\xaf \xed\xa0\x80",
    // Strings of JSON, CSV, DOT, C, shells and this project's own forms.
    b"\"",
    b"'",
    b"\\",
    b"\\\"",
    b"\\n\\l\\r\\N",
    b"\"];x[label=\"",
    b"<b>html</b> &lt;&amp;",
    b"{\"json\":[null]}",
    b"a,b;c\td",
    b"a\",\"b",
    b"R1",
    b"end\nstream 'x' -> R1",
    b"# no comment",
    b"`id` $(id) ${HOME} ; id | id & id > f",
    // C: comments, strings, preprocessor, trigraphs, formats, what the generated program is searched for.
    b"*/",
    b"/*",
    b"//",
    b"*/ int evil(void); /*",
    b"\");system(\"id",
    b"SUM;}int evil(){return 0",
    b"??/",
    b"??= ??( ??)",
    b"\\\nline",
    b"%s%n%d%%",
    b"grid( noisy_work( self.comm &self &last) LARGEST MPI_Bsend free_persistent(",
    b"enter_region(\"x\");",
    // Formulas.
    b"=1+1",
    b"=cmd|'/c calc'!A0",
    b"+1",
    b"-1+1",
    b"@SUM(1)",
    "＝1+1".as_bytes(),
    b"\t=1+1",
    b" =1+1",
    // Options, files, patterns, numbers.
    b"-h",
    b"--output=x",
    b"../../etc/passwd",
    b"/dev/null",
    b"*",
    b"a[b]?",
    b"12",
    b"0x12",
    b"1e9",
    b"NaN",
    b"99999999999999999999",
    b"none",
    b"MPI_Send",
    b"MPI_evil",
];

/// A name of bytes as a grammar has it.
pub fn quoted(name: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b' ' => (*byte as char).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("'{}'", name.iter().map(byte).collect::<String>())
}

/// Those that are UTF-8.
pub fn texts() -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter_map(|name| std::str::from_utf8(name).ok())
}

/// A grammar with every name as an event, a key, a value, a stream, its title, a note and a folder.
pub fn events() -> String {
    let mut text = String::from("loopfold grammar 1\n");
    let mut events = Vec::new();
    for (number, name) in NAMES.iter().map(|name| quoted(name)).enumerate() {
        text += &format!("A{number} = {name}\nB{number} = 'field' value={name}\n");
        events.extend([format!("A{number}"), format!("B{number}")]);
    }
    for (number, name) in texts().map(|name| quoted(name.as_bytes())).enumerate() {
        text += &format!("K{number} = 'key' {name}=1\n");
        events.push(format!("K{number}"));
    }
    text += &format!("L -> {}\nS -> 'begin' L^3 'end'\n", events.join(" "));
    for name in texts().map(|name| quoted(name.as_bytes())) {
        text += &format!("stream {name} -> S\n    folder {name}\n");
        text += &format!("    note 'title' {name}\n    note {name} {name}\n    note 'format' {name}\n");
    }
    text + "end\n"
}

/// A grammar with every name as a function that is called, with a block of that name.
pub fn calls() -> String {
    let mut text = String::from("loopfold grammar 1\n");
    let mut events = Vec::new();
    for (number, name) in NAMES.iter().map(|name| quoted(name)).enumerate() {
        text += &format!("C{number} = enter {name}\nD{number} = block {name} function={name}\n");
        text += &format!("X{number} = leave {name} function={name}\n");
        events.push(format!("C{number} D{number} D{number} X{number}"));
    }
    text += &format!("L -> {}\nS -> L^3\nstream 'thread 1' -> S\n", events.join(" "));
    text + "    note 'format' 'calls'\nend\n"
}

/// The events of two processes that exchange messages, with a name wherever text is free: in regions,
/// marks, calls that are not known, and communicators.
pub fn messages(names: &[&[u8]]) -> String {
    let mut text = String::from("loopfold grammar 1\n");
    text += "I = 'MPI_Init'\nF = 'MPI_Finalize'\nY = collective 'MPI_Barrier' comm='0'\n";
    let mut ranks = [vec!["I".to_string()], vec!["I".to_string()]];
    for (number, name) in names.iter().map(|name| quoted(name)).enumerate() {
        text += &format!(
            "G{number} = enter {name}\nH{number} = leave {name} function={name}\nM{number} = {name} text={name}\n\
             U{number} = 'MPI_Unknown' value={name} comm='0'\n\
             N{number} = 'MPI_Comm_dup' comm='0' newcomm={name}\n\
             O{number} = collective 'MPI_Allreduce' op='user' bytes=8 comm={name}\n\
             P{number} = send 'MPI_Send' dest=1 tag=0 bytes=8 comm={name}\n\
             Q{number} = receive 'MPI_Recv' src=0 tag=0 bytes=8 comm={name}\n"
        );
        for (rank, message) in [(0, "P"), (1, "Q")] {
            ranks[rank].push(format!(
                "N{number} G{number} M{number} U{number} O{number} {message}{number}^4 H{number} Y"
            ));
        }
    }
    for (rank, events) in ranks.iter().enumerate() {
        text += &format!("R{rank}x -> {} F\n", events.join(" "));
    }
    text + "stream 'rank 0' -> R0x\nstream 'rank 1' -> R1x\nend\n"
}

/// A Chrome trace with every name as a slice, a category, an argument, a counter, a process and a thread.
pub fn slices() -> String {
    let string = |text: &str| {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        format!("\"{}\"", units.collect::<String>())
    };
    let mut slices = Vec::new();
    for (number, name) in texts().map(string).enumerate() {
        for (kind, id) in [("process_name", number), ("thread_name", 7)] {
            slices.push(format!(
                "{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{number},\"tid\":{id},\"args\":{{\"name\":{name}}}}}"
            ));
        }
        for (nth, inner) in texts().map(string).enumerate().flat_map(|one| [one.clone(), one]).take(40) {
            let start = 1000 * nth;
            slices.push(format!(
                "{{\"ph\":\"X\",\"name\":{inner},\"cat\":{name},\"pid\":{number},\"tid\":7,\"ts\":{start},\"dur\":{},\
                 \"args\":{{{name}:{name},\"cost\":3}}}}",
                400 + nth
            ));
        }
    }
    format!("{{\"traceEvents\":[{}]}}", slices.join(",\n"))
}
