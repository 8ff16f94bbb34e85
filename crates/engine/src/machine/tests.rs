use super::*;

fn facts() -> TurnFacts {
    TurnFacts {
        streamed: true,
        total: Duration::from_secs(600),
        total_set_by_caller: false,
        routes: 1,
        first_fallback: None,
        larger: false,
        rules: Rules::default(),
    }
}

const GONE: Event = Event::ClientGone { finish: None };
const GONE_BUT_GOES_ON: Event = Event::ClientGone { finish: Some(Duration::from_secs(30)) };

struct Run {
    machine: Machine,
    now: Moment,
}

impl Run {
    fn new(facts: TurnFacts) -> Self {
        let mut run = Run { machine: Machine::new(facts, 7), now: Moment(0) };
        assert_eq!(run.on(Event::Begin), [Effect::LookUp]);
        assert_eq!(run.on(Event::NotKept), [Effect::Acquire]);
        run
    }

    /// At its very beginning.
    fn fresh(facts: TurnFacts) -> Self {
        let mut run = Run { machine: Machine::new(facts, 7), now: Moment(0) };
        run.on(Event::Begin);
        run
    }

    fn on(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.machine.on(event, self.now, &mut out);
        out
    }

    fn attempt(&mut self, account: u32) {
        self.attempt_on(account, 0);
    }

    fn attempt_on(&mut self, account: u32, route: usize) {
        let slot = Event::Slot { account: AccountKey(account), route, clocks: Clocks::default(), replay_safe: true };
        assert_eq!(self.on(slot), [Effect::Record]);
        assert_eq!(self.on(Event::Recorded), [Effect::Dispatch]);
    }

    fn fault(&mut self, kind: FaultKind, phase: Phase) -> Vec<Effect> {
        self.on(Event::Fault(Fault::new(kind, phase, Evidence::default())))
    }

    /// Fires timers until the backoff is over.
    fn sit_out_the_backoff(&mut self) {
        let Some((at, Timer::Backoff)) = self.machine.next_timer() else {
            panic!("no backoff: {:?}", self.machine.next_timer())
        };
        self.now = at;
        assert_eq!(self.on(Event::Timer(Timer::Backoff)), [Effect::Acquire]);
    }
}

/// What a machine wants that has tried these accounts and may retry.
fn wanted(tried: &[u32]) -> WantedSlot {
    let tried = tried.iter().map(|&account| AccountKey(account)).collect();
    WantedSlot { from_route: 0, tried, only: None, larger: false, retry: true }
}

fn shell(words: &str) -> Event {
    let evidence = Evidence::text(words).with_status(403);
    Event::Fault(Fault::new(FaultKind::UpstreamInternal, Phase::Answered, evidence))
}

fn shown(effects: &[Effect]) -> Option<&Fault> {
    effects.iter().find_map(|effect| match effect {
        Effect::WriteError(Ending::Fault(fault)) => Some(fault),
        Effect::WriteError(_)
        | Effect::LookUp
        | Effect::GoOnAlone
        | Effect::MeasurePace
        | Effect::WriteKept
        | Effect::Acquire
        | Effect::Record
        | Effect::Dispatch
        | Effect::ReadOn
        | Effect::OpenHeaders
        | Effect::Heartbeat
        | Effect::Commit
        | Effect::Settle
        | Effect::Cancel
        | Effect::CloseAttempt(_)
        | Effect::TakeBack(_)
        | Effect::CloseTurn(_)
        | Effect::WriteTerminal
        | Effect::End
        | Effect::Abort => None,
    })
}

fn ends_with_error(effects: &[Effect]) -> bool {
    matches!(effects, [.., Effect::CloseTurn(TurnEnd::Failed(_)), Effect::WriteError(_), Effect::End])
}

#[test]
fn a_turn_that_completes_is_closed_before_its_end_is_written() {
    let mut run = Run::new(facts());
    run.attempt(0);
    assert_eq!(run.on(Event::Answering), [Effect::ReadOn]);
    assert_eq!(
        run.on(Event::Read { content: true, progress: Progress::Open, alive: false }),
        [Effect::Commit, Effect::ReadOn]
    );
    let end = run.on(Event::Read { content: false, progress: Progress::Done, alive: false });
    assert_eq!(
        end,
        [
            Effect::CloseAttempt(AttemptEnd::Completed),
            Effect::CloseTurn(TurnEnd::Completed),
            Effect::WriteTerminal,
            Effect::End
        ]
    );
    assert!(run.on(GONE).is_empty(), "nothing happens after the end");
}

