//! Answers that are given a second time: held, cached, joined, and under an idempotency key.

use crate::world::{Act, Ask, BOUND, Differs, Step, Told, World, ask, different, world};
use std::sync::Arc;
use tokio::sync::Semaphore;
use turnkeep_base::Dialect;
use turnkeep_engine::ports::Again;
use turnkeep_engine::route::OnClientGone;

fn uncached(stream: bool) -> Ask {
    Ask { cache: false, ..ask(stream) }
}

#[tokio::test]
async fn an_answer_that_did_not_arrive_is_given_to_the_same_request_of_the_same_caller_once() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
            let case = format!("{client:?} {first} {second}");
            let world = world();
            let lost = world.lost(&Ask { client, ..uncached(first) }).await;
            let again = world.delivered(&Ask { client, ..uncached(second) }).await;
            assert_eq!((world.upstream.calls(), again.header("x-turnkeep-cache")), (1, "held"), "{case}");
            if first == second {
                assert_eq!(again.body, lost.body, "{case}");
            }
            assert!(again.body.contains("one"), "{case}: {}", again.body);
            assert_eq!(world.written.again.lock()[0].how, Again::Held, "{case}");
            let stranger = world.delivered(&Ask { client, caller: "another", ..uncached(first) }).await;
            assert_eq!((world.upstream.calls(), stranger.header("x-turnkeep-cache")), (2, "off"), "{case}");
            world.delivered(&Ask { client, ..uncached(first) }).await;
            assert_eq!(world.upstream.calls(), 3, "{case}: spent by its receipt");
            assert_eq!(world.engine.tally.delivered.get(), 3, "{case}");
            world.assert_settled(4);
        }
    }
}

#[tokio::test]
async fn a_held_answer_that_is_lost_again_is_still_held() {
    let world = world();
    world.lost(&uncached(true)).await;
    world.lost(&uncached(true)).await;
    let told = world.delivered(&uncached(true)).await;
    assert_eq!((world.upstream.calls(), told.header("x-turnkeep-cache")), (1, "held"));
    assert_eq!((world.engine.tally.undelivered.get(), world.engine.tally.delivered.get()), (2, 1));
    assert!(world.written.kept.lock().is_empty(), "spent in the store, too");
}

#[tokio::test]
async fn a_client_that_wants_neither_held_nor_cached_answers_gets_a_new_one() {
    let world = world();
    world.lost(&ask(true)).await;
    world.delivered(&Ask { bypass: true, ..ask(true) }).await;
    assert_eq!(world.upstream.calls(), 2);
}

#[tokio::test]
async fn the_cache_serves_streamed_and_plain_alike_and_costs_the_caller_nothing() {
    for client in [Dialect::Chat, Dialect::Messages] {
        let world = world();
        world.delivered(&Ask { client, ..ask(true) }).await;
        for stream in [true, false] {
            let told = world.delivered(&Ask { client, ..ask(stream) }).await;
            assert_eq!(told.header("x-turnkeep-cache"), "hit", "{client:?} {stream}");
            assert!(told.body.contains("one"), "{client:?}: {}", told.body);
        }
        assert_eq!(world.upstream.calls(), 1);
        let settled = world.written.settled.lock();
        assert_eq!((settled[1].tokens, settled[2].nano_usd), (0, 0), "a hit is billed as a hit");
        assert_eq!(world.written.again.lock().len(), 2);
        assert_eq!(world.commits(), [1, 1, 1], "a hit binds and commits nothing");
    }
}

#[tokio::test]
async fn of_identical_requests_at_once_one_is_asked_and_all_are_answered() {
    let world = world();
    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act({
        let gate = gate.clone();
        move |stream| Act::whole(stream, Some(&gate))
    });
    let all: Vec<_> = (0..5).map(|turn| world.start(&ask(turn % 2 == 0))).collect();
    while world.upstream.calls() == 0 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    let mut words = Vec::new();
    for asking in all {
        let told = asking.told().await.arrives();
        assert!(told.body.contains("one"), "{}", told.body);
        words.push(told.header("x-turnkeep-cache").to_owned());
    }
    world.idle().await;
    assert_eq!(world.upstream.calls(), 1);
    words.sort();
    assert_eq!(words, ["joined", "joined", "joined", "joined", "miss"]);
    world.assert_settled(5);
}

