//! Places that hold no secret, or would hold up whoever reads them.

use super::{SecretSource, hourly};
use crate::secrets::{apart, fetch};
use std::path::Path;
use std::time::Duration;

async fn refused(path: &Path) -> String {
    let source = SecretSource::File(path.to_owned());
    let why = fetch(&source).await.unwrap_err();
    assert_eq!(source.resolve().unwrap_err(), why);
    why
}

#[tokio::test]
async fn only_a_regular_file_is_opened_so_that_no_pipe_or_device_holds_up_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
        let why = refused(path).await;
        assert!(why.ends_with("cannot be read: it is not a regular file"), "{why}");
    }
    let link = folder.path().join("link");
    std::fs::write(folder.path().join("key"), "sk-1\n").unwrap();
    std::os::unix::fs::symlink("key", &link).unwrap();
    assert_eq!(fetch(&SecretSource::File(link)).await.unwrap().expose(), "sk-1");
}

#[tokio::test]
async fn a_file_that_is_too_long_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "x".repeat(64 * 1024 + 1)).unwrap();
    assert!(refused(&file).await.contains("65537 bytes long"));
}

#[test]
fn a_read_that_never_ends_holds_up_neither_its_asker_nor_the_end_of_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (end, ended) = std::sync::mpsc::sync_channel::<()>(1);
    runtime.block_on(async {
        let read = apart(move || ended.recv().is_err());
        assert!(tokio::time::timeout(Duration::from_millis(20), read).await.is_err());
    });
    // With a thread of its own this would wait for ever, as only what follows ends the read.
    drop(runtime);
    drop(end);
}

#[tokio::test]
async fn a_control_character_is_refused_as_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    for (text, part) in [
        ("sk\u{1b}[0m", "holds a control character (U+001B)"),
        ("sk\0", "holds a control character (U+0000)"),
        ("sk\t1", "holds a control character (U+0009)"),
        ("sk\u{85}1", "holds a control character (U+0085)"),
        ("sk\nsk", "holds more than one line"),
    ] {
        std::fs::write(&file, text).unwrap();
        let why = refused(&file).await;
        assert!(why.contains(part), "{text:?}: {why}");
        let plain = SecretSource::Plain(turnkeep_base::Secret::new(text.to_owned()));
        assert!(plain.resolve().unwrap_err().contains(part), "{text:?}");
    }
    let why = fetch(&hourly("printf 'sk\\033'")).await.unwrap_err();
    assert!(why.starts_with("command /bin/sh holds a control character (U+001B); "), "{why}");
}
