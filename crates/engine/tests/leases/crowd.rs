//! Many turns at once over an upstream that does anything, with clients that leave, branch and repeat themselves, and
//! accounts that are replaced and switched: whatever the order, each lease ends once, no conversation is in two turns, and
//! none holds a message twice.

use crate::fake::{Act, Beat, Proof};
use crate::turns::Asking;
use crate::world::{Ask, With, World, said, with};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use turnkeep_base::FaultKind;
use turnkeep_engine::route::Reuse;
use turnkeep_policy::conversations::Handling;

const CALLERS: [&str; 3] = ["ann", "bob", "eve"];
const ANSWERS: [&str; 3] = ["alpha", "beta", "gamma"];
const TURNS: usize = 12;

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    fn act(&mut self) -> Act {
        let kinds = [
            FaultKind::RateLimited,
            FaultKind::ConversationGone,
            FaultKind::RequestInvalid,
            FaultKind::UpstreamUnavailable,
            FaultKind::ConnectionReset,
            FaultKind::DeadlineExceeded,
            FaultKind::ModelOverloaded,
        ];
        let answer = self.of(&ANSWERS);
        let whole = vec![Beat::Pause, Beat::Start, Beat::Pause, Beat::Say(answer), Beat::Pause, Beat::End];
        match self.below(12) {
            0 => Act::Refuse(self.of(&kinds), Proof::ByReply),
            1 => Act::Refuse(self.of(&kinds), Proof::ByFailure),
            2 => Act::Refuse(self.of(&kinds), Proof::Nothing),
            3 => Act::Refuse(FaultKind::ConnectRefused, Proof::NeverLeft),
            4 => Act::Answer(vec![Beat::Start, Beat::Pause, Beat::Fault(self.of(&kinds))]),
            5 => Act::Answer(vec![Beat::Start, Beat::Say(answer), Beat::Pause, Beat::Hang]),
            _ => Act::Answer(whole),
        }
    }
}

/// Reads the reply to its end, unless the client leaves after so many looks. What it was answered, if that is complete.
async fn answer(mut asking: Asking, leaves_after: Option<u64>, arrives: bool) -> Option<&'static str> {
    let mut looks = 0;
    let mut body = Vec::new();
    let reader = &mut asking.reader;
    loop {
        if leaves_after.is_some_and(|last| looks >= last) {
            return None;
        }
        looks += 1;
        let chunk = tokio::select! {
            biased;
            chunk = poll_fn(|cx| reader.poll_chunk(cx)) => chunk,
            () = tokio::task::yield_now(), if leaves_after.is_some() => continue,
        };
        match chunk {
            Some(bytes) => body.extend_from_slice(&bytes),
            None => break,
        }
    }
    let turn = asking.turn();
    let ticket = asking.reader.ticket();
    let body = String::from_utf8_lossy(&body).into_owned();
    let whole = body.contains("[DONE]") || body.contains("\"finish_reason\":\"stop\"");
    if arrives && let Some(ticket) = ticket {
        ticket.turn_in(crate::turns::receipt(turn));
    }
    ANSWERS.into_iter().find(|text| whole && body.contains(text))
}

/// One client: a conversation that goes on, with branches and repeats.
async fn client(world: Arc<World>, caller: &'static str, seed: u64, words: Arc<AtomicU64>) {
    let mut dice = Dice(seed | 1);
    let mut history: Vec<String> = Vec::new();
    let mut repeat = false;
    for _ in 0..TURNS {
        if !repeat {
            history.push(format!("word-{}", words.fetch_add(1, Ordering::Relaxed)));
        }
        let text: Vec<&str> = history.iter().map(String::as_str).collect();
        let ask = Ask { caller, bypass: dice.one_in(2), ..said(dice.one_in(2), &text) };
        let leaves = dice.one_in(4).then(|| dice.below(12));
        let arrives = !dice.one_in(4);
        let answered = answer(world.start(&ask), leaves, arrives).await;
        repeat = answered.is_none() || dice.one_in(6);
        if let Some(text) = answered.filter(|_| !repeat) {
            history.push(text.to_owned());
        } else if dice.one_in(3) && history.len() > 2 {
            // Another way from an earlier point.
            history.truncate(history.len() - 2);
            history.truncate(history.len() - (history.len() + 1) % 2);
            repeat = true;
        }
    }
}

async fn run(seed: u64) -> [u64; 5] {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let handling = dice.of(&[Handling::Mutable, Handling::Mutable, Handling::Immutable]);
    let reuse = dice.of(&[Reuse::Prefer, Reuse::Strict]);
    let replay_safe = !dice.one_in(3);
    let world =
        with(With { handling, reuse, replay_safe, accounts: &["a", "b", "c"], max_in_flight: 2, ..With::default() });
    let world = Arc::new(world);
    let acts: Vec<Act> = (0..200).map(|_| dice.act()).collect();
    world.fake.act(acts);
    let words = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = CALLERS
        .into_iter()
        .enumerate()
        .map(|(at, caller)| tokio::spawn(client(world.clone(), caller, seed * 31 + at as u64 + 7, words.clone())))
        .collect();
    for _ in 0..6 {
        for _ in 0..dice.below(40) {
            tokio::task::yield_now().await;
        }
        match dice.below(3) {
            0 => world.configure(&["a", "b"]),
            1 => world.configure(&["b", "c"]),
            _ => world.configure(&["a", "b", "c"]),
        }
    }
    world.configure(&["a", "b", "c"]);
    for client in clients {
        client.await.expect("a client's task ends");
    }
    world.engine.idle().await;
    world.assert_right();
    world.assert_settled(CALLERS.len() as u64 * TURNS as u64);
    let kept = world.fake.kept.lock();
    for (handle, lines) in &kept.transcripts {
        let asked: Vec<&String> = lines.iter().filter(|line| line.starts_with("user: ")).collect();
        let different: std::collections::BTreeSet<_> = asked.iter().collect();
        assert_eq!(asked.len(), different.len(), "seed {seed}: {handle} was told something twice: {lines:?}");
    }
    world.counts()
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_crowd_end_once_each_and_no_conversation_is_in_two_turns_or_told_something_twice() {
    let mut sums = [0; 5];
    for seed in 1..120 {
        for (sum, count) in sums.iter_mut().zip(run(seed).await) {
            *sum += count;
        }
    }
    assert!(sums.iter().all(|sum| *sum > 50), "each of them happened often: {sums:?}");
}
