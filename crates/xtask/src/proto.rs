//! The code of `crates/proto`, made from the schemas in `proto/`. It needs no compiler of protobuf's own beside it, and
//! every file there is taken, so that a new package is a new file and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use protox::prost::Message as _;
use protox::prost_reflect::prost_types::FileDescriptorSet;

const SCHEMAS: &str = "proto";
const GENERATED: &str = "crates/proto/src/generated";
/// Names the modules; the others are the code of a package each.
const PACKAGES: &str = "packages.rs";
const HEAD: &str = "// Written by `cargo xtask proto` from proto/; do not edit.\n\n";
/// Generated code keeps its own customs.
const ALLOW: &str = "#[allow(missing_docs, rustdoc::all, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, \
    clippy::wildcard_enum_match_arm, rust_2018_idioms)]";

/// Writes the code below `root`, or with `check` compares it; the answer is a line for a person.
pub fn run(root: &Path, check: bool) -> Result<String> {
    let fresh = generate(root)?;
    let folder = root.join(GENERATED);
    if !check {
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {GENERATED}"))?;
    }
    let mut kept = BTreeSet::new();
    // Without the folder every file is missing, which is told below.
    if folder.exists() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {GENERATED}"))? {
            kept.insert(entry?.file_name().to_string_lossy().into_owned());
        }
    }
    for stray in kept.iter().filter(|name| !fresh.contains_key(*name)) {
        if check {
            bail!("{GENERATED}/{stray} comes from no schema in {SCHEMAS}/; `cargo xtask proto` removes it");
        }
        fs::remove_file(folder.join(stray)).with_context(|| format!("cannot remove {GENERATED}/{stray}"))?;
    }
    for (name, code) in &fresh {
        let path = folder.join(name);
        if !check {
            fs::write(&path, code).with_context(|| format!("cannot write {GENERATED}/{name}"))?;
        } else if fs::read_to_string(&path).ok().as_ref() != Some(code) {
            bail!("{GENERATED}/{name} is missing or out of date; write it anew with `cargo xtask proto`");
        }
    }
    Ok(format!("proto: {} generated file(s) {}", fresh.len(), if check { "are up to date" } else { "written" }))
}

/// Writes the descriptors of the schemas below `root`, as protobuf compilers do.
pub fn descriptors(root: &Path, file: &Path) -> Result<String> {
    let set = compiled(root)?;
    fs::write(file, set.encode_to_vec()).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(format!("proto: the descriptors of {} schema(s) written to {}", set.file.len(), file.display()))
}

/// The files of the generated folder, by name.
fn generate(root: &Path) -> Result<BTreeMap<String, String>> {
    let set = compiled(root)?;
    let packages: BTreeSet<String> = set.file.iter().map(|file| file.package().to_owned()).collect();

    let mut generated = BTreeMap::new();
    generated.insert(PACKAGES.to_owned(), modules(&packages));
    messages(&set, &mut generated)?;
    json(&set, &mut generated)?;
    Ok(generated)
}

fn compiled(root: &Path) -> Result<FileDescriptorSet> {
    let schemas = root.join(SCHEMAS);
    let mut files = Vec::new();
    find(&schemas, &mut files)?;
    files.sort();
    if files.is_empty() {
        bail!("there is no schema in {SCHEMAS}/");
    }
    let mut compiler = protox::Compiler::new([&schemas]).context("cannot set the compiler up")?;
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(&files).context("a schema does not compile")?;
    Ok(compiler.file_descriptor_set())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}

/// The messages and enums, with the schemas' comments.
fn messages(set: &FileDescriptorSet, generated: &mut BTreeMap<String, String>) -> Result<()> {
    let requests =
        set.file.iter().map(|file| (prost_build::Module::from_protobuf_package_name(file.package()), file.clone()));
    let code = prost_build::Config::new().generate(requests.collect()).context("cannot generate the messages")?;
    for (module, code) in code {
        let name = module.parts().collect::<Vec<_>>().join(".");
        generated.insert(format!("{name}.rs"), format!("{HEAD}{code}"));
    }
    Ok(())
}

