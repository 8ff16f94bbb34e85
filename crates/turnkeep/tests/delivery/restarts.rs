//! What is kept of answers across the gateway's end: under a master key everything, without one nothing; and in no case
//! can their text be read in the database's files.

use crate::asking::{Asking, Exit, Takes, Way};
use crate::scene::*;
use crate::support::dialects::{assert_said, saying};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use std::path::Path;

const WAY: Way = Way::Http1;

fn all() -> Vec<Pair> {
    matrix().into_iter().filter(|(way, _)| *way == WAY).map(|(_, pair)| pair).collect()
}

/// The words of an answer and of a question that no file may hold.
const ANSWER: &str = "quartz-lantern";
const QUESTION: &str = "Where is the velvet-anchor?";

/// A long answer to the usual turn, and a short one, of words that are not found by chance, to another.
async fn lab_of_two(pair: Pair) -> turnkeep_lab::Lab {
    let long = format!("{ANSWER} {}", text_for(pair, IN_THE_KERNEL));
    let first = Rule { body_contains: Some("Hello there".into()), text: Some(long), ..Rule::default() };
    let second = Rule { text: Some(ANSWER.into()), ..Rule::default() };
    lab([first, second].map(|rule| Rule { usage: USAGE, ..rule })).await
}

async fn start(plan: &Plan, folder: tempfile::TempDir) -> crate::support::listen::Served {
    crate::support::listen::Served { world: World::in_folder(plan, folder).await, certificate: None }
}

async fn turn_saying(place: &Place, pair: Pair, words: &str) -> Reply {
    let mut asking = Asking::connect(&place.served, WAY, Takes::Everything).await;
    asking.ask(pair, &[], &saying(pair, words).to_string()).await;
    asking.reply().await
}

/// Asserts that no file of a folder holds these words.
fn assert_nowhere(folder: &Path, words: &[&str]) {
    let mut callers = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with("test.db") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let holds = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
        callers += usize::from(holds("tester"));
        for word in words {
            assert!(!holds(word), "{} holds {word:?}", path.display());
        }
    }
    assert!(callers > 0, "what may be read is found this way");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_and_cached_answers_outlive_a_restart_under_a_master_key_and_only_there() {
    join_all(all().into_iter().map(|pair| async move {
        for master in [true, false] {
            let lab = lab_of_two(pair).await;
            let store = if master { MASTER.to_owned() } else { String::new() };
            let plan = Plan { store, ..plan(Up::at(pair.upstream, &lab)) };
            let place = Place { served: start(&plan, tempfile::tempdir().unwrap()).await, lab };
            place.lose(WAY, pair, Exit::Reset).await;
            assert_said(pair, &turn_saying(&place, pair, QUESTION).await, ANSWER);
            let counters = place.closed(2).await;
            assert_eq!((ends(&counters), commits(&counters)[1]), ([1, 1, 0, 0], 1));
            assert_nowhere(place.world().folder(), &[ANSWER, "velvet-anchor"]);

            let Place { served, lab } = place;
            let folder = served.world.stopped().await;
            assert_nowhere(folder.path(), &[ANSWER, "velvet-anchor"]);
            let place = Place { served: start(&plan, folder).await, lab };
            let held = place.turn(WAY, pair).await;
            assert!(said(pair, &held).starts_with(ANSWER), "{pair:?}");
            let cached = turn_saying(&place, pair, QUESTION).await;
            assert_said(pair, &cached, ANSWER);
            let words = [&held, &cached].map(|reply| reply.header("x-turnkeep-cache").unwrap());
            let calls = place.lab.requests().len();
            let want = if master { (["held", "hit"], 2) } else { (["miss", "miss"], 4) };
            assert_eq!((words, calls), want, "{pair:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_wait_for_a_receipt_and_the_answer_is_held_for_the_retry() {
    join_all(all().into_iter().map(|pair| async move {
        let lab = lab_of_two(pair).await;
        let server = "shutdown_grace = \"0s\"\n".to_owned();
        let plan = Plan { server, store: MASTER.to_owned(), ..plan(Up::at(pair.upstream, &lab)) };
        let place = Place { served: start(&plan, tempfile::tempdir().unwrap()).await, lab };
        let asking = place.ask(WAY, pair, Takes::Little).await;
        place.answered(1).await;
        let Place { served, lab } = place;
        let folder = served.world.stopped().await;
        drop(asking);
        let place = Place { served: start(&plan, folder).await, lab };
        let reply = place.turn(WAY, pair).await;
        assert!(said(pair, &reply).starts_with(ANSWER), "{pair:?}");
        assert_eq!((reply.header("x-turnkeep-cache"), place.lab.requests().len()), (Some("held"), 1), "{pair:?}");
        place.closed(1).await;
        let entries = place.served.world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((closed.outcome.as_str(), closed.exact, closed.usage.output), ("completed", true, 40), "{pair:?}");
    }))
    .await;
}