#[test]
fn a_fault_before_the_answer_goes_elsewhere_and_after_it_ends_the_turn() {
    let mut run = Run::new(facts());
    run.attempt(0);
    let effects = run.fault(FaultKind::RateLimited, Phase::Answered);
    assert!(matches!(effects[..], [Effect::Cancel, Effect::CloseAttempt(AttemptEnd::Failed(_)), Effect::Acquire]));
    assert_eq!(run.machine.wanted().tried, [AccountKey(0)]);
    run.attempt(1);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    assert!(ends_with_error(&run.fault(FaultKind::ConnectionReset, Phase::Answered)));
}

#[test]
fn refused_attempts_do_not_count_but_ten_dispatches_are_the_end() {
    let mut run = Run::new(facts());
    for account in 0..9 {
        run.attempt(account);
        assert_eq!(run.fault(FaultKind::RateLimited, Phase::Answered).last(), Some(&Effect::Acquire));
    }
    run.attempt(9);
    assert!(ends_with_error(&run.fault(FaultKind::RateLimited, Phase::Answered)));
}

#[test]
fn three_counted_attempts_are_the_end() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::UpstreamUnavailable, Phase::Answered);
    run.sit_out_the_backoff();
    run.attempt(1);
    run.fault(FaultKind::UpstreamUnavailable, Phase::Answered);
    run.sit_out_the_backoff();
    run.attempt(2);
    assert!(ends_with_error(&run.fault(FaultKind::UpstreamUnavailable, Phase::Answered)));
}

#[test]
fn a_fault_that_may_be_repeated_once_is_not_repeated_twice() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::UpstreamInternal, Phase::Answered);
    run.sit_out_the_backoff();
    run.attempt(1);
    assert!(ends_with_error(&run.fault(FaultKind::UpstreamInternal, Phase::Answered)));
}

#[test]
fn a_network_fault_with_nobody_else_is_tried_once_more_on_the_same_account() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::ConnectRefused, Phase::Unsent);
    run.sit_out_the_backoff();
    assert!(run.on(Event::NoSlot(Unavailable::NoAccounts)).is_empty());
    run.sit_out_the_backoff();
    assert!(run.machine.wanted().tried.is_empty());
    run.attempt(0);
    run.fault(FaultKind::ConnectRefused, Phase::Unsent);
    run.sit_out_the_backoff();
    let end = run.on(Event::NoSlot(Unavailable::NoAccounts));
    assert!(
        matches!(&end[..], [.., Effect::WriteError(Ending::Fault(fault)), Effect::End] if fault.kind == FaultKind::ConnectRefused)
    );
}

#[test]
fn an_overload_is_replayed_once_on_the_same_account_and_then_goes_elsewhere() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::ModelOverloaded, Phase::Answered);
    assert_eq!(run.machine.wanted().only, Some(AccountKey(0)));
    run.attempt(0);
    run.fault(FaultKind::ModelOverloaded, Phase::Answered);
    assert_eq!(run.machine.wanted(), wanted(&[0]));
    assert_eq!(run.machine.replays_and_hops(), (1, 0));
}

#[test]
fn an_overloaded_account_that_is_not_free_for_its_replay_does_not_keep_the_turn_from_going_elsewhere() {
    let mut run = Run::new(TurnFacts { routes: 2, ..facts() });
    run.attempt(0);
    run.fault(FaultKind::ModelOverloaded, Phase::Answered);
    assert_eq!(run.machine.wanted().only, Some(AccountKey(0)));
    let cooling = Unavailable::AllCooling { retry_at: Moment(9_000) };
    assert_eq!(run.on(Event::NoSlot(cooling)), [Effect::Acquire]);
    assert_eq!(run.machine.wanted(), wanted(&[0]));
}

#[test]
fn a_later_routes_refusal_does_not_hide_the_fault_that_led_there() {
    let mut run = Run::new(TurnFacts { routes: 2, ..facts() });
    run.attempt_on(0, 0);
    run.fault(FaultKind::UpstreamInternal, Phase::Answered);
    run.sit_out_the_backoff();
    run.attempt_on(1, 1);
    let end = run.fault(FaultKind::ModelNotFound, Phase::Answered);
    assert!(
        matches!(&end[..], [.., Effect::WriteError(Ending::Fault(fault)), Effect::End] if fault.kind == FaultKind::UpstreamInternal)
    );
}

