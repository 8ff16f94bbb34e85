//! Sessions of agents that are processes: gone on with, refused, left, crashed; and that no prompt is told twice.

use crate::agent::{Agent, Next};
use crate::processes::gone;
use crate::scene::*;
use crate::support::binary::serve;
use crate::support::dialects::{assert_broke_off, assert_refused, assert_said, say};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;

struct Agents {
    world: World,
    agent: Agent,
}

impl Agents {
    async fn of(accounts: &[&str]) -> Agents {
        Agents::with(accounts, false, "").await
    }

    async fn with(accounts: &[&str], loads: bool, lines: &str) -> Agents {
        let agent = Agent::start().await;
        let world = World::of(&plan(&[("up", agent.upstream(accounts, loads, lines))])).await;
        Agents { world, agent }
    }

    /// A conversation of one whole turn, ready for its second.
    async fn begun(&self, pair: Pair) -> Talk {
        self.agent.script([Next::Say("one")]);
        begun(&self.world, pair).await
    }

    async fn kept(&self, size: u64, hits: u64, case: &str) -> Value {
        let counters = assert_kept(&self.world, size, hits, case).await;
        self.agent.assert_transcripts_are_whole();
        counters
    }

    /// The sessions that prompts came to, in order.
    fn sessions(&self) -> Vec<String> {
        self.agent.prompted().into_iter().map(|prompted| prompted.session).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_goes_on_in_its_session_and_prompts_only_what_is_new() {
    join_all(clients().into_iter().map(|pair| async move {
        let place = Agents::of(&["a", "b"]).await;
        let mut talk = place.begun(pair).await;
        talk.hears(&place.world, "answer 2").await;
        talk.says("third").hears(&place.world, "answer 3").await;
        let counters = place.kept(1, 2, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "advanced"), count(&counters, "dropped")), (2, 0), "{counters:#}");
        let texts: Vec<_> = place.agent.prompted().into_iter().map(|prompted| prompted.texts).collect();
        assert_eq!(texts, [["first"], ["second"], ["third"]], "{pair:?}");
        assert!(place.sessions().windows(2).all(|two| two[0] == two[1]), "{:?}", place.sessions());
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_refused_keeps_its_session_and_the_same_after_its_first_words_drops_it() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        for (code, status) in [(451, 451), (429, 429), (402, 429), (-32000, 502)] {
            for before in [true, false] {
                let place = Agents::of(&["a"]).await;
                let talk = place.begun(pair).await;
                place.agent.script([if before { Next::Error(code) } else { Next::Fail("two", code) }]);
                let reply = talk.turn(&place.world).await;
                if before || !pair.stream {
                    assert_refused(pair, &reply, status);
                } else {
                    assert_broke_off(pair, &reply, "two");
                }
                let case = format!("{pair:?} {code}, before {before}");
                let counters = place.kept(u64::from(before), 1, &case).await;
                let restored = count(&counters, "restored");
                assert_eq!((restored, count(&counters, "dropped")), (u64::from(before), u64::from(!before)), "{case}");
                assert_eq!(place.agent.prompted().len(), 2, "{case}: nothing is prompted again");
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_inside_may_have_begun_so_its_session_is_dropped_and_nothing_is_sent_again() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Agents::of(&["a", "b"]).await;
        let talk = place.begun(pair).await;
        place.agent.script([Next::Error(-32603)]);
        assert_refused(pair, &talk.turn(&place.world).await, 502);
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "dropped"), place.agent.prompted().len()), (1, 2), "{counters:#}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_agent_has_lost_is_begun_anew_with_the_history_and_no_client_sees_it() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Agents::of(&["a"]).await;
        let mut talk = place.begun(pair).await;
        place.agent.script([Next::Lost, Next::Say("two")]);
        talk.hears(&place.world, "two").await;
        let counters = place.kept(1, 1, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "dropped"), &counters["conversation_gone"]), (1, &1.into()), "{counters:#}");
        let last = place.agent.prompted().pop().unwrap();
        let told = last.texts.join(" ");
        assert!(["first", "one", "second"].iter().all(|words| told.contains(words)), "{told}");
        talk.says("third").hears(&place.world, "answer 4").await;
        place.kept(1, 2, &format!("{pair:?}, again")).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_within_a_turn_cancels_it_at_the_agent_and_drops_its_session() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Agents::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.agent.script([Next::Hold("two", " and more"), Next::Say("anew")]);
        let mut client = talk.ask(&place.world).await;
        place.agent.wait_for_prompts(2).await;
        if pair.stream {
            client.until("two").await;
        }
        client.leave(Leave::Fin).await;
        place.agent.wait_for_cancels(1).await;
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "dropped"), count(&counters, "restored")), (1, 0), "{counters:#}");
        talk.clone().hears(&place.world, "anew").await;
        let sessions = place.sessions();
        assert_eq!(sessions[0], sessions[1]);
        assert_ne!(sessions[1], sessions[2], "the whole history in a session of its own");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_agents_turn_is_dead_when_its_clock_fires_and_is_cancelled() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        // A plain turn has its total alone.
        let lines = "timeouts = { first_content = \"5s\", between = \"5s\", total = \"5s\" }";
        let place = Agents::with(&["a", "b"], false, lines).await;
        let talk = place.begun(pair).await;
        place.agent.script([Next::Hold("two", " and more")]);
        let reply = talk.turn(&place.world).await;
        if pair.stream {
            assert_broke_off(pair, &reply, "two");
        } else {
            assert_refused(pair, &reply, 504);
        }
        place.agent.wait_for_cancels(1).await;
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "dropped"), place.agent.prompted().len()), (1, 2), "{counters:#}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_crashes_within_a_turn_ends_it_and_its_sessions_unless_they_can_be_taken_up() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        for loads in [false, true] {
            let place = Agents::with(&["a"], loads, "").await;
            let other = place.begun(pair).await;
            let mut talk = Talk::begin(pair, "something else");
            place.agent.script([Next::Say("it is")]);
            talk.hears(&place.world, "it is").await;
            at_rest(&place.world).await;
            talk.says("and more");
            place.agent.script([Next::Crash]);
            assert_refused(pair, &talk.turn(&place.world).await, 503);
            at_rest(&place.world).await;
            assert_eq!(place.agent.prompted().len(), 3, "not sent again");
            // Another session of the same process.
            other.clone().hears(&place.world, "answer 4").await;
            let last = place.agent.prompted().pop().unwrap();
            let sessions = place.sessions();
            assert_eq!((sessions[0] == last.session, last.texts == ["second"]), (loads, loads), "{last:?}");
            assert_eq!(place.agent.loaded(), usize::from(loads));
            assert_ne!(place.agent.prompted()[0].process, last.process);
            place.agent.assert_transcripts_are_whole();
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_caller_never_gets_it_a_shared_key_has_none_and_two_turns_at_once_have_one_each() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Agents::of(&["a"]).await;
        let talk = place.begun(pair).await;
        talk.clone().by(OTHER).hears(&place.world, "answer 2").await;
        talk.clone().by(SHARED).hears(&place.world, "answer 3").await;
        place.kept(2, 0, &format!("{pair:?}")).await;
        place.agent.script([Next::Hold("two", " and more"), Next::Hold("two", " and more")]);
        let mut first = talk.ask(&place.world).await;
        place.agent.wait_for_prompts(4).await;
        let mut second = talk.ask(&place.world).await;
        place.agent.wait_for_prompts(5).await;
        place.agent.release();
        for client in [&mut first, &mut second] {
            assert_said(pair, &client.reply().await, "two and more");
        }
        place.kept(2, 1, &format!("{pair:?}")).await;
        let mut sessions = place.sessions();
        assert_eq!(sessions.remove(3), sessions[0], "only the first of both");
        sessions.sort();
        sessions.dedup();
        assert_eq!(sessions.len(), 4);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_may_act_have_a_process_for_each_caller() {
    let pair = streamed_and_plain()[0];
    for (permissions, processes) in [("deny", 1), ("allow-read", 2), ("allow", 2)] {
        let place = Agents::with(&["a"], false, &format!("permissions = {permissions:?}")).await;
        Talk::begin(pair, "first").hears(&place.world, "answer 1").await;
        Talk::begin(pair, "first").by(OTHER).hears(&place.world, "answer 2").await;
        let mut seen: Vec<u64> = place.agent.prompted().into_iter().map(|prompted| prompted.process).collect();
        seen.dedup();
        assert_eq!(seen.len(), processes, "{permissions}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_removed_within_a_turn_ends_it_whole_and_leaves_no_session_behind() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Agents::of(&["a"]).await;
        let mut talk = place.begun(pair).await;
        place.agent.script([Next::Hold("two", " and more")]);
        let mut client = talk.ask(&place.world).await;
        place.agent.wait_for_prompts(2).await;
        place.world.take_up(&plan(&[("up", place.agent.upstream(&["b"], false, ""))])).await;
        place.agent.release();
        assert_said(pair, &client.reply().await, "two and more");
        let counters = at_rest(&place.world).await;
        assert_eq!(count(&counters, "size"), 0, "{counters:#}");
        say(pair, &mut talk.body, "assistant", "two and more");
        talk.says("third").hears(&place.world, "answer 3").await;
        let prompted = place.agent.prompted();
        assert_eq!((prompted[1].account.as_str(), prompted[2].account.as_str()), ("a", "b"));
        assert!(prompted[2].texts.join(" ").contains("first"), "{prompted:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_rules_of_an_upstream_leave_its_processes_and_their_sessions() {
    let pair = streamed_and_plain()[0];
    let place = Agents::of(&["a"]).await;
    let talk = place.begun(pair).await;
    let lines = "timeouts = { between = \"50s\" }\non_client_gone = { finish = { max_tokens = 9, max_seconds = 1 } }";
    place.world.take_up(&plan(&[("up", place.agent.upstream(&["a"], false, lines))])).await;
    talk.clone().hears(&place.world, "answer 2").await;
    place.kept(1, 1, "other clocks").await;
    let prompted = place.agent.prompted();
    assert_eq!(prompted[0].process, prompted[1].process);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_accounts_of_an_upstream_leave_the_processes_and_the_sessions_of_those_that_stay_as_they_are() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        for removed in [false, true] {
            let place = Agents::of(&["a", "b"]).await;
            let mut kept = place.begun(pair).await;
            let mut other = Talk::begin(pair, "something else");
            place.agent.script([Next::Say("it is")]);
            other.hears(&place.world, "it is").await;
            at_rest(&place.world).await;
            let [stays, changes] = <[_; 2]>::try_from(place.agent.prompted()).unwrap();
            assert_ne!(stays.account, changes.account);
            place.agent.script([Next::Hold("two", " and more")]);
            let mut client = kept.ask(&place.world).await;
            place.agent.wait_for_prompts(3).await;
            let all = [stays.account.as_str(), "c", changes.account.as_str()];
            let text = place.agent.upstream(if removed { &all[..2] } else { &all }, false, "");
            let own = format!("ACCOUNT = {:?}", changes.account);
            let text = text.replace(&own, &format!("{own}, MORE = \"words\""));
            place.world.take_up(&plan(&[("up", text)])).await;
            // However long the turns of others last.
            gone(u32::try_from(changes.process).unwrap()).await;
            place.agent.release();
            assert_said(pair, &client.reply().await, "two and more");
            say(pair, &mut kept.body, "assistant", "two and more");
            at_rest(&place.world).await;
            kept.says("third").hears(&place.world, "answer 4").await;
            other.says("second").hears(&place.world, "answer 5").await;
            let prompted = place.agent.prompted();
            let whose = |at: usize| (prompted[at].process, prompted[at].session.as_str());
            assert_eq!([whose(2), whose(3)], [whose(0); 2], "{pair:?}: {prompted:?}");
            assert_eq!(prompted[3].texts, ["third"], "{pair:?}");
            assert_ne!(prompted[4].process, changes.process, "{pair:?}");
            place.agent.assert_transcripts_are_whole();
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_within_a_turn_takes_its_agent_along_and_prompts_nothing_twice() {
    let pair = streamed_and_plain()[0];
    for within in [true, false] {
        let agent = Agent::start().await;
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&[("up", agent.upstream(&["a"], false, ""))]);
        let (mut child, addr) = serve(&plan, folder.path(), None).await;
        let mut talk = Talk::begin(pair, "first");
        agent.script([Next::Say("one")]);
        assert_said(pair, &talk.ask_at(addr).await.reply().await, "one");
        say(pair, &mut talk.body, "assistant", "one");
        talk.says("second");
        let cut = if within {
            agent.script([Next::Hold("two", " and more")]);
            let cut = talk.ask_at(addr).await;
            agent.wait_for_prompts(2).await;
            Some(cut)
        } else {
            None
        };
        child.kill().await.unwrap();
        drop(cut);
        let (_again, addr) = serve(&plan, folder.path(), None).await;
        agent.script([Next::Say("anew")]);
        assert_said(pair, &talk.ask_at(addr).await.reply().await, "anew");
        let prompted = agent.prompted();
        let (first, last) = (&prompted[0], prompted.last().unwrap());
        assert!(first.process != last.process && first.session != last.session, "within {within}: {prompted:?}");
        let told = last.texts.join(" ");
        assert!(["first", "one", "second"].iter().all(|words| told.contains(words)), "{told}");
        agent.assert_transcripts_are_whole();
    }
}
