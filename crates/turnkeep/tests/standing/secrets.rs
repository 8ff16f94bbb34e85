//! Secrets that are found anew when a provider rejects the one there is.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;
use std::path::Path;
use tempfile::TempDir;
use turnkeep_lab::AccountState;

/// A folder with the account's token, and a plan whose one account gets it by a command that notes each of its runs.
fn by_command(lab: &turnkeep_lab::Lab, upstream: Dialect) -> (Plan, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "secret-old");
    let at = folder.path().display();
    let script =
        format!("echo run >> {at}/runs; if [ -f {at}/broken ]; then echo no luck >&2; exit 3; fi; cat {at}/token");
    let lines = format!(
        "[[upstreams.accounts]]\nname = \"a\"\nsecret = {{ command = [\"sh\", \"-c\", {script:?}], every = \"1h\" }}"
    );
    (Plan::over([Up::at(upstream, lab).accounts(&[]).lines(&lines)]), folder)
}

fn put(folder: &Path, token: &str) {
    let next = folder.join("token.next");
    std::fs::write(&next, format!("{token}\n")).unwrap();
    std::fs::rename(next, folder.join("token")).unwrap();
}

fn runs(world: &World) -> usize {
    std::fs::read_to_string(world.folder().join("runs")).unwrap().lines().count()
}

fn served_or_refused(reply: &Reply) {
    assert!([200, 502].contains(&reply.status), "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commands_secret_that_is_rejected_by_many_turns_is_refreshed_once_and_serves_at_once() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let lab = lab([of("old", held("all", refusing(401)))]).await;
        let (plan, folder) = by_command(&lab, pair.upstream);
        let world = World::in_folder(&plan, folder).await;
        assert_eq!(runs(&world), 1);
        let mut clients = Vec::new();
        for _ in 0..12 {
            let mut client = world.client().await;
            client.ask(pair).await;
            clients.push(client);
        }
        soon(lab.wait_at_gate("all", 12)).await;
        put(world.folder(), "secret-new");
        lab.release("all");
        for client in &mut clients {
            served_or_refused(&client.reply().await);
        }
        keep_asking(&world, pair, served_or_refused, async || lab.account("secret-new").completed > 0).await;
        served(&world.client().await.turn(pair).await);
        let counters = world.until_at_rest().await;
        assert_eq!(account(&counters, "a")["status"], "active", "another secret is another chance: {counters:#}");
        assert_eq!(runs(&world), 2, "once at the start and once for all who asked");
        assert_eq!(lab.account("secret-old").requests, 12);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_refusal_of_an_older_secret_is_recorded_and_charged_to_nobody() {
    let rule =
        |words: &str, gate: &str| Rule { body_contains: Some(words.into()), ..of("old", held(gate, refusing(401))) };
    let lab = lab([rule("the early one", "early"), rule("the late one", "late")]).await;
    let (plan, folder) = by_command(&lab, Dialect::Chat);
    let world = World::in_folder(&plan, folder).await;
    let mut early = send(&world, CHAT, "m", "the early one", KEY).await;
    soon(lab.wait_at_gate("early", 1)).await;
    let mut late = send(&world, CHAT, "m", "the late one", KEY).await;
    soon(lab.wait_at_gate("late", 1)).await;
    put(world.folder(), "secret-new");
    lab.release("early");
    assert_refused(CHAT, &early.reply().await, 502);
    keep_asking(&world, CHAT, served_or_refused, async || lab.account("secret-new").completed > 0).await;
    lab.release("late");
    served_or_refused(&late.reply().await);
    let counters = world.until_at_rest().await;
    assert_eq!(account(&counters, "a")["budget_used"], 0, "{counters:#}");
    let told = told(&world, &["explain", "account", "a"], "an older secret was refused").await;
    assert!(told.contains("error budget 1 of 3"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_leaves_the_secret_there_is_and_is_shown() {
    let lab = lab([times(1, refusing(401))]).await;
    let (plan, folder) = by_command(&lab, Dialect::Chat);
    let world = World::in_folder(&plan, folder).await;
    std::fs::write(world.folder().join("broken"), "").unwrap();
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    let counters =
        world.until("the failure is shown", |counters| account(counters, "a")["secret_problem"].is_string()).await;
    let problem = account(&counters, "a")["secret_problem"].as_str().unwrap();
    assert!(problem.contains('3'), "{problem}");
    served(&world.client().await.turn(CHAT).await);
    assert_eq!(lab.account("secret-old").completed, 1);
    assert!(!counters.to_string().contains("secret-old"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_file_is_read_again_when_it_is_rejected() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "secret-old");
        let lines = "[[upstreams.accounts]]\nname = \"a\"\nsecret = { file = \"token\" }";
        let plan = Plan::over([Up::at(pair.upstream, &lab).accounts(&[]).lines(lines)]);
        let world = World::in_folder(&plan, folder).await;
        served(&world.client().await.turn(pair).await);
        lab.set_account("secret-old", AccountState::Revoked);
        put(world.folder(), "secret-new");
        keep_asking(&world, pair, served_or_refused, async || lab.account("secret-new").completed > 0).await;
        assert_eq!(account(&world.until_at_rest().await, "a")["status"], "active");
        assert!(lab.account("secret-old").refused <= 3);
    }))
    .await;
}
