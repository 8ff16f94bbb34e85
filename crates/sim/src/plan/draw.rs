//! Draws a plan from a seed.

use super::{Client, Dialect, Event, Family, Fault, Happens, Plan, Talk, Turn, Upstream, What};
use crate::streams::Stream;

/// Words of a question that every account refuses in the same way.
pub const SAME_EVERYWHERE: u16 = 0;
/// The models of upstreams whose conversations a turn changes.
const KEEP: [&str; 3] = ["cascade", "devin", "acp"];
/// Turns of a run, at least.
const TURNS: usize = 200;

/// The plan of this seed: at least 200 turns, 3 accounts, 2 callers and 5 faults.
pub fn draw(seed: u64) -> Plan {
    let mut stream = Stream::of(seed, "plan");
    let upstreams = upstreams(&mut stream);
    let callers = stream.within(2..=4) as u8;
    let length_ms = stream.within(20..=300) * 1000;
    let talks = talks(&mut stream, &upstreams, callers, length_ms);
    let faults = faults(&mut stream, &upstreams);
    let events = events(&mut stream, &upstreams, &talks);
    let (finish, pace_ms) = (stream.percent(30), stream.one_of(&[0, 5, 60]));
    let (queue_places, rough) = (stream.one_of(&[0, 0, 0, 1, 3]), stream.one_of(&[0, 0, 2, 10]));
    Plan { seed, upstreams, callers, pace_ms, finish, queue_places, rough, talks, faults, events }
}

fn upstreams(stream: &mut Stream) -> Vec<Upstream> {
    let mut all = Family::ALL.to_vec();
    let many = stream.within(2..=4) as usize;
    let mut chosen = Vec::new();
    while chosen.len() < many {
        let at = stream.within(0..=all.len() as u64 - 1) as usize;
        let (accounts, max_in_flight) = (stream.within(2..=3) as u8, stream.one_of(&[1, 2, 8]));
        chosen.push(Upstream { family: all.remove(at), accounts, max_in_flight });
    }
    chosen.sort_by_key(|upstream| upstream.family);
    chosen
}

fn talks(stream: &mut Stream, upstreams: &[Upstream], callers: u8, length_ms: u64) -> Vec<Talk> {
    let mut talks = Vec::new();
    let mut turns = 0;
    while turns < TURNS {
        let family = stream.one_of(upstreams).family;
        let model = if stream.percent(50) { "any" } else { family.name() };
        let begins = stream.within(0..=length_ms);
        let many = if stream.percent(35) { 1 } else { stream.within(2..=8) };
        let mut at_ms = begins;
        let talk = Talk {
            caller: stream.within(0..=u64::from(callers) - 1) as u8,
            dialect: stream.one_of(&Dialect::ALL),
            model: model.to_owned(),
            stream: stream.percent(75),
            turns: (0..many)
                .map(|_| {
                    at_ms += stream.within(0..=4000);
                    turn(stream, at_ms)
                })
                .collect(),
        };
        turns += talk.turns.len();
        talks.push(talk);
    }
    talks
}

fn turn(stream: &mut Stream, at_ms: u64) -> Turn {
    let client = match stream.within(1..=100) {
        1..=70 => Client::Stays,
        71..=78 => Client::LeavesAfter(stream.within(0..=3000)),
        79..=80 => Client::Returns(stream.within(0..=3000)),
        81..=86 => Client::ResetsAt(stream.within(0..=2500)),
        87..=94 => Client::Slow(stream.within(1..=2000)),
        95..=97 => Client::Twice,
        _ => Client::Again,
    };
    let words = match stream.within(1..=1000) {
        1 => 2000,
        2..=10 => 300,
        11..=40 => SAME_EVERYWHERE,
        41..=200 => stream.within(8..=30) as u16,
        _ => stream.within(1..=7) as u16,
    };
    let idempotency = stream.percent(10).then(|| stream.within(0..=255) as u8);
    Turn { at_ms, words, idempotency, client }
}

