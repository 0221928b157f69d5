//! wire ← rooms (context, governance, meta, signals) ← run ← kernel; rooms never import each other.

use std::fs;
use std::path::{Path, PathBuf};

/// What may import what, below the crate root's own words.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &["wire"]),
    ("context", &["wire", "context"]),
    ("governance", &["wire", "governance"]),
    ("meta", &["wire", "meta"]),
    ("signals", &["wire", "signals"]),
    ("run", &["wire", "context", "governance", "meta", "signals", "run"]),
    ("fault.rs", &["wire"]),
    ("kernel.rs", &["wire", "context", "governance", "meta", "signals", "run"]),
];

fn sources(path: &Path, out: &mut Vec<PathBuf>) {
    if path.is_file() {
        out.push(path.into());
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        sources(&entry.unwrap().path(), out);
    }
}

/// The modules of the crate that a source names, by `crate::module`.
fn named(source: &str) -> Vec<String> {
    let tails = source.split("crate::").skip(1);
    let names =
        tails.map(|tail| tail.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect());
    names.filter(|name: &String| name.starts_with(|letter: char| letter.is_lowercase())).collect()
}

#[test]
fn every_module_imports_only_from_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (layer, below) in LAYERS {
        let mut files = vec![];
        sources(&root.join(layer), &mut files);
        assert!(!files.is_empty());
        for file in files {
            for name in named(&fs::read_to_string(&file).unwrap()) {
                assert!(below.contains(&name.as_str()), "{} imports {name}", file.display());
            }
        }
    }
}

#[test]
fn the_crate_has_no_standard_library() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![];
    sources(&root, &mut files);
    for file in &files {
        let source = fs::read_to_string(file).unwrap();
        assert!(!source.contains("std::") && !source.contains("extern crate std"), "{}", file.display());
    }
    assert!(fs::read_to_string(root.join("lib.rs")).unwrap().contains("\n#![no_std]\n"));
}
