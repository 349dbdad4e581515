//! `--table`: the rows are those of the JSON, and every format has the same ones.

use crate::support::waits::trace_of;
use crate::support::{Folder, Run, binary, run, shell};
use loopfold::archive;
use loopfold::folders::{Auto, fold_trace};
use loopfold_json::tables::{From, Table, table};
use loopfold_testing::{Rng, waits};
use serde_json::{Map, Value, json};

/// A question, the command whose tables it has, and the table.
type Question<'a> = (Vec<&'a str>, &'a str, &'a str);

/// Events with times and two metrics in two streams; names need quotes, and some values are absent.
fn timed(folder: &Folder) -> String {
    let mut text = "name,start_ns,dur_ns,pages,misses,stream\n".to_string();
    for step in 0..60 {
        for stream in ["main", "other one"] {
            for (place, name) in ["load", "\"a \"\"b\"\", c\"", "store it"].iter().enumerate() {
                let start = 1000 * step + 100 * place;
                let pages = if step % 7 == 0 { String::new() } else { (step % 5).to_string() };
                text += &format!("{name},{start},{},{pages},{}.5,{stream}\n", 40 + step % 9, place);
            }
        }
    }
    folder.file("timed.csv", text)
}

const TIMED: [&str; 10] = [
    "--event",
    "name",
    "--start",
    "start_ns",
    "--duration",
    "dur_ns",
    "--metric",
    "pages,misses",
    "--stream-by",
    "stream",
];

fn calls(folder: &Folder) -> String {
    let body = "call f\nblock 1\nblock 2\ncall g\nreturn\nreturn\n".repeat(30);
    folder.file("x.calls", format!("call main\n{body}return\n"))
}

fn messages(folder: &Folder) -> String {
    let simulated = waits::ring(4, 100, &mut Rng::new(1));
    let trace = trace_of(&simulated, |_, start, duration| (Some(start), Some(duration)));
    let mut file = Vec::new();
    archive::write(&fold_trace(trace, &Auto, 1).unwrap(), &mut file).unwrap();
    folder.file("ring.fold", file)
}