fn faults(stream: &mut Stream, upstreams: &[Upstream]) -> Vec<Fault> {
    let many = stream.within(5..=40);
    let fault = |stream: &mut Stream| {
        let upstream = stream.one_of(upstreams);
        let account = stream.within(0..=u64::from(upstream.accounts) - 1) as u8;
        // Several of a kind in a row are what standing is about.
        // Of a server that keeps conversations it is the fault that matters most.
        let fails = upstream.family == Family::Cascade && stream.percent(25);
        let what = if fails { What::FailsAnyway } else { what(stream) };
        Fault { family: upstream.family, account, nth: stream.within(1..=60) as u32, what }
    };
    let mut all = Vec::new();
    for _ in 0..many {
        let first = fault(stream);
        let run = if stream.percent(25) || matches!(first.what, What::Rejected | What::Shell | What::Limited(_)) {
            stream.within(2..=7) as u32
        } else {
            1
        };
        all.extend((0..run).map(|more| {
            // Of two waits the longer one counts.
            let what =
                if let What::Limited(_) = first.what { What::Limited(stream.within(1..=90)) } else { first.what };
            Fault { nth: first.nth + more, what, ..first }
        }));
    }
    if stream.percent(30) {
        // Everybody fails for a while.
        let whats = [What::Status500, What::Status503, What::Html, What::LimitedBare];
        let (from, what) = (stream.within(1..=40) as u32, stream.one_of(&whats));
        for upstream in upstreams {
            let every = (0..upstream.accounts).flat_map(|account| (from..from + 8).map(move |nth| (account, nth)));
            all.extend(every.map(|(account, nth)| Fault { family: upstream.family, account, nth, what }));
        }
    }
    all
}

fn what(stream: &mut Stream) -> What {
    let whats = [
        What::Limited(stream.within(1..=90)),
        What::LimitedBare,
        What::Rejected,
        What::Rejected,
        What::Quota,
        What::Suspended,
        What::NoModel,
        What::Invalid,
        What::Status500,
        What::FailsAnyway,
        What::Shell,
        What::Status503,
        What::Overloaded,
        What::Html,
        What::ResetBefore,
        What::CloseBefore,
        What::ResetMid,
        What::CloseMid,
        What::NoTerminal,
        What::Hang,
        What::BadJson,
        What::ErrorInStream,
        What::Slow(stream.within(10..=200)),
        What::Late(stream.within(100..=90_000)),
    ];
    stream.one_of(&whats)
}

fn events(stream: &mut Stream, upstreams: &[Upstream], talks: &[Talk]) -> Vec<Event> {
    let many = stream.within(0..=8);
    let mut all: Vec<Event> = (0..many)
        .map(|_| {
            let upstream = stream.one_of(upstreams);
            let (family, account) = (upstream.family, stream.within(0..=u64::from(upstream.accounts) - 1) as u8);
            let what = match stream.within(1..=9) {
                1 | 2 => Happens::Crash(stream.within(0..=5000)),
                3 => Happens::Drain,
                4 => Happens::Remove(family, account, stream.one_of(&[300, 1500, 20_000])),
                5 => Happens::Rotate(family, account),
                6 => Happens::Jump(stream.within(0..=7_200_000) as i64 - 3_600_000),
                7 if stream.percent(50) => Happens::Forget(family),
                7 => Happens::Refuse(family, stream.within(100..=20_000)),
                8 => Happens::Outage(stream.within(500..=15_000)),
                _ => Happens::Cut(family),
            };
            // In the middle of somebody's turn.
            let talk = &talks[stream.within(0..=talks.len() as u64 - 1) as usize];
            let turn = &talk.turns[stream.within(0..=talk.turns.len() as u64 - 1) as usize];
            Event { at_ms: turn.at_ms + stream.within(0..=800), what }
        })
        .collect();
    if upstreams.iter().any(|upstream| upstream.family.keeps()) && stream.percent(40) {
        // In the middle of a turn that goes on in a conversation.
        let keeps = |talk: &&Talk| talk.turns.len() > 1 && talk.model != "any";
        let talks: Vec<&Talk> = talks.iter().filter(keeps).filter(|talk| KEEP.contains(&talk.model.as_str())).collect();
        for _ in 0..talks.len().min(3) {
            let talk = stream.one_of(&talks);
            let turn = &talk.turns[stream.within(1..=talk.turns.len() as u64 - 1) as usize];
            all.push(Event {
                at_ms: turn.at_ms + stream.within(5..=400),
                what: Happens::Crash(stream.within(0..=300)),
            });
        }
    }
    all.sort_by_key(|event| event.at_ms);
    all
}