#[tokio::test]
async fn when_the_one_that_is_asked_fails_another_is() {
    let world = world();
    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act({
        let gate = gate.clone();
        move |stream| Act::whole(stream, Some(&gate))
    });
    let first = world.start(&ask(true));
    let second = world.start(&ask(true));
    while world.upstream.calls() == 0 {
        tokio::task::yield_now().await;
    }
    drop(first);
    gate.add_permits(2);
    let told = second.told().await.arrives();
    assert!(told.body.contains("one"));
    world.idle().await;
    assert_eq!(world.upstream.calls(), 2);
}

fn finishing() -> (World, Arc<Semaphore>) {
    let policy = OnClientGone::Finish { max_tokens: 1_000, max_time: BOUND };
    let world = different(Differs { on_client_gone: policy, ..Differs::default() });
    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act({
        let gate = gate.clone();
        move |stream| Act::whole(stream, Some(&gate))
    });
    (world, gate)
}

#[tokio::test]
async fn a_turn_that_goes_on_alone_is_joined_by_the_same_request_and_else_held() {
    for joined in [true, false] {
        for stream in [true, false] {
            let (world, gate) = finishing();
            let first = world.start(&uncached(stream));
            while world.upstream.calls() == 0 {
                tokio::task::yield_now().await;
            }
            drop(first);
            let mut second = None;
            if joined {
                while world.engine.kept.joinable() == 0 {
                    tokio::task::yield_now().await;
                }
                second = Some(world.start(&uncached(stream)));
            }
            gate.add_permits(1);
            if second.is_none() {
                world.idle().await;
            }
            let second = second.unwrap_or_else(|| world.start(&uncached(stream)));
            let told: Told = second.told().await.arrives();
            world.idle().await;
            let word = if joined { "joined" } else { "held" };
            assert_eq!((told.header("x-turnkeep-cache"), world.upstream.calls()), (word, 1));
            assert!(told.body.contains("one"));
            let tally = &world.engine.tally;
            assert_eq!((tally.undelivered.get(), tally.delivered.get()), (1, 1));
            assert_eq!(world.commits(), [0, 0, 0], "whoever it was made for never got it");
            world.assert_unblamed();
            world.assert_settled(2);
        }
    }
}