/// Questions on a trace, with all its tables.
fn questions<'a>(
    input: &[&'a str],
    query: &'a str,
    queries: &'a str,
    has_messages: bool,
) -> Vec<Question<'a>> {
    let ask = |command: &[&'a str]| [&command[..1], input, &command[1..]].concat();
    let find = |more: &[&'a str]| [&["find"], input, &[query], more].concat();
    let mut all = vec![
        (ask(&["loops"]), "loops", "classes"),
        (ask(&["iterations"]), "iterations", "iterations"),
        (ask(&["iterations", "--slow", "3"]), "iterations", "slow"),
        (ask(&["hot", "--min-cost", "1"]), "hot", "subpaths"),
        (ask(&["hot", "--min-length", "3", "--top", "1"]), "hot", "subpaths"),
        (ask(&["stats", "--streams"]), "streams", "stream_list"),
        (ask(&["patterns", "--all-events"]), "patterns", "patterns"),
        (ask(&["patterns", "--method", "exact"]), "patterns", "patterns"),
        (find(&["--all"]), "find", "all"),
        (find(&["--all", "--top", "7"]), "find", "all"),
        (find(&["--per-stream"]), "find", "streams"),
        (ask(&["find", "--queries", queries]), "queries", "queries"),
        ([&["similar"], input, &[query, "--all-events"]].concat(), "similar", "matches"),
    ];
    for name in ["counts", "durations", "metrics", "stream_list"] {
        all.push((ask(&["stats"]), "stats", name));
    }
    // A path is no event.
    if !query.contains(':') {
        let other = query.split(' ').next_back().unwrap();
        all.push((find(&["--before", other, "--per-stream"]), "before", "streams"));
        let context = |more: &[&'a str]| [&["context"], input, &[query], more].concat();
        all.push((context(&["--depth", "4"]), "context", "neighbours"));
        all.push((context(&["--top", "1"]), "context", "neighbours"));
    }
    if has_messages {
        for name in ["places", "calls", "pairs", "ranks", "iterations", "classes"] {
            all.push((ask(&["waits"]), "waits", name));
        }
        for name in ["patterns", "matrix", "unmatched"] {
            all.push((ask(&["patterns"]), "patterns", name));
        }
        all.push((ask(&["similar", "--like", "ring:4"]), "similar", "occurrences"));
    }
    all
}

fn each(check: impl Fn(&Folder, &Question<'_>)) {
    let folder = Folder::new();
    let (timed, calls, messages) = (timed(&folder), calls(&folder), messages(&folder));
    let timed: Vec<&str> = [&[timed.as_str()], &TIMED[..]].concat();
    let lu = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lu.txt.zst");
    let queries =
        folder.file("queries", "# Some are wrong.\nload\n\nf: 1 2\n*: g\n/[/\nN K I\nMPI_Irecv MPI_*\n");
    let asked = [
        questions(&timed, "load /b/", &queries, false),
        questions(&[&calls], "f: 1 2", &queries, false),
        questions(&[lu], "N K I", &queries, false),
        questions(&[&messages], "MPI_Irecv MPI_Irecv", &queries, true),
    ];
    asked.iter().flatten().for_each(|question| check(&folder, question));
}

fn asked((arguments, _, rows): &Question<'_>, format: &str) -> Run {
    let run = run(&[&arguments[..], &["--table", format, "--rows", rows]].concat());
    // A query of a file may be wrong.
    assert!(
        matches!(run.code, Some(0 | 1)) || arguments.contains(&"--queries"),
        "{arguments:?}: {}",
        run.err
    );
    run
}

/// The rows of an answer by what the table says, from the whole answer: the objects at a place, each with
/// those around it.
fn rows_of(table: &Table, answer: &Value) -> Vec<Value> {
    fn visit<'v>(keys: &[&str], path: Vec<(String, &'v Value)>, found: &mut Vec<Vec<(String, &'v Value)>>) {
        let Some((place, value)) = path.last().cloned() else { return };
        match (value, keys) {
            (Value::Array(values), _) => {
                for value in values {
                    let mut path = path.clone();
                    path.push((place.clone(), value));
                    visit(keys, path, found);
                }
            }
            (Value::Object(_), []) => found.push(path),
            (Value::Object(object), [key, rest @ ..]) => {
                let Some(value) = object.get(*key) else { return };
                let mut path = path.clone();
                path.push((format!("{place}{}{key}", if place.is_empty() { "" } else { "." }), value));
                visit(rest, path, found);
            }
            _ => {}
        }
    }
    let keys: Vec<&str> = table.rows.split('.').collect();
    let mut found = Vec::new();
    visit(&keys, vec![(String::new(), answer)], &mut found);
    let value_at =
        |value: &Value, keys: &str| keys.split('.').fold(value.clone(), |value, key| value[key].clone());
    let row = |path: &Vec<(String, &Value)>| {
        let columns = table.columns.iter().map(|column| {
            let value = match column.from {
                From::Row(keys) => value_at(path.last().unwrap().1, keys),
                From::Around(keys) => {
                    let (place, key) = keys.rsplit_once('.').unwrap();
                    path.iter().rfind(|(its_place, _)| its_place == place).unwrap().1[key].clone()
                }
            };
            // A list column has no objects.
            let value = if value.is_object() { Value::Null } else { value };
            let is_float = column.kind.name() == "float64";
            let value = value.as_f64().filter(|_| is_float).map_or(value, Value::from);
            (column.name.to_string(), value)
        });
        Value::Object(columns.collect::<Map<_, _>>())
    };
    found.iter().map(row).collect()
}

/// The answer that has the rows: of many queries their lines, and of trees the nodes.
fn answer_of(command: &str, json: &Run) -> Value {
    fn add(side: &str, nodes: &Value, path: &[Value], rows: &mut Vec<Value>) {
        for node in nodes.as_array().into_iter().flatten().filter(|node| node["others"].is_null()) {
            let path: Vec<Value> =
                path.iter().chain([&node["event"]]).filter(|event| !event.is_null()).cloned().collect();
            let distance = path.len() + usize::from(node["event"].is_null());
            let (event, count) = (&node["event"], &node["count"]);
            rows.push(json!({
                "side": side, "distance": distance, "event": event, "events": path, "count": count,
            }));
            add(side, &node["next"], &path, rows);
        }
    }
    match command {
        _ if json.out.is_empty() => Value::Null,
        "queries" => {
            let lines = json.text();
            json!({ "queries": lines.lines().map(|line| line.parse().unwrap()).collect::<Vec<Value>>() })
        }
        "context" => {
            let (answer, mut rows) = (json.json(), Vec::new());
            ["after", "before"].into_iter().for_each(|side| add(side, &answer[side], &[], &mut rows));
            json!({ "neighbours": rows })
        }
        _ => json.json(),
    }
}

#[test]
fn rows_are_those_of_the_json() {
    let rows = std::cell::Cell::new(0);
    each(|_, question| {
        let (arguments, command, name) = question;
        let json = run(&[&arguments[..], &["--json"]].concat());
        let text = asked(question, "json");
        assert_eq!(text.code, json.code, "{arguments:?}");
        let answer = answer_of(command, &json);
        let table = table(command, Some(name)).unwrap();
        let lines: Vec<Value> = text.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, rows_of(&table, &answer), "{arguments:?} {name}");
        rows.set(rows.get() + lines.len());
        let left_out = match *command {
            "context" => u64::from(json.text().contains("others")),
            _ => answer["left_out"].as_u64().filter(|_| table.is_limited).unwrap_or(0),
        };
        assert_eq!(left_out > 0, text.err.contains("left out"), "{arguments:?}: {}", text.err);
    });
    assert!(rows.get() > 40_000);
}

/// What `cat` has as rows are the arrays of its JSON.
#[test]
fn events_are_rows() {
    let folder = Folder::new();
    let timed = timed(&folder);
    let arguments = [&["cat", &timed, "--times", "--from", "10"], &TIMED[..]].concat();
    let json = run(&[&arguments[..], &["--json"]].concat()).ok().json();
    let text = run(&[&arguments[..], &["--table", "json"]].concat()).ok().text();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for stream in json["streams"].as_array().unwrap() {
        for (index, event) in stream["events"].as_array().unwrap().iter().enumerate() {
            let row = lines.next().unwrap();
            assert_eq!((&row["stream"], &row["event"]), (&stream["stream"], event));
            assert_eq!(row["position"], stream["from"].as_u64().unwrap() + index as u64);
            assert_eq!(row["start_ns"], stream["start_ns"][index]);
            assert_eq!(row["duration_ns"], stream["duration_ns"][index]);
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn no_rows_are_a_table_without_rows() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\nb\nc\n");
    for (arguments, head) in [
        (&["find", &trace, "x"][..], "stream,start,end,start_ns,depth,function,stack,stack_depth\n"),
        (&["patterns", &trace, "--rows", "matrix"], "from,to,messages,bytes\n"),
        (&["context", &trace, "x"], "side,distance,event,events,count\n"),
        (&["stats", &trace, "--rows", "durations"], "event,known,total_ns,mean_ns,self_ns,share\n"),
    ] {
        assert_eq!(run(&[arguments, &["--table", "csv"]].concat()).text(), head);
    }
    let none = run(&["iterations", &trace, "--table", "csv"]);
    assert_eq!((none.code, none.text().lines().count()), (Some(1), 1));
}

#[test]
fn bad_use_is_one_line() {
    let folder = Folder::new();
    let trace = folder.file("x.txt", "a\nb\na\nb\n");
    let fails = |arguments: &[&str], expected: &str| {
        let failed = run(arguments);
        assert_eq!((failed.code, failed.out.is_empty()), (Some(2), true), "{arguments:?}");
        assert!(failed.err.lines().next().unwrap().contains(expected), "{}", failed.err);
    };
    fails(&["hot", &trace, "--table", "csv", "--json"], "'--table <FORMAT>' cannot be used with '--json'");
    fails(&["hot", &trace, "--table", "xls"], "invalid value 'xls' for '--table <FORMAT>'");
    fails(&["hot", &trace, "--rows", "subpaths"], "required arguments were not provided");
    fails(&["stats", &trace, "--table", "csv", "--rows", "x"], "invalid value 'x' for '--rows <NAME>'");
    fails(
        &["stats", &trace, "--streams", "--table", "csv", "--rows", "counts"],
        "--rows counts: there are no",
    );
    fails(&["find", &trace, "a", "--count", "--table", "csv"], "cannot be used with");
    fails(&["iterations", &trace, "--table", "csv", "--rows", "slow"], "--rows slow needs --slow K");
    fails(&["hot", &trace, "--table", "csv", "-o", &trace], "is one of the inputs");
    fails(&["hot", &trace, "--table", "csv", "-o", &folder.at("no/x.csv")], "does not exist");
    fails(&["skeleton", &trace, "--table", "csv"], "unexpected argument");
    fails(
        &["find", &trace, "a", "--before", "b", "--table", "csv", "--rows", "all"],
        "--rows all: there are no",
    );
    fails(&["find", &trace, "a", "--table", "csv", "--rows", "queries"], "--rows queries: there are no");
}

/// A table goes to a file, which is replaced when the new one is complete.
#[test]
fn a_table_in_a_file() {
    let folder = Folder::new();
    let (trace, file) = (folder.file("x.txt", "a\nb\na\nb\n"), folder.file("x.csv", "old"));
    let printed = run(&["stats", &trace, "--table", "csv"]).ok().text();
    assert!(run(&["stats", &trace, "--table", "csv", "-o", &file]).ok().out.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
    let failed = run(&["stats", &folder.at("none"), "--table", "csv", "-o", &file]);
    assert_eq!((failed.code, std::fs::read_to_string(&file).unwrap()), (Some(2), printed));
}

#[cfg(all(feature = "arrow", target_os = "linux"))]
#[test]
fn a_terminal_gets_no_bytes() {
    let folder = Folder::new();
    folder.file("x.txt", "a\nb\na\nb\n");
    for (arguments, what) in [
        ("hot x.txt --table parquet", "--table parquet is not text"),
        ("hot x.txt --table arrow", "--table arrow is not text"),
        ("export x.txt --to parquet", "--to parquet is not text"),
    ] {
        let script = format!("script -qec '{} {arguments}' /dev/null", binary());
        let refused = shell(&script, folder.path());
        assert_eq!(refused.code, Some(2), "{}", refused.text());
        assert!(refused.text().contains(what) && refused.text().lines().count() == 1, "{}", refused.text());
        let written = shell(&format!("{} {arguments} -o x.bin", binary()), folder.path());
        assert_eq!((written.code, written.err.as_str()), (Some(0), ""));
    }
    let shown =
        shell(&format!("script -qec '{} stats x.txt --table csv' /dev/null", binary()), folder.path());
    assert!(shown.text().starts_with("event,count"), "{}", shown.text());
}

/// Arrow and Parquet, read back, have the texts of the CSV.
#[cfg(feature = "arrow")]
mod read_back {
    use super::*;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
    use arrow_array::{Array, ArrayRef, RecordBatch};
    use arrow_ipc::reader::StreamReader;
    use arrow_schema::DataType;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn text_of(array: &ArrayRef, row: usize) -> String {
        if array.is_null(row) {
            return String::new();
        }
        let quoted = |text: &str| match text.is_empty() || text.contains([' ', '"']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_string(),
        };
        match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value(row).to_string(),
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
            DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
            DataType::Boolean => array.as_boolean().value(row).to_string(),
            DataType::List(_) => {
                let values = array.as_list::<i32>().value(row);
                let is_text = values.data_type() == &DataType::Utf8;
                let words = (0..values.len()).map(|index| text_of(&values, index));
                let words = words.map(|word| if is_text { quoted(&word) } else { word });
                words.collect::<Vec<_>>().join(" ")
            }
            other => panic!("no column has the type {other}"),
        }
    }

    fn texts(batches: &[RecordBatch]) -> Vec<Vec<String>> {
        let rows = |batch: &RecordBatch| {
            let columns = batch.columns().to_vec();
            let row = move |row| columns.iter().map(|column| text_of(column, row)).collect();
            (0..batch.num_rows()).map(row).collect::<Vec<Vec<String>>>()
        };
        batches.iter().flat_map(rows).collect()
    }

    fn parquet_batches(file: Vec<u8>) -> (Vec<(String, String)>, Vec<RecordBatch>) {
        let folder = Folder::new();
        let path = folder.file("x.parquet", file);
        let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
        let types = types_of(builder.schema());
        (types, builder.build().unwrap().map(Result::unwrap).collect())
    }

    /// The names and types of columns, as the definition has them.
    fn types_of(schema: &arrow_schema::Schema) -> Vec<(String, String)> {
        fn name(of: &DataType) -> String {
            match of {
                DataType::Utf8 => "string".to_string(),
                DataType::Boolean => "bool".to_string(),
                DataType::List(field) => format!("list<{}>", name(field.data_type())),
                other => other.to_string().to_lowercase(),
            }
        }
        schema.fields().iter().map(|field| (field.name().clone(), name(field.data_type()))).collect()
    }

    #[test]
    fn arrow_and_parquet_equal_the_csv() {
        each(|_, question| {
            let (arguments, command, rows) = question;
            let text = asked(question, "csv").out;
            let mut csv = csv::Reader::from_reader(&text[..]);
            let expected: Vec<Vec<String>> =
                csv.records().map(|record| record.unwrap().iter().map(String::from).collect()).collect();
            let columns: Vec<(String, String)> = table(command, Some(rows))
                .unwrap()
                .columns
                .iter()
                .map(|column| (column.name.to_string(), column.kind.to_string()))
                .collect();
            let stream = asked(question, "arrow").out;
            let stream = StreamReader::try_new(&stream[..], None).unwrap();
            assert_eq!(types_of(&stream.schema()), columns);
            assert!(
                texts(&stream.map(Result::unwrap).collect::<Vec<_>>()) == expected,
                "{arguments:?} {rows}"
            );
            let (types, batches) = parquet_batches(asked(question, "parquet").out);
            assert_eq!(types, columns);
            assert!(texts(&batches) == expected, "{arguments:?} {rows}");
        });
    }

    #[test]
    fn segments_as_parquet_equal_the_weights() {
        let lu = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lu.txt.zst");
        let text = run(&["export", lu, "--to", "weights"]).ok().out;
        let mut csv = csv::Reader::from_reader(&text[..]);
        let expected: Vec<Vec<String>> =
            csv.records().map(|record| record.unwrap().iter().map(String::from).collect()).collect();
        let (_, batches) = parquet_batches(run(&["export", lu, "--to", "parquet"]).ok().out);
        assert_eq!(texts(&batches), expected);
        let weights: u64 = expected.iter().map(|row| row[5].parse::<u64>().unwrap()).sum();
        assert_eq!(weights, 323_048);
    }
}
