//! Sessions of Devin, over the lab's: gone on with, refused, left, stalled, ended, and never told the same twice.

use crate::scene::*;
use crate::support::dialects::{assert_broke_off, assert_refused, assert_said};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;
use turnkeep_lab::{DevinSession, Lab, LabOptions};

/// What Devin says to a message with these words, and that it waits then.
pub fn says(contains: &str, text: &str) -> String {
    format!(
        "[[devin]]\ncontains = {contains:?}\ntimes = 1\nsteps = [{{ say = {text:?}, acus = 0.5 }}, \
         {{ polls = 0, status = \"running\", detail = \"waiting_for_user\" }}]\n"
    )
}

/// A message with these words is answered by `text`, and by more when the gate is let go.
fn holds(contains: &str, text: &str) -> String {
    format!(
        "[[devin]]\ncontains = {contains:?}\ntimes = 1\nsteps = [{{ say = {text:?}, status = \"running\" }}, \
         {{ gate = \"held\", say = \"more\" }}, {{ polls = 0, status = \"running\", detail = \"waiting_for_user\" }}]\n"
    )
}

/// The call with these words is answered so.
fn call(contains: &str, answer: &str) -> String {
    format!("[[rule]]\nmethod = \"POST\"\nbody_contains = {contains:?}\n{answer}\n")
}

/// An upstream of Devin at this lab with these accounts.
pub fn devin(lab: &Lab, accounts: &[&str], lines: &str) -> String {
    let mut text = format!(
        "[[upstreams]]\nname = \"up\"\nkind = \"devin\"\nbase_url = \"http://{}\"\nquiet = \"30s\"\n{lines}\n",
        lab.addr()
    );
    for account in accounts {
        text += &format!(
            "[[upstreams.accounts]]\nname = {account:?}\norganization = \"org-1\"\nsecret = \"secret-{account}\"\n"
        );
    }
    text
}

struct Devin {
    world: World,
    lab: Lab,
}

impl Devin {
    /// Whose lab goes by this script; the first turn is answered by `one`.
    async fn of(script: &str, accounts: &[&str], lines: &str) -> Devin {
        let script = Script::parse(&(script.to_owned() + &says("first", "one"))).unwrap();
        let lab = Lab::start(LabOptions { script, ..LabOptions::default() }).await.unwrap();
        let world = World::of(&plan(&[("up", devin(&lab, accounts, lines))])).await;
        Devin { world, lab }
    }

    /// A conversation of one whole turn, ready for its second.
    async fn begun(&self, pair: Pair) -> Talk {
        begun(&self.world, pair).await
    }

    fn sessions(&self) -> Vec<DevinSession> {
        self.lab.devin_sessions()
    }

    /// What the user said in a session.
    fn told(&self, session: usize) -> Vec<String> {
        let messages = self.sessions()[session].messages.clone();
        messages.into_iter().filter(|said| said.source == "user").map(|said| said.message).collect()
    }

    /// The calls that began or went on with a session.
    fn posts(&self) -> usize {
        self.lab.requests().iter().filter(|request| request.method == "POST").count()
    }

