//! Who may have a trace, where it is asked for, and what becomes of a file that is there.

use crate::scene::at_rest;
use crate::stage::*;
use crate::support::client::{Client, request_bytes};
use crate::support::dialects::CHAT;
use crate::support::world::Plan;
use crate::support::*;
use std::os::unix::fs::PermissionsExt;

const CHATTER: &str = "the-key-that-only-chats";

async fn place() -> (World, String) {
    let lab = lab([Rule { text: Some("one two".into()), ..Rule::default() }]).await;
    let mut plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    plan.more = format!("[[keys]]\nname = \"chatter\"\nsecret = {CHATTER:?}\nscopes = [\"chat\"]\n");
    plan.unix_too = true;
    let world = World::of(&plan).await;
    let reply = world.client().await.turn(CHAT).await;
    at_rest(&world).await;
    (world, reply.header("x-turnkeep-turn").unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_is_given_to_a_viewer_alone() {
    let (world, turn) = place().await;
    let path = format!("/dashboard/api/turns/{turn}/incident");
    let chatter = format!("Bearer {CHATTER}");
    for (authorization, path, status, code) in [
        ("", path.as_str(), 401, "unauthenticated"),
        (chatter.as_str(), path.as_str(), 403, "scope_missing"),
        (&format!("Bearer {KEY}"), "/dashboard/api/turns/turn_00000000000000000000000000/incident", 404, "no_incident"),
        (&format!("Bearer {KEY}"), "/dashboard/api/turns/none/incident", 400, "bad_turn_id"),
        (&format!("Bearer {KEY}"), path.as_str(), 200, ""),
    ] {
        let mut client = world.client().await;
        client.write(&request_bytes("GET", path, &[("authorization", authorization)], b"")).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, status, "{path} {authorization:?}: {}", reply.text());
        let said = reply.json();
        assert_eq!(said["error"]["code"].as_str().unwrap_or_default(), code, "{path}: {said:#}");
    }
    let mut client = Client::tcp(world.addr()).await;
    client.write(&request_bytes("POST", &path, &[], b"{}")).await;
    assert_eq!(client.reply().await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_there_is_replaced_only_when_told_and_a_new_one_is_its_owners_alone() {
    let (world, turn) = place().await;
    let (file, _) = exported(&world, &turn).await;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&file, "precious").unwrap();
    let refused = export(&world, &turn, &file, &[]).await;
    assert_eq!(refused.status, 1, "{}", refused.err);
    assert!(refused.err.contains("is there already; `--force` replaces it"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(export(&world, &turn, &file, &["--force"]).await.status, 0);
    assert_eq!(replay(&file).await.status, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_not_kept_a_key_that_may_not_and_a_gateway_that_is_not_there_are_told_apart() {
    let (world, turn) = place().await;
    let file = world.folder().join("trace.json");
    let unknown = export(&world, "turn_00000000000000000000000000", &file, &[]).await;
    assert_eq!(unknown.status, 1);
    for words in ["no trace of turn_00000000000000000000000000 is kept", "the latest 1024", "shows what the store has"]
    {
        assert!(unknown.err.contains(words), "{words:?}: {}", unknown.err);
    }
    let config = world.file();
    let words = |url: &str| {
        let words = ["explain", "turn", &turn, "--export", file.to_str().unwrap(), "--url", url, "--key-env", "MY_KEY"];
        let words = words.into_iter().chain(["--config", config.to_str().unwrap()]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let run = async |url: &str, key: &str| {
        let words = words(url);
        turnkeep(&words.iter().map(String::as_str).collect::<Vec<_>>(), &[("MY_KEY", key)]).await
    };
    let url = format!("http://{}", world.addr());
    let refused = run(&url, CHATTER).await;
    assert!(refused.status == 1 && refused.err.contains("403") && refused.err.contains("viewer"), "{}", refused.err);
    assert!(!refused.err.contains(CHATTER));
    let none = run(&url, "").await;
    assert!(none.status == 2 && none.err.contains("--key-env"), "{}", none.err);
    let nobody = crate::support::world::nobodys();
    let gone = run(&format!("http://{}", nobody.local_addr().unwrap()), KEY).await;
    assert!(gone.status == 1 && gone.err.contains("cannot be asked") && gone.err.contains("--url"), "{}", gone.err);
    assert!(!file.exists(), "a failure leaves no file");
    let socket = format!("unix:{}", world.folder().join("gateway.sock").display());
    let served = run(&socket, KEY).await;
    assert_eq!((served.status, file.exists()), (0, true), "{}", served.err);
}
