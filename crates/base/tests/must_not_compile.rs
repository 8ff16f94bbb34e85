//! What the types promise: code that breaks the rule of blame does not compile.

#![allow(clippy::unwrap_used, reason = "a test's functions, too, end by panicking")]

use std::path::Path;
use std::process::{Command, Output};

#[test]
fn nobody_but_the_blame_table_can_make_a_charge_copy_one_or_charge_an_unclassified_fault() {
    trybuild::TestCases::new().compile_fail("tests/must_not_compile/*.rs");
}

/// The table's own files as a crate of their own; `kinds` is put into the list of kinds.
fn compile(folder: &Path, kinds: &str) -> Output {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |name: &str| std::fs::read_to_string(sources.join(name)).unwrap();
    let list = "\nkinds! {\n";
    let fault = read("fault.rs");
    assert!(fault.contains(list), "the list of kinds is where it was");
    std::fs::write(folder.join("fault.rs"), fault.replacen(list, &format!("{list}{kinds}"), 1)).unwrap();
    std::fs::write(folder.join("verdict.rs"), read("verdict.rs")).unwrap();
    std::fs::write(folder.join("limit.rs"), read("limit.rs")).unwrap();
    std::fs::write(folder.join("seeded.rs"), read("seeded.rs")).unwrap();
    let modules = "pub mod fault;\npub mod limit;\npub mod seeded;\npub mod verdict;\n";
    std::fs::write(folder.join("lib.rs"), modules).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir", "."]);
    command.arg("lib.rs").current_dir(folder).output().unwrap()
}

#[test]
fn a_fault_without_a_row_does_not_compile() {
    let folder = tempfile::tempdir().unwrap();
    let as_it_is = compile(folder.path(), "");
    assert!(as_it_is.status.success(), "{}", String::from_utf8_lossy(&as_it_is.stderr));
    let with_one_more = compile(folder.path(), "    /// Nobody thought of its row.\n    Forgotten = \"forgotten\",\n");
    let told = String::from_utf8_lossy(&with_one_more.stderr);
    assert!(!with_one_more.status.success());
    assert!(told.contains("E0004") && told.contains("Forgotten"), "{told}");
    assert!(told.contains("verdict.rs"), "the missing row is told where the table is: {told}");
}