#[test]
fn a_connection_that_breaks_after_the_last_finish_reason_does_not_spoil_the_answer() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Finishing, alive: false });
    run.now = Moment(1_000);
    run.on(Event::Read { content: false, progress: Progress::Finishing, alive: false });
    assert_eq!(run.machine.next_timer(), Some((Moment(2_000), Timer::AfterFinish)), "reading on does not lengthen it");
    assert_eq!(run.fault(FaultKind::StreamTruncated, Phase::Answered), [Effect::Settle]);
    let end = run.on(Event::Read { content: false, progress: Progress::Done, alive: false });
    assert!(end.contains(&Effect::CloseTurn(TurnEnd::Completed)));
}

#[test]
fn a_request_fault_stops_and_an_unknown_model_moves_to_the_next_route() {
    let mut run = Run::new(facts());
    run.attempt(0);
    assert!(ends_with_error(&run.fault(FaultKind::RequestInvalid, Phase::Answered)));
    let mut run = Run::new(TurnFacts { routes: 2, ..facts() });
    run.attempt(0);
    assert_eq!(run.fault(FaultKind::ModelNotFound, Phase::Answered).last(), Some(&Effect::Acquire));
    assert_eq!(run.machine.wanted().from_route, 1);
    run.attempt_on(1, 1);
    assert!(ends_with_error(&run.fault(FaultKind::ModelNotFound, Phase::Answered)));
}

#[test]
fn the_same_refusal_from_a_second_account_convicts_the_request_and_takes_the_charge_back() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(shell("internal error, request 17"));
    run.sit_out_the_backoff();
    run.attempt(1);
    let end = run.on(shell("internal error, request 18"));
    assert_eq!(shown(&end).map(|fault| fault.kind), Some(FaultKind::RequestInvalid));
    assert!(
        matches!(&end[1], Effect::CloseAttempt(AttemptEnd::Failed(fault)) if fault.kind == FaultKind::RequestInvalid)
    );
    assert!(matches!(end[2], Effect::TakeBack(_)));
    assert!(ends_with_error(&end));
}

#[test]
fn a_burst_of_the_gateways_address_ends_the_turn_with_its_own_words_and_a_spent_retry_budget_with_the_fault() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::RateLimited, Phase::Answered);
    let closed = Unavailable::EgressClosed { retry_at: Moment(30_000) };
    let end = run.on(Event::NoSlot(closed));
    assert!(end.contains(&Effect::WriteError(Ending::Unavailable(closed))));
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::ConnectRefused, Phase::Unsent);
    run.sit_out_the_backoff();
    let end = run.on(Event::NoSlot(Unavailable::RetriesSpent));
    assert_eq!(shown(&end).map(|fault| fault.kind), Some(FaultKind::ConnectRefused));
}

#[test]
fn a_model_whose_own_accounts_have_failed_goes_on_to_its_fallback_with_one_attempt_kept_for_it() {
    let facts = TurnFacts { routes: 2, first_fallback: Some(1), ..facts() };
    let mut run = Run::new(facts);
    run.attempt(0);
    run.fault(FaultKind::UpstreamInternal, Phase::Answered);
    run.sit_out_the_backoff();
    run.attempt(1);
    assert_eq!(run.fault(FaultKind::UpstreamInternal, Phase::Answered).last(), Some(&Effect::Acquire));
    let wanted = run.machine.wanted();
    assert_eq!((wanted.from_route, wanted.tried.is_empty()), (1, true));
    run.attempt_on(0, 1);
    assert!(ends_with_error(&run.fault(FaultKind::UpstreamUnavailable, Phase::Answered)), "its one attempt is spent");

    let mut run = Run::new(facts);
    run.attempt(0);
    run.fault(FaultKind::ModelNotEntitled, Phase::Answered);
    assert_eq!(run.on(Event::NoSlot(Unavailable::NoneEntitled)), [Effect::Acquire], "the same account, another model");
    assert_eq!(run.machine.wanted().from_route, 1);
    let mut run = Run::new(facts);
    run.attempt(0);
    assert!(ends_with_error(&run.fault(FaultKind::RequestInvalid, Phase::Answered)), "a refused request stops");
}

