//! The document of tables has exactly the columns that are defined.

use loopfold_json::tables::{COMMANDS, tables};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

/// The part of `docs/tables.md` that lists columns.
fn listed() -> String {
    let mut text = String::new();
    for command in COMMANDS {
        let name = match command {
            "streams" => "stats --streams",
            "before" => "find --before",
            "queries" => "find --queries",
            "segments" => "export --to weights, parquet",
            other => other,
        };
        let _ = writeln!(text, "\n## {name}");
        for (index, table) in tables(command).iter().enumerate() {
            let default = if index == 0 { ", the default" } else { "" };
            let _ = writeln!(text, "\n`{}`{default}: {}.\n", table.name, table.about);
            let _ = writeln!(text, "| column | type | meaning |\n| --- | --- | --- |");
            for column in &table.columns {
                let _ = writeln!(text, "| `{}` | `{}` | {} |", column.name, column.kind, column.meaning);
            }
        }
    }
    text
}

/// `LOOPFOLD_UPDATE_TEXTS=1 cargo test -p loopfold-json` writes the list again.
#[test]
fn the_document_lists_all_columns() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let text = std::fs::read_to_string(&path).expect("docs/tables.md");
    let (head, _) = text.split_once("\n## loops\n").expect("a section for each command");
    let expected = format!("{head}{}", listed());
    if std::env::var_os("LOOPFOLD_UPDATE_TEXTS").is_some() {
        std::fs::write(&path, &expected).expect("docs/tables.md can be written");
    } else {
        assert!(text == expected, "docs/tables.md differs from the tables");
    }
}

#[test]
fn names_are_distinct_and_default_tables_exist() {
    for command in COMMANDS {
        let all = tables(command);
        assert!(!all.is_empty());
        let names: HashSet<_> = all.iter().map(|table| table.name).collect();
        assert_eq!(names.len(), all.len(), "{command}");
        for table in &all {
            let names: HashSet<_> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), table.columns.len(), "{command} {}", table.name);
        }
    }
    assert!(tables("fold").is_empty());
}