/// Their JSON form.
fn json(set: &FileDescriptorSet, generated: &mut BTreeMap<String, String>) -> Result<()> {
    let mut builder = pbjson_build::Builder::new();
    builder.register_descriptors(&set.encode_to_vec()).context("cannot read the descriptors")?;
    // As in the binary form: what a newer peer adds is skipped.
    builder.ignore_unknown_fields().ignore_unknown_enum_variants();
    let code = builder.generate(&["."], |_| Ok(Vec::new())).context("cannot generate the JSON form")?;
    for (package, code) in code {
        let code = String::from_utf8(code).context("the generated JSON form is no text")?;
        generated.insert(format!("{package}.serde.rs"), format!("{HEAD}{code}"));
    }
    Ok(())
}

/// The packages as nested modules, each including its code.
fn modules(packages: &BTreeSet<String>) -> String {
    #[derive(Default)]
    struct Tree {
        package: Option<String>,
        below: BTreeMap<String, Tree>,
    }
    fn write(tree: &Tree, depth: usize, out: &mut String) {
        let indent = "    ".repeat(depth);
        for (name, below) in &tree.below {
            match &below.package {
                Some(package) => {
                    let _infallible = writeln!(out, "{indent}/// The package `{package}`.\n{indent}{ALLOW}");
                }
                None => {
                    let _infallible = writeln!(out, "{indent}/// Packages below `{name}`.");
                }
            }
            let _infallible = writeln!(out, "{indent}pub mod {name} {{");
            if let Some(package) = &below.package {
                let _infallible = writeln!(out, "{indent}    include!(\"{package}.rs\");");
                let _infallible = writeln!(out, "{indent}    include!(\"{package}.serde.rs\");");
            }
            write(below, depth + 1, out);
            let _infallible = writeln!(out, "{indent}}}");
        }
    }
    let mut tree = Tree::default();
    for package in packages {
        // The common root is the crate itself.
        let segments = package.strip_prefix("turnkeep.").unwrap_or(package).split('.');
        let leaf = segments.fold(&mut tree, |at, segment| at.below.entry(segment.to_owned()).or_default());
        leaf.package = Some(package.clone());
    }
    let mut out = HEAD.to_owned();
    write(&tree, 0, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_makes_nothing_and_writing_removes_every_stray_file() {
        let root = std::env::temp_dir().join(format!("turnkeep-xtask-proto-{}", std::process::id()));
        let (schemas, folder) = (root.join(SCHEMAS), root.join(GENERATED));
        fs::create_dir_all(&schemas).unwrap();
        fs::write(schemas.join("a.proto"), "syntax = \"proto3\";\npackage turnkeep.a.v1;\nmessage A {}\n").unwrap();
        assert!(run(&root, true).unwrap_err().to_string().contains("is missing"));
        assert!(!folder.exists(), "a check makes no folder");
        run(&root, false).unwrap();
        for stray in ["b.rs", "c.rs"] {
            fs::write(folder.join(stray), "").unwrap();
        }
        assert!(run(&root, true).is_err() && folder.join("b.rs").exists());
        run(&root, false).unwrap();
        assert!(!folder.join("b.rs").exists() && !folder.join("c.rs").exists());
        run(&root, true).unwrap();
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_package_is_a_module_below_its_parents_and_without_the_common_root() {
        let packages = ["turnkeep.a.v1", "turnkeep.a.v2", "b"].map(str::to_owned).into_iter().collect();
        let code = modules(&packages);
        let opened: Vec<&str> = code.lines().filter_map(|line| line.trim().strip_prefix("pub mod ")).collect();
        assert_eq!(opened, ["a {", "v1 {", "v2 {", "b {"]);
        assert!(code.contains("        include!(\"turnkeep.a.v2.serde.rs\");"), "{code}");
    }
}