#[test]
fn a_refused_request_asks_no_fallback_even_as_the_last_of_the_turns_attempts() {
    let mut run = Run::new(TurnFacts { routes: 2, first_fallback: Some(1), ..facts() });
    for account in 0..2 {
        run.attempt(account);
        run.fault(FaultKind::UpstreamUnavailable, Phase::Answered);
        run.sit_out_the_backoff();
    }
    run.attempt(2);
    assert!(ends_with_error(&run.fault(FaultKind::RequestInvalid, Phase::Answered)));
}

#[test]
fn a_request_that_is_too_long_goes_to_a_larger_model_only_where_one_is_configured_and_only_once() {
    let long = || {
        let mut fault =
            Fault::new(FaultKind::RequestInvalid, Phase::Answered, Evidence::text("too long").with_status(400));
        fault.context_too_long = true;
        Event::Fault(fault)
    };
    let mut run = Run::new(facts());
    run.attempt(0);
    assert!(ends_with_error(&run.on(long())));
    let mut run = Run::new(TurnFacts { larger: true, ..facts() });
    run.attempt(0);
    assert_eq!(run.on(long()).last(), Some(&Effect::Acquire));
    let wanted = run.machine.wanted();
    assert_eq!((wanted.larger, wanted.tried.is_empty(), wanted.retry), (true, true, false));
    run.attempt_on(0, 1);
    assert!(ends_with_error(&run.on(long())));
}

#[test]
fn a_request_that_is_wrong_in_another_way_does_not_go_to_a_larger_model() {
    let mut run = Run::new(TurnFacts { larger: true, ..facts() });
    run.attempt(0);
    assert!(ends_with_error(&run.fault(FaultKind::RequestInvalid, Phase::Answered)));
}

#[test]
fn backoffs_double_up_to_their_bound_and_never_pass_it() {
    let rules = Rules { attempts: 20, dispatches: 20, ..Rules::default() };
    let total = Duration::from_secs(6_000);
    let mut run = Run::new(TurnFacts { rules, streamed: false, total, ..facts() });
    for account in 0..12 {
        run.attempt(account);
        run.fault(FaultKind::UpstreamUnavailable, Phase::Answered);
        let (at, _) = run.machine.next_timer().unwrap();
        let bound = (250u64 << account.min(20)).min(5_000);
        assert!(at.0 - run.now.0 <= bound, "{account}: {}", at.0 - run.now.0);
        run.sit_out_the_backoff();
    }
}

#[test]
fn the_client_leaving_in_a_backoff_ends_the_turn_without_another_attempt() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.fault(FaultKind::UpstreamUnavailable, Phase::Answered);
    assert_eq!(run.on(GONE), [Effect::CloseTurn(TurnEnd::Interrupted), Effect::Abort]);
}

#[test]
fn the_client_leaving_mid_answer_cancels_the_upstream_and_judges_nobody() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    let expected = [
        Effect::Cancel,
        Effect::CloseAttempt(AttemptEnd::Interrupted),
        Effect::CloseTurn(TurnEnd::Interrupted),
        Effect::Abort,
    ];
    assert_eq!(run.on(GONE), expected);
}

#[test]
fn headers_go_out_after_ten_seconds_of_waiting_and_failover_is_still_possible() {
    let mut run = Run::new(facts());
    run.attempt(0);
    assert_eq!(run.machine.next_timer(), Some((Moment(10_000), Timer::OpenAfter)));
    run.now = Moment(10_000);
    assert_eq!(run.on(Event::Timer(Timer::OpenAfter)), [Effect::OpenHeaders, Effect::Heartbeat]);
    assert_eq!(run.machine.next_timer(), Some((Moment(25_000), Timer::Heartbeat)));
    assert_eq!(run.fault(FaultKind::RateLimited, Phase::Answered).last(), Some(&Effect::Acquire));
}

#[test]
fn silence_before_the_first_content_and_between_events_is_a_stall_by_its_own_clock() {
    let mut run = Run::new(facts());
    run.attempt(0);
    let stall = run.on(Event::Timer(Timer::FirstContent));
    assert!(matches!(&stall[1], Effect::CloseAttempt(AttemptEnd::Failed(fault))
        if fault.kind == FaultKind::UpstreamStalled && fault.clock.map(|clock| clock.kind) == Some(ClockKind::FirstContent)));
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    assert!(ends_with_error(&run.on(Event::Timer(Timer::Between))));
}

