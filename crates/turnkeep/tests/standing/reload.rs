//! Another configuration is taken up while turns run: what is new serves, what is gone takes nothing new, and what accounts
//! have earned stays.

use crate::process::Process;
use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused, assert_said, streamed};
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;
use std::time::Duration;

const SECOND_KEY: &str = "[[keys]]\nname = \"second\"\nsecret = \"the-second-callers-key\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn added_models_accounts_and_keys_serve() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)])).await;
        served(&world.client().await.turn(pair).await);
        assert_refused(pair, &turn_for(&world, pair, "new").await, 404);
        assert_refused(pair, &send(&world, pair, "m", "Hello", "the-second-callers-key").await.reply().await, 401);

        let models = "[[models]]\nname = \"m\"\nroutes = [{ upstream = \"up0\", model = \"upstream-m\" }]\n\
                      [[models]]\nname = \"new\"\nroutes = [{ upstream = \"up0\" }]";
        let mut next = Plan::over([Up::at(pair.upstream, &lab).accounts(&["a", "b"]).slots(1)]).models(models);
        next.more = SECOND_KEY.into();
        let counters = world.take_up(&next).await;
        assert_eq!(counters["config"]["needs_restart"], serde_json::json!([]), "{counters:#}");
        served(&turn_for(&world, pair, "new").await);
        served(&send(&world, pair, "m", "Hello", "the-second-callers-key").await.reply().await);
        keep_asking(&world, pair, served, async || lab.account("secret-b").completed > 0).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_account_and_key_take_nothing_new_while_a_stream_on_them_runs_to_its_end() {
    join_all(streamed().into_iter().map(|pair| async move {
        let words = Rule { text: Some("one two three".into()), ..Rule::default() };
        let lab = lab([of("a", Rule { gate_at: Some(Point::AfterWords(1)), ..held("middle", words) })]).await;
        let mut plan = Plan::over([Up::at(pair.upstream, &lab)]);
        plan.more = SECOND_KEY.into();
        let world = World::of(&plan).await;
        let mut running = send(&world, pair, "m", "Hello", "the-second-callers-key").await;
        running.until("one").await;

        world.take_up(&Plan::over([Up::at(pair.upstream, &lab).accounts(&["b"])])).await;
        assert_refused(pair, &send(&world, pair, "m", "Hello", "the-second-callers-key").await.reply().await, 401);
        let turns = (0..6).map(|_| async { world.client().await.turn(pair).await });
        join_all(turns).await.iter().for_each(served);
        assert_eq!((lab.account("secret-a").requests, lab.account("secret-b").requests), (1, 6));
        lab.release("middle");
        assert_said(pair, &running.reply().await, "one two three");
        assert_eq!(world.until_at_rest().await["accounts"].as_array().unwrap().len(), 1, "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_accounts_late_refusal_changes_nothing_of_one_that_takes_its_name_again() {
    let lab = lab([of("a", times(1, held("late", waiting(429, 900))))]).await;
    let of_names = |names: &[&'static str]| Plan::over([Up::at(Dialect::Chat, &lab).accounts(names)]);
    let world = World::of(&of_names(&["a"])).await;
    let mut running = world.client().await;
    running.ask(CHAT).await;
    soon(lab.wait_at_gate("late", 1)).await;
    world.take_up(&of_names(&["b"])).await;
    world.take_up(&of_names(&["a", "b"])).await;
    lab.release("late");
    served(&running.reply().await);
    assert!(cooldowns(&world.until_at_rest().await, "a").is_empty(), "its epoch is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_is_served_by_an_account_that_is_added_meanwhile() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([of("a", held("held", Rule::default()))]).await;
        let of_names = |names: &[&'static str]| Plan::over([Up::at(pair.upstream, &lab).accounts(names).slots(1)]);
        let world = World::of(&of_names(&["a"])).await;
        let [mut first, mut second] = [world.client().await, world.client().await];
        first.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        second.ask(pair).await;
        world.until("it waits", |counters| counters["waiting"] == 1).await;
        world.take_up(&of_names(&["a", "b"])).await;
        served(&second.reply().await);
        assert_eq!(lab.account("secret-b").completed, 1);
        lab.release("held");
        served(&first.reply().await);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_accounts_have_earned_survives_a_reload() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let lab = lab([of("a", waiting(429, 900)), of("b", refusing(401)), of("c", waiting(402, 700))]).await;
        let of_names =
            |names: &[&'static str], slots| Plan::over([Up::at(pair.upstream, &lab).accounts(names).slots(slots)]);
        let world = World::of(&of_names(&["a", "b", "c", "d"], 4).tuning("budget = 1")).await;
        let out = async || {
            world.counters().await["accounts"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|account| account["status"] == "errored" || account["cooldowns"] != serde_json::json!([]))
                .count()
                == 3
        };
        keep_asking(&world, pair, served, out).await;
        let before = world.until_at_rest().await;
        let after = world.take_up(&of_names(&["d", "c", "b", "a", "e"], 9).tuning("budget = 2")).await;
        for name in ["a", "b", "c", "d"] {
            for key in ["status", "episode", "budget_used"] {
                assert_eq!(account(&before, name)[key], account(&after, name)[key], "{name} {key}");
            }
            let (old, new) = (cooldowns(&before, name), cooldowns(&after, name));
            assert_eq!(old.len(), new.len(), "{name}");
            for (old, new) in old.iter().zip(&new) {
                assert_eq!((&old.0, &old.1), (&new.0, &new.1), "{name}");
                assert_left(new.3, old.3 + 1);
            }
        }
        let asked = ["a", "b", "c"].map(|name| lab.account(&format!("secret-{name}")).requests);
        assert_eq!(asked, [1, 1, 1]);
        served(&world.client().await.turn(pair).await);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_file_changes_nothing_and_is_shown_until_a_valid_one_comes() {
    let lab = lab([]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    served(&world.client().await.turn(CHAT).await);
    let good = plan.toml(world.folder());
    let bad =
        good.replace("max_in_flight = 16", "max_in_flight = 16\nmax_in_flihgt = 3").replace("secret-a", "secret-x");
    world.put(&bad);
    let counters = world.until("it is refused", |counters| counters["config_refused"] == 1).await;
    let problem = counters["config"]["problem"].as_str().unwrap();
    assert!(problem.contains("max_in_flihgt"), "{problem}");
    assert!(!problem.contains("secret-x"), "{problem}");
    assert_eq!(counters["config"]["reloads"], 0);
    served(&world.client().await.turn(CHAT).await);
    assert_eq!(lab.account("secret-a").completed, 2, "nothing of the file was taken up");
    let counters = world.take_up(&plan).await;
    assert!(counters["config"]["problem"].is_null(), "{counters:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_listener_is_named_as_waiting_for_a_restart_while_the_rest_is_taken_up() {
    let lab = lab([]).await;
    let world = World::of(&Plan::over([Up::at(Dialect::Chat, &lab)])).await;
    let mut next = Plan::over([Up::at(Dialect::Chat, &lab).accounts(&["b"])]);
    next.listen = "127.0.0.2:0".into();
    let counters = world.take_up(&next).await;
    assert_eq!(counters["config"]["needs_restart"], serde_json::json!(["server.listen"]));
    served(&world.client().await.turn(CHAT).await);
    assert_eq!(lab.account("secret-b").completed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_the_same_keeps_its_connections_and_one_that_is_not_gets_new_ones() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let (same, other) = (lab([]).await, lab([]).await);
        let models = "[[models]]\nname = \"same\"\nroutes = [{ upstream = \"up0\" }]\n\
                      [[models]]\nname = \"other\"\nroutes = [{ upstream = \"up1\" }]";
        let plan = |lines: &str| {
            let ups = [Up::at(pair.upstream, &same), Up::at(pair.upstream, &other).lines(lines)];
            Plan::over(ups).models(models)
        };
        let world = World::of(&plan("headers = { x-team = \"one\" }")).await;
        for model in ["same", "other"] {
            served(&turn_for(&world, pair, model).await);
        }
        world.until_at_rest().await;
        world.take_up(&plan("headers = { x-team = \"two\" }")).await;
        for model in ["same", "other"] {
            served(&turn_for(&world, pair, model).await);
        }
        let connections = |lab: &turnkeep_lab::Lab| lab.requests().iter().map(|r| r.connection).collect::<Vec<_>>();
        let (kept, fresh) = (connections(&same), connections(&other));
        assert_eq!(kept[0], kept[1], "the pool of an unchanged upstream goes on");
        assert_ne!(fresh[0], fresh[1]);
        let team = other.requests()[1].header("x-team").map(str::to_owned);
        assert_eq!(team.as_deref(), Some("two"));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sighup_the_binary_reads_its_configuration_and_the_files_it_names_again() {
    let lab = lab([]).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("callers-key"), "the-old-key-of-a-caller\n").unwrap();
    let mut plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    plan.more = "[[keys]]\nname = \"filed\"\nsecret = { file = \"callers-key\" }\n".into();
    let process = Process::of(&plan, folder.path()).await;
    assert_eq!(process.turn("the-old-key-of-a-caller").await, 200);
    std::fs::write(folder.path().join("callers-key"), "the-new-key-of-a-caller\n").unwrap();
    assert_eq!(process.turn("the-new-key-of-a-caller").await, 401, "nobody has told it");
    process.hang_up();
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    soon(async {
        while process.counters().await["config"]["reloads"] != 1 {
            looks.tick().await;
        }
    })
    .await;
    assert_eq!(process.turn("the-new-key-of-a-caller").await, 200);
    assert_eq!(process.turn("the-old-key-of-a-caller").await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_is_refused_once_its_callers_key_is_gone_and_asks_no_account() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([of("a", held("held", Rule::default()))]).await;
        let mut plan = Plan::over([Up::at(pair.upstream, &lab).slots(1)]);
        plan.more = SECOND_KEY.into();
        let world = World::of(&plan).await;
        let mut first = world.client().await;
        first.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        let mut second = send(&world, pair, "m", "Hello", "the-second-callers-key").await;
        world.until("it waits", |counters| counters["waiting"] == 1).await;
        world.take_up(&Plan::over([Up::at(pair.upstream, &lab).slots(1)])).await;
        lab.release("held");
        served(&first.reply().await);
        assert_refused(pair, &second.reply().await, 401);
        assert_eq!(lab.account("secret-a").requests, 1, "{pair:?}");
        world.until_at_rest().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_goes_to_where_its_upstream_has_moved_meanwhile() {
    let [old, new] = [lab([held("held", Rule::default())]).await, lab([]).await];
    let world = World::of(&Plan::over([Up::at(Dialect::Chat, &old).slots(1)])).await;
    let [mut first, mut second] = [world.client().await, world.client().await];
    first.ask(CHAT).await;
    soon(old.wait_at_gate("held", 1)).await;
    second.ask(CHAT).await;
    world.until("it waits", |counters| counters["waiting"] == 1).await;
    world.take_up(&Plan::over([Up::at(Dialect::Chat, &new).slots(1)])).await;
    old.release("held");
    served(&first.reply().await);
    served(&second.reply().await);
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_or_half_written_file_takes_no_upstream_and_no_key_away() {
    let lab = lab([]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    let whole = plan.toml(world.folder());
    let cut = &whole[..whole.find("[[upstreams]]").unwrap()];
    for (count, text) in ["", cut].into_iter().enumerate() {
        world.put(text);
        world.until("it is refused", |counters| counters["config_refused"] == count as u64 + 1).await;
        served(&world.client().await.turn(CHAT).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_behind_links_is_followed_when_a_link_further_up_leads_elsewhere() {
    let lab = lab([]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    let folder = world.folder();
    let more = Plan { more: SECOND_KEY.into(), ..Plan::over([Up::at(Dialect::Chat, &lab)]) };
    for (version, text) in [("v1", plan.toml(folder)), ("v2", more.toml(folder))] {
        std::fs::create_dir(folder.join(version)).unwrap();
        std::fs::write(folder.join(version).join("turnkeep.toml"), text).unwrap();
    }
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, folder.join("next")).unwrap();
        std::fs::rename(folder.join("next"), folder.join(name)).unwrap();
    };
    link("v1", "..data");
    link("..data/turnkeep.toml", "turnkeep.toml");
    link("v2", "..data");
    let known = async || {
        let reply = send(&world, CHAT, "m", "Hello", "the-second-callers-key").await.reply().await;
        reply.status == 200
    };
    keep_asking(&world, CHAT, served, known).await;
}
