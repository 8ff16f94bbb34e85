//! Our own process runs out of files: the gateway's fault, whoever was asked. It happens in a child process, since the
//! limit is the whole process's.

use crate::peer;
use std::fs::File;
use std::process::Command;
use turnkeep_base::{FaultKind, Phase};

const CHILD: &str = "TURNKEEP_TEST_WITHOUT_FILES";

#[tokio::test]
async fn without_files_nobody_but_the_gateway_is_to_blame() {
    if std::env::var_os(CHILD).is_some() {
        return in_the_child().await;
    }
    let test = "exhausted::without_files_nobody_but_the_gateway_is_to_blame";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

async fn in_the_child() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let (_listener, authority) = peer::listen().await;
    let (address, name) = (peer::plain(&authority), peer::plain("nobody.invalid:80"));
    let old = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: old.maximum }).unwrap();
    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    for endpoint in [&address, &name] {
        let fault = peer::whole(endpoint).await.unwrap_err();
        assert_eq!((fault.kind, fault.phase), (FaultKind::GatewayExhausted, Phase::Unsent), "{fault}");
        assert_eq!(endpoint.open_connections(), 0);
    }
    drop(held);
    // With files again the same endpoints work, or fail by their own fault.
    let fault = peer::whole(&name).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::DnsFailure, "{fault}");
}