#[test]
fn the_between_clock_rests_while_the_client_does_not_read_and_a_minute_of_that_is_leaving() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    run.on(Event::Blocked);
    run.now = Moment(40_000);
    run.on(Event::Unblocked);
    assert!(run.on(Event::Blocked).is_empty());
    run.on(Event::Timer(Timer::Heartbeat));
    run.on(Event::Timer(Timer::Heartbeat));
    let slow = (Moment(60_000), Timer::SlowReader);
    let mut timers = run.machine.timers.clone();
    timers.clear(Timer::Heartbeat);
    assert_eq!(timers.next(), Some(slow));
    assert_eq!(run.on(Event::Timer(Timer::SlowReader)).last(), Some(&Effect::Abort));
}

#[test]
fn a_plain_turn_has_no_first_content_clock_but_its_whole_time() {
    let mut run = Run::new(TurnFacts { streamed: false, total_set_by_caller: true, ..facts() });
    run.attempt(0);
    assert_eq!(run.machine.next_timer(), Some((Moment(600_000), Timer::Total)));
    let late = run.on(Event::Timer(Timer::Total));
    assert!(matches!(&late[1], Effect::CloseAttempt(AttemptEnd::Failed(fault))
        if fault.clock.is_some_and(|clock| clock.set_by_caller)));
    assert!(ends_with_error(&late));
}

#[test]
fn a_turn_whose_entry_cannot_be_written_is_not_sent() {
    let mut run = Run::new(facts());
    run.on(Event::Slot { account: AccountKey(0), route: 0, clocks: Clocks::default(), replay_safe: true });
    let effects = run.on(Event::NotRecorded);
    assert_eq!(effects[0], Effect::CloseAttempt(AttemptEnd::Unsent));
    assert!(ends_with_error(&effects));
    assert!(!effects.contains(&Effect::Dispatch));
}

#[test]
fn a_chat_stream_waits_two_seconds_for_its_usage() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Finishing, alive: false });
    assert_eq!(run.machine.next_timer(), Some((Moment(2_000), Timer::AfterFinish)));
    assert_eq!(run.on(Event::Timer(Timer::AfterFinish)), [Effect::Settle]);
}

#[test]
fn whatever_happens_in_whatever_order_a_turn_closes_exactly_once_and_so_does_each_dispatch() {
    fn event(which: u8) -> Event {
        let fault = |kind| Event::Fault(Fault::new(kind, Phase::Answered, Evidence::default()));
        match which {
            0 => Event::Slot { account: AccountKey(0), route: 0, clocks: Clocks::default(), replay_safe: true },
            1 => Event::Recorded,
            2 => Event::Answering,
            3 => Event::Read { content: true, progress: Progress::Open, alive: false },
            4 => Event::Read { content: false, progress: Progress::Done, alive: false },
            5 => fault(FaultKind::UpstreamUnavailable),
            6 => fault(FaultKind::ModelOverloaded),
            7 => Event::Timer(Timer::Backoff),
            8 => Event::Timer(Timer::Total),
            9 => GONE,
            10 => Event::NoSlot(Unavailable::NoAccounts),
            11 => Event::NotRecorded,
            12 => Event::NotKept,
            13 => Event::Kept,
            14 => Event::KeyReused,
            15 => GONE_BUT_GOES_ON,
            16 => Event::Timer(Timer::Finish),
            17 => Event::Enough,
            _ => Event::TooSlow,
        }
    }
    // What the drive loop can report in each stage; everything else cannot happen.
    fn possible(stage: Stage) -> &'static [u8] {
        match stage {
            Stage::Idle | Stage::Ended => &[],
            Stage::LookingUp => &[8, 9, 12, 13, 14, 15],
            Stage::Acquiring => &[0, 8, 9, 10, 15],
            Stage::Recording => &[1, 8, 9, 11],
            Stage::Dispatched => &[2, 5, 6, 8, 9, 15, 16],
            Stage::Answering => &[3, 4, 5, 9, 15, 17, 18],
            Stage::BackingOff => &[7, 8, 9],
        }
    }
    fn walk(path: &mut Vec<u8>, seen: &mut usize) {
        let mut run = Run::fresh(facts());
        let mut effects = Vec::new();
        for &which in path.iter() {
            effects.extend(run.on(event(which)));
        }
        let count = |wanted: fn(&Effect) -> bool| effects.iter().filter(|effect| wanted(effect)).count();
        let turns = count(|effect| matches!(effect, Effect::CloseTurn(_)));
        let dispatched = count(|effect| matches!(effect, Effect::Dispatch));
        let closed = count(|effect| matches!(effect, Effect::CloseAttempt(end) if *end != AttemptEnd::Unsent));
        let open = usize::from(matches!(run.machine.stage, Stage::Dispatched | Stage::Answering));
        assert_eq!(closed + open, dispatched, "{path:?}");
        assert_eq!(turns, usize::from(run.machine.ended()), "{path:?}");
        *seen += 1;
        if path.len() < 12 {
            for &which in possible(run.machine.stage) {
                path.push(which);
                walk(path, seen);
                path.pop();
            }
        }
    }
    let mut seen = 0;
    walk(&mut Vec::new(), &mut seen);
    assert!(seen > 400, "{seen}");
}

