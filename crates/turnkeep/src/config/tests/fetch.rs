use super::{only_error, parse};
use crate::config::Fetch;
use std::time::Duration;
use turnkeep_upstream::{Allowed, FetchSpec};

#[test]
fn urls_are_fetched_from_public_hosts_alone_unless_the_file_says_otherwise() {
    let fetch = parse("").fetch;
    assert_eq!(fetch, Fetch::default());
    assert_eq!(fetch.spec(false), Some(FetchSpec::default()));
    let spec = parse(
        "[fetch]\nallow = [\"127.0.0.1:8080\", \"files.example.com:8443\"]\nmax_bytes = \"1MiB\"\n\
                      timeout = \"3s\"\nat_once = 4\n",
    )
    .fetch
    .spec(true)
    .unwrap();
    assert_eq!(
        spec.allow,
        [Allowed::parse("127.0.0.1:8080").unwrap(), Allowed::parse("files.example.com:8443").unwrap()]
    );
    assert_eq!((spec.max_bytes, spec.timeout, spec.at_once), (1 << 20, Duration::from_secs(3), 4));
    assert!(spec.loopback_only);
    assert_eq!(parse("[fetch]\nenabled = false\n").fetch.spec(false), None);
}

#[test]
fn an_allowed_place_that_is_none_is_an_error_with_its_place() {
    let (place, message) = only_error("[fetch]\nallow = [\"127.0.0.1:80\", \"http://a/\"]\n");
    assert_eq!(place, "2:26 fetch.allow[1]");
    assert!(message.contains("HOST:PORT"), "{message}");
    let (place, _) = only_error("[fetch]\nmax_bytes = \"1GiB\"\n");
    assert_eq!(place, "2:13 fetch.max_bytes");
}