#[tokio::test]
async fn an_idempotency_key_joins_replays_and_refuses_another_body() {
    let world = world();
    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act({
        let gate = gate.clone();
        move |stream| Act::whole(stream, Some(&gate))
    });
    let keyed = Ask { idempotency: Some("k-1"), ..uncached(false) };
    let first = world.start(&keyed);
    while world.upstream.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let other = Ask { messages: r#"{"role":"user","content":"other"}"#.into(), ..keyed.clone() };
    let refused = world.start(&other).told().await;
    assert_eq!(refused.status.as_u16(), 422);
    assert!(refused.body.contains("idempotency"), "{}", refused.body);
    let second = world.start(&keyed);
    gate.add_permits(1);
    let first = first.told().await.arrives();
    let second = second.told().await.arrives();
    assert_eq!((first.body, second.header("x-turnkeep-cache")), (second.body.clone(), "joined"));
    world.idle().await;
    let third = world.delivered(&keyed).await;
    assert_eq!((third.body.clone(), third.header("x-turnkeep-cache")), (second.body, "hit"));
    assert_eq!(world.start(&other).told().await.status.as_u16(), 422);
    assert_eq!(world.upstream.calls(), 1);
    let stranger = world.start(&Ask { caller: "another", ..other });
    gate.add_permits(1);
    assert_eq!(stranger.told().await.status.as_u16(), 200, "a key is its caller's own");
}

#[tokio::test]
async fn kept_answers_are_there_after_a_restart() {
    let before = world();
    before.lost(&uncached(true)).await;
    before.delivered(&Ask { messages: r#"{"role":"user","content":"cached"}"#.into(), ..ask(true) }).await;
    let after = world();
    after.engine.take_up_kept(before.written.kept.lock().values().cloned().collect());
    let held = after.delivered(&uncached(true)).await;
    assert_eq!(held.header("x-turnkeep-cache"), "held");
    let cached = after.delivered(&Ask { messages: r#"{"role":"user","content":"cached"}"#.into(), ..ask(false) }).await;
    assert_eq!((cached.header("x-turnkeep-cache"), after.upstream.calls()), ("hit", 0));
}

#[tokio::test]
async fn a_retry_that_is_faster_than_the_news_of_the_loss_gets_the_answer_that_was_lost() {
    for stream in [true, false] {
        let world = world();
        let first = world.start(&uncached(stream)).told().await;
        while world.engine.kept.joinable() == 0 {
            tokio::task::yield_now().await;
        }
        let retry = world.start(&uncached(stream));
        let stranger = world.start(&Ask { caller: "another", ..uncached(stream) }).told().await.arrives();
        assert_eq!(stranger.header("x-turnkeep-cache"), "off", "another caller waits for nothing");
        first.goes_missing();
        let told = retry.told().await.arrives();
        assert_eq!((told.header("x-turnkeep-cache"), world.upstream.calls()), ("held", 2), "{stream}");
        world.idle().await;
        world.assert_settled(3);
    }
}

#[tokio::test]
async fn the_same_request_again_while_the_first_reply_arrives_is_asked_anew() {
    let world = world();
    let first = world.start(&uncached(true)).told().await;
    while world.engine.kept.joinable() == 0 {
        tokio::task::yield_now().await;
    }
    let second = world.start(&uncached(true));
    first.arrives();
    let told = second.told().await.arrives();
    assert_eq!((told.header("x-turnkeep-cache"), world.upstream.calls()), ("off", 2));
    world.idle().await;
    world.assert_settled(2);
}

#[tokio::test]
async fn those_who_wait_for_a_turn_that_fails_run_at_once_and_not_one_after_another() {
    let world = world();
    let gate = Arc::new(Semaphore::new(0));
    world.upstream.act({
        let gate = gate.clone();
        move |stream| Act::whole(stream, Some(&gate))
    });
    let leader = world.start(&ask(true));
    while world.upstream.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let joined: Vec<_> = (0..3).map(|_| world.start(&ask(true))).collect();
    drop(leader);
    // Each of them is asked for before the first one is answered; one account has one slot, so they queue there.
    gate.add_permits(3);
    for asking in joined {
        assert!(asking.told().await.arrives().body.contains("one"));
    }
    world.idle().await;
    assert_eq!(world.upstream.calls(), 4, "they wait for nobody a second time");
}

#[tokio::test]
async fn an_idempotency_key_whose_answer_cannot_change_its_form_remembers_the_one_that_was_made_anew() {
    const UNCHANGEABLE: &str = "{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"m\",\"choices\":[{\"index\":0,\
                                \"message\":{\"role\":\"assistant\",\"content\":\"one\"},\"logprobs\":{\"content\":[{\"token\":\
                                \"one\",\"logprob\":-0.1,\"bytes\":null,\"top_logprobs\":[]}]},\"finish_reason\":\"stop\"}]}";
    let world = world();
    world.upstream.act(|stream| match stream {
        true => Act::whole(true, None),
        false => Act::Answer(vec![Step::Say(UNCHANGEABLE)]),
    });
    let keyed = |stream| Ask { idempotency: Some("k-1"), ..uncached(stream) };
    world.delivered(&keyed(false)).await;
    let anew = world.delivered(&keyed(true)).await;
    assert_eq!((world.upstream.calls(), anew.header("x-turnkeep-cache")), (2, "off"));
    let again = world.delivered(&keyed(true)).await;
    assert_eq!((world.upstream.calls(), again.header("x-turnkeep-cache")), (2, "hit"));
}

const ONE_CONVERSATION: Option<&str> = Some(r#"{"conversation":"conv_1"}"#);
const ANOTHER: Option<&str> = Some(r#"{"conversation":"conv_2"}"#);

#[tokio::test]
async fn a_held_answer_of_one_conversation_is_not_given_in_another_that_holds_the_same() {
    let world = world();
    world.lost(&Ask { shown: ONE_CONVERSATION, ..uncached(true) }).await;
    let other = world.delivered(&Ask { shown: ANOTHER, ..uncached(true) }).await;
    assert_eq!((world.upstream.calls(), other.header("x-turnkeep-cache")), (2, "off"));
    let own = world.delivered(&Ask { shown: ONE_CONVERSATION, ..uncached(true) }).await;
    assert_eq!((world.upstream.calls(), own.header("x-turnkeep-cache")), (2, "held"));
}

#[tokio::test]
async fn an_answer_on_its_way_in_one_conversation_is_not_waited_for_in_another() {
    let world = world();
    let first = world.start(&Ask { shown: ONE_CONVERSATION, ..uncached(true) }).told().await;
    while world.engine.kept.joinable() == 0 {
        tokio::task::yield_now().await;
    }
    let retry = world.start(&Ask { shown: ONE_CONVERSATION, ..uncached(true) });
    let other = world.start(&Ask { shown: ANOTHER, ..uncached(true) }).told().await.arrives();
    assert_eq!((other.header("x-turnkeep-cache"), world.upstream.calls()), ("off", 2));
    first.goes_missing();
    assert_eq!(retry.told().await.arrives().header("x-turnkeep-cache"), "held");
}