#[test]
fn an_answer_that_is_kept_takes_no_slot_and_is_closed_before_it_is_written() {
    let mut run = Run::fresh(facts());
    assert_eq!(run.on(Event::Kept), [Effect::CloseTurn(TurnEnd::Completed), Effect::WriteKept, Effect::End]);
    let mut reused = Run::fresh(facts());
    assert!(ends_with_error(&reused.on(Event::KeyReused)));
}

#[test]
fn an_attempt_whose_client_has_left_goes_on_only_where_the_policy_lets_it_and_within_its_time() {
    let mut run = Run::new(facts());
    assert_eq!(run.on(GONE_BUT_GOES_ON), [Effect::CloseTurn(TurnEnd::Interrupted), Effect::Abort], "nothing runs yet");

    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    assert_eq!(run.on(GONE_BUT_GOES_ON), [Effect::GoOnAlone]);
    assert!(run.machine.is_alone() && !run.machine.committed(), "it left before the answer began");
    let read = run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    assert_eq!(read, [Effect::Commit, Effect::ReadOn]);
    assert!(!run.machine.committed());
    run.now = Moment(30_000);
    let end = run.on(Event::Timer(Timer::Finish));
    let interrupted = Effect::CloseAttempt(AttemptEnd::Interrupted);
    assert_eq!(end, [Effect::Cancel, interrupted, Effect::CloseTurn(TurnEnd::Interrupted), Effect::Abort]);
}

#[test]
fn an_attempt_that_goes_on_alone_and_completes_is_a_completed_turn() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    run.on(GONE_BUT_GOES_ON);
    assert!(run.machine.committed());
    let end = run.on(Event::Read { content: false, progress: Progress::Done, alive: false });
    assert!(end.contains(&Effect::CloseTurn(TurnEnd::Completed)), "{end:?}");
}

#[test]
fn an_attempt_that_fails_when_nobody_waits_is_not_tried_again() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(GONE_BUT_GOES_ON);
    let end = run.fault(FaultKind::UpstreamUnavailable, Phase::Answered);
    assert!(end.contains(&Effect::CloseTurn(TurnEnd::Interrupted)) && !end.contains(&Effect::Acquire), "{end:?}");
}

#[test]
fn a_reader_that_was_waited_for_when_it_left_is_waited_for_no_longer() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    run.on(Event::Blocked);
    assert_eq!(run.on(GONE_BUT_GOES_ON), [Effect::GoOnAlone, Effect::ReadOn]);
}

#[test]
fn the_readers_pace_is_looked_at_every_minute_while_it_has_something_to_read() {
    let mut run = Run::new(facts());
    run.attempt(0);
    run.on(Event::Answering);
    run.on(Event::Read { content: true, progress: Progress::Open, alive: false });
    assert_eq!(run.on(Event::Timer(Timer::Pace)), [Effect::MeasurePace]);
    let end = run.on(Event::TooSlow);
    assert!(end.contains(&Effect::Cancel) && end.contains(&Effect::CloseTurn(TurnEnd::Interrupted)), "{end:?}");
}

#[test]
fn a_turn_goes_on_without_its_entry_only_where_the_operator_has_said_so() {
    let rules = Rules { serve_unrecorded: true, ..Rules::default() };
    let mut run = Run::new(TurnFacts { rules, ..facts() });
    run.on(Event::Slot { account: AccountKey(0), route: 0, clocks: Clocks::default(), replay_safe: true });
    assert_eq!(run.on(Event::NotRecorded), [Effect::Dispatch]);
}
