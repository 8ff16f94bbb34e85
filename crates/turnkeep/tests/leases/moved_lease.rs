//! Conversations of an account whose upstream is at another place under the same name: nobody offers them there, not even
//! once, while the gateway runs and after a restart.

use crate::agent::{Agent, Next as Prompt};
use crate::cascade_scene::{Place, upstream};
use crate::cascade_server::{Cascade, Next};
use crate::devin_lease::{devin, says};
use crate::scene::*;
use crate::support::dialects::assert_said;
use crate::support::world::Plan;
use crate::support::*;
use turnkeep_lab::{Lab, LabOptions};

/// Asserts that no conversation was found, and none was gone.
async fn assert_anew(world: &World, case: &str) {
    let counters = assert_kept(world, 1, 0, case).await;
    assert_eq!(counters["conversation_gone"], 0, "{case}: {counters:#}");
}

const WHOLE: [&str; 3] = ["user: first", "assistant: one", "user: second"];

#[tokio::test(flavor = "multi_thread")]
async fn another_address_of_its_upstream_is_told_the_whole_history_and_never_the_name_of_a_conversation() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        let elsewhere = Cascade::start().await;
        place.world.take_up(&plan(&[("up", upstream("up", elsewhere.addr(), &["a"], ""))])).await;
        talk.clone().hears(&place.world, "answer 1").await;
        assert_eq!(elsewhere.messages(), [WHOLE], "{pair:?}");
        assert_anew(&place.world, &format!("{pair:?}")).await;
        // And back again.
        place.world.take_up(&place.other(&["a"], "")).await;
        talk.clone().header("x-turnkeep-cache", "bypass").hears(&place.world, "answer 2").await;
        assert_eq!(place.server.messages()[1], WHOLE, "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_under_way_when_its_upstream_moves_ends_where_it_began_and_leaves_no_lease() {
    for pair in streamed_and_plain() {
        let place = Place::of(&["a"]).await;
        let talk = place.begun(pair).await;
        place.server.script([Next::Hold("two", " and more")]);
        let mut client = talk.ask(&place.world).await;
        place.server.wait_for_turns(2).await;
        let elsewhere = Cascade::start().await;
        place.world.take_up(&plan(&[("up", upstream("up", elsewhere.addr(), &["a"], ""))])).await;
        place.server.release();
        assert_said(pair, &client.reply().await, "two and more");
        let counters = place.at_rest().await;
        assert_eq!((count(&counters, "size"), count(&counters, "dropped")), (0, 1), "{counters:#}");
        assert_eq!(elsewhere.messages().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_anew_at_another_address_takes_no_lease_of_the_old_one_up() {
    for pair in streamed_and_plain() {
        for moves in [false, true] {
            let store = format!("master_key = {:?}", "ab".repeat(32));
            let kept = |plan: Plan| Plan { store: store.clone(), ..plan };
            let server = Cascade::start().await;
            let world = World::of(&kept(plan(&[("up", upstream("up", server.addr(), &["a"], ""))]))).await;
            server.script([Next::Say("one".into())]);
            let mut talk = begun(&world, pair).await;
            let folder = world.stopped().await;
            let elsewhere = Cascade::start().await;
            let now = if moves { &elsewhere } else { &server };
            let world = World::in_folder(&kept(plan(&[("up", upstream("up", now.addr(), &["a"], ""))])), folder).await;
            now.script([Next::Say("two".into())]);
            talk.hears(&world, "two").await;
            let told = now.messages().pop().unwrap();
            if moves {
                assert_eq!(now.messages(), [WHOLE], "{pair:?}");
                assert_anew(&world, &format!("{pair:?}")).await;
            } else {
                assert_eq!(told, ["user: second"], "{pair:?}: the same place");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_organization_or_address_of_devin_is_told_the_whole_history_and_never_a_session() {
    let pair = streamed_and_plain()[0];
    for how in ["organization", "base_url"] {
        let lab = || async {
            let script = says("first", "one") + &says("second", "two") + &says("first", "two");
            let script = Script::parse(&script).unwrap();
            Lab::start(LabOptions { script, ..LabOptions::default() }).await.unwrap()
        };
        let (here, there) = (lab().await, lab().await);
        let world = World::of(&plan(&[("up", devin(&here, &["a"], ""))])).await;
        let talk = begun(&world, pair).await;
        let (now, text) = match how {
            "organization" => (&here, devin(&here, &["a"], "").replace("org-1", "org-2")),
            _ => (&there, devin(&there, &["a"], "")),
        };
        world.take_up(&plan(&[("up", text)])).await;
        let before = now.requests().len();
        assert_eq!(talk.clone().turn(&world).await.status, 200, "{how}");
        let asked = now.requests().split_off(before);
        let posts: Vec<_> = asked.iter().filter(|asked| asked.method == "POST").map(|asked| &*asked.target).collect();
        let organization = if how == "organization" { "org-2" } else { "org-1" };
        assert_eq!(posts, [format!("/v3/organizations/{organization}/sessions")], "{how}");
        // It is made before anything is asked of a session.
        assert_eq!(asked[0].method, "POST", "{how}: {asked:?}");
        assert_anew(&world, how).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_command_or_home_of_an_agent_is_never_asked_to_take_a_session_up() {
    let pair = streamed_and_plain()[0];
    for how in ["command", "home", "nothing"] {
        let agent = Agent::start().await;
        let text = agent.upstream(&["a"], true, "");
        let world = World::of(&plan(&[("up", text.clone())])).await;
        agent.script([Prompt::Say("one")]);
        let talk = begun(&world, pair).await;
        let other = match how {
            "command" => text.replace("\"sh\", \"-c\"", "\"sh\", \"-e\", \"-c\""),
            "home" => text.replace("/a\"", "/elsewhere\""),
            // The process is another one all the same: its environment changes.
            _ => text.replace("env = {", "env = { MORE = \"words\","),
        };
        assert_ne!(other, text);
        world.take_up(&plan(&[("up", other)])).await;
        talk.clone().hears(&world, "answer 2").await;
        let prompted = agent.prompted();
        assert_ne!(prompted[0].process, prompted[1].process, "{how}");
        let same = how == "nothing";
        assert_eq!((agent.loaded(), prompted[0].session == prompted[1].session), (usize::from(same), same), "{how}");
    }
}
