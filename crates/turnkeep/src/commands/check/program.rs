//! Whether a program that the gateway is to start is there.

use super::Failure;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Prints where it is; gives 1 if it is nowhere.
pub(super) fn line(out: &mut impl Write, program: &str) -> Result<usize, Failure> {
    match find(program, std::env::var_os("PATH").as_deref()) {
        Some(path) => {
            writeln!(out, "  command {} found", path.display())?;
            Ok(0)
        }
        None if program.contains('/') => {
            writeln!(out, "  command {program} MISSING: there is no such file that can be run")?;
            Ok(1)
        }
        None => {
            writeln!(
                out,
                "  command {program} MISSING: no folder of PATH has it; install it, or write its whole path"
            )?;
            Ok(1)
        }
    }
}

fn find(program: &str, path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| can_be_run(file));
    }
    std::env::split_paths(path?).map(|folder| folder.join(program)).find(|file| can_be_run(file))
}

fn can_be_run(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_path_or_in_a_folder_of_path_if_it_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let whole = file.to_str().unwrap();
        assert_eq!(find(whole, None), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(whole, None), Some(file.clone()));
        assert_eq!(find("agent", Some(folder.path().as_os_str())), Some(file.clone()));
        assert_eq!(find("agent", None), None);
        let mut out = Vec::new();
        assert_eq!(line(&mut out, "/nowhere/agent").unwrap(), 1);
        assert!(String::from_utf8(out).unwrap().contains("MISSING"));
    }
}
