//! What stays in the gateway after turns: nothing, however they ended, and however often somebody looks.

use crate::kit::*;
use crate::support::client::request_bytes;
use crate::support::dialects::assert_said;
use crate::support::world::Plan;
use crate::support::{Fault, Leave, Point, Rule, Up, World, lab, soon};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_turns_that_have_ended_however_they_ended() {
    each(async |pair| {
        const ROUNDS: usize = 8;
        let middle = Some(Point::AfterWords(2));
        let of_words = |words: &str, rule: Rule| Rule { body_contains: Some(words.into()), ..rule };
        let lab = lab([
            of_words("leave", Rule { gate_at: middle, ..held("left") }),
            of_words("break", fault(Fault::CloseMidStream, middle)),
            of_words("refuse", error(400)),
            of_words("fail", error(503)),
            good(),
        ])
        .await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]);
        let world = World::of(&Plan::over([up]).tuning(QUICK)).await;
        for round in 1..=ROUNDS {
            assert_said(pair, &turn_of(&world, pair, round).await, WORDS);
            for words in ["break", "refuse", "fail"] {
                assert!(turn_saying(&world, pair, words).await.status >= 200);
            }
            let mut client = world.client().await;
            let body = crate::support::dialects::saying(pair, "leave").to_string();
            client.ask_with(pair, &[], body.as_bytes()).await;
            soon(lab.wait_at_gate("left", round)).await;
            client.leave(Leave::BOTH[round % 2]).await;
        }
        let nothing =
            |counters: &serde_json::Value| counters["now"]["turns_open"] == 0 && counters["now"]["recorded_bytes"] == 0;
        world.until("nothing under way", nothing).await;
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["waiting"], &counters["callers"][0]["in_flight"]), (&0.into(), &0.into()), "{pair:?}");
        assert_eq!(counters["callers"][0]["reserved"]["tokens"], 0, "{pair:?} {counters:#}");
        assert_eq!((lab.in_flight(), counters["held"]["size"].as_u64()), (0, Some(0)), "{pair:?} {counters:#}");
        // Each conversation that was answered is bound once, and no other.
        assert_eq!(counters["affinity"]["size"].as_u64(), Some(ROUNDS as u64), "{pair:?} {counters:#}");
        assert_eq!(counters["continuity"]["size"].as_u64(), Some(1), "of the same words: {pair:?} {counters:#}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_for_the_numbers_again_and_again_makes_them_no_larger() {
    each_streamed(async |pair| {
        let lab = lab([good()]).await;
        let world = World::simple(pair, &lab).await;
        assert_said(pair, &turn(&world, pair).await, WORDS);
        let mut client = world.client().await;
        let mut sizes = Vec::new();
        for _ in 0..200 {
            client.write(&request_bytes("GET", "/metrics", &[], b"")).await;
            let reply = client.reply().await;
            assert_eq!(reply.status, 200);
            sizes.push(reply.body.len());
        }
        assert!(sizes[199] < sizes[9] + 64, "{sizes:?}");
        assert_said(pair, &turn(&world, pair).await, WORDS);
    })
    .await;
}