    async fn kept(&self, size: u64, hits: u64, case: &str) -> Value {
        assert_kept(&self.world, size, hits, case).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_goes_on_in_its_session_and_says_only_what_is_new() {
    join_all(clients().into_iter().map(|pair| async move {
        let place = Devin::of(&(says("second", "two") + &says("third", "three")), &["a", "b"], "").await;
        let mut talk = place.begun(pair).await;
        talk.hears(&place.world, "two").await;
        talk.says("third").hears(&place.world, "three").await;
        let counters = place.kept(1, 2, &format!("{pair:?}")).await;
        assert_eq!((count(&counters, "advanced"), count(&counters, "dropped")), (2, 0), "{counters:#}");
        assert_eq!(
            (place.sessions().len(), place.told(0)),
            (1, ["first", "second", "third"].map(str::to_owned).to_vec())
        );
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_refused_keeps_its_session_and_says_nothing() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        for (answer, status) in [
            ("error = { status = 429, retry_after = 600 }", 429),
            ("error = { status = 402 }", 429),
            ("error = { status = 401 }", 502),
            ("error = { status = 422 }", 422),
        ] {
            let place = Devin::of(&call("second", &format!("times = 1\n{answer}")), &["a"], "").await;
            let talk = place.begun(pair).await;
            assert_refused(pair, &talk.turn(&place.world).await, status);
            let counters = place.kept(1, 1, answer).await;
            assert_eq!(count(&counters, "restored"), 1, "{answer}: {counters:#}");
            assert_eq!((place.told(0), place.posts()), (vec!["first".to_owned()], 2), "{answer}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_in_an_error_is_dropped_after_its_first_words_and_nothing_is_said_again() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let fails = "[[devin]]\ncontains = \"second\"\nsteps = [{ say = \"two\", status = \"running\" }, { status = \"error\" }]\n";
        let place = Devin::of(fails, &["a", "b"], "").await;
        let talk = place.begun(pair).await;
        let reply = talk.turn(&place.world).await;
        if pair.stream {
            assert_broke_off(pair, &reply, "two");
        } else {
            assert_refused(pair, &reply, 502);
        }
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!(count(&counters, "dropped"), 1, "{counters:#}");
        assert_eq!((place.sessions().len(), place.posts()), (1, 2), "not replay-safe");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_fate_is_unknown_is_never_said_again() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Devin::of(&call("second", "fault = \"reset_before_reply\""), &["a", "b"], "").await;
        let talk = place.begun(pair).await;
        assert_refused(pair, &talk.turn(&place.world).await, 502);
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!(count(&counters, "dropped"), 1, "{counters:#}");
        assert_eq!((place.sessions().len(), place.posts()), (1, 2));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_within_a_turn_stops_the_polling_and_drops_the_session() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Devin::of(&(holds("second", "two") + &says("second", "anew")), &["a"], "").await;
        let talk = place.begun(pair).await;
        let client = talk.ask(&place.world).await;
        soon(place.lab.wait_at_gate("held", 1)).await;
        client.leave(Leave::Fin).await;
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!(count(&counters, "dropped"), 1, "{counters:#}");
        let polls = place.sessions()[0].polls;
        // The same request anew is a session of its own, with the whole history.
        talk.clone().hears(&place.world, "anew").await;
        let sessions = place.sessions();
        assert_eq!((sessions.len(), sessions[0].polls), (2, polls), "nobody asks for the first any more");
        assert!(place.told(1)[0].contains("first") && place.told(1)[0].contains("one"), "{:?}", place.told(1));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_session_is_dead_when_its_clock_fires() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let silent = "[[devin]]\ncontains = \"second\"\nsteps = [{ gate = \"never\", say = \"two\" }]\n";
        let place =
            Devin::of(silent, &["a", "b"], "timeouts = { first_content = \"6s\", between = \"6s\", total = \"6s\" }")
                .await;
        let talk = place.begun(pair).await;
        assert_refused(pair, &talk.turn(&place.world).await, 504);
        let counters = place.kept(0, 1, &format!("{pair:?}")).await;
        assert_eq!(count(&counters, "dropped"), 1, "{counters:#}");
        assert_eq!((place.sessions().len(), place.posts()), (1, 2), "never said again");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_exited_is_not_gone_on_with_and_no_client_sees_it() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let exits = "[[devin]]\ncontains = \"second\"\ntimes = 1\nsteps = [{ say = \"two\" }, { polls = 0, status = \"exit\" }]\n";
        let place = Devin::of(&(exits.to_owned() + &says("third", "three")), &["a"], "").await;
        let mut talk = place.begun(pair).await;
        talk.hears(&place.world, "two").await;
        at_rest(&place.world).await;
        talk.says("third").hears(&place.world, "three").await;
        at_rest(&place.world).await;
        assert_eq!((place.sessions().len(), place.told(0).len(), place.told(1).len()), (2, 2, 1));
        for words in ["first", "one", "second", "two", "third"] {
            assert!(place.told(1)[0].contains(words), "{words}: {:?}", place.told(1));
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_caller_never_gets_it_a_shared_key_has_none_and_two_turns_at_once_have_one_each() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let script =
            says("second", "theirs") + &says("second", "nobodys") + &holds("second", "two") + &says("second", "two");
        let place = Devin::of(&script, &["a"], "").await;
        let talk = place.begun(pair).await;
        talk.clone().by(OTHER).hears(&place.world, "theirs").await;
        talk.clone().by(SHARED).hears(&place.world, "nobodys").await;
        place.kept(2, 0, &format!("{pair:?}")).await;
        let mut first = talk.ask(&place.world).await;
        soon(place.lab.wait_at_gate("held", 1)).await;
        assert_said(pair, &talk.turn(&place.world).await, "two");
        place.lab.release("held");
        assert_eq!(first.reply().await.status, 200);
        at_rest(&place.world).await;
        let told: Vec<usize> = (0..place.sessions().len()).map(|at| place.told(at).len()).collect();
        assert_eq!(told, [2, 1, 1, 1], "each in a session of its own");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_removed_within_a_turn_ends_it_whole_and_leaves_no_session_behind() {
    join_all(streamed_and_plain().into_iter().map(|pair| async move {
        let place = Devin::of(&(holds("second", "two") + &says("third", "three")), &["a"], "").await;
        let mut talk = place.begun(pair).await;
        let mut client = talk.ask(&place.world).await;
        soon(place.lab.wait_at_gate("held", 1)).await;
        place.world.take_up(&plan(&[("up", devin(&place.lab, &["b"], ""))])).await;
        place.lab.release("held");
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let words = said(pair, &reply);
        assert!(words.contains("two") && words.contains("more"), "{words}");
        let counters = at_rest(&place.world).await;
        assert_eq!(count(&counters, "size"), 0, "{counters:#}");
        crate::support::dialects::say(pair, &mut talk.body, "assistant", &words);
        talk.says("third").hears(&place.world, "three").await;
        assert_eq!(place.sessions()[1].account, "secret-b");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_cost_in_acus_is_in_the_ledger() {
    let pair = streamed_and_plain()[0];
    let place = Devin::of(&says("second", "two"), &["a"], "").await;
    let talk = place.begun(pair).await;
    talk.clone().hears(&place.world, "two").await;
    at_rest(&place.world).await;
    let entries = place.world.into_ledger().await;
    let units: Vec<_> = entries.iter().map(|entry| entry.closed.as_ref().unwrap().milli_units).collect();
    assert_eq!(units, [Some(500), Some(500)], "of each turn its own");
}
