use super::*;
use kept_at::Desk;

mod kept_at {
    //! A desk for tests: the table, and what became of each lease.
    use super::super::*;
    use std::sync::Mutex;

    pub struct Desk {
        pub table: Mutex<Conversations>,
        pub became: Mutex<Vec<CheckedIn>>,
        pub now: Moment,
    }

    impl CheckIn for Desk {
        fn check_in(&self, loan: Loan, end: LeaseEnd) {
            let became = self.table.lock().unwrap().check_in(self.now, loan, end, |record| record.epoch == 1);
            self.became.lock().unwrap().push(became);
        }
    }
}

fn key(number: u8) -> Fingerprint {
    Fingerprint([number; 16])
}

fn conversation(handle: &str) -> Conversation {
    Conversation { handle: handle.into(), position: Some(1), instance: None }
}

fn record(handling: Handling) -> Record {
    Record {
        conversation: conversation("h1"),
        handling,
        account: AccountId { upstream: "up".into(), account: "a".into() },
        epoch: 1,
        model: "m".into(),
        ends: Moment(0).after(AGE),
        reread: false,
    }
}

fn desk(handling: Handling) -> Arc<Desk> {
    let mut table = Conversations::default();
    table.begin(Moment(0), "ann".into(), key(1), record(handling), |_| true);
    Arc::new(Desk { table: table.into(), became: Default::default(), now: Moment(1) })
}

fn lease(desk: &Arc<Desk>, number: u8) -> Result<ConversationLease<Clean>, Miss> {
    let loan = desk.table.lock().unwrap().take(Moment(1), &"ann".into(), key(number), |record| record.epoch == 1)?;
    Ok(ConversationLease::new(loan, desk.clone()))
}

#[test]
fn a_lease_of_a_mutable_conversation_is_in_one_turn_at_a_time_and_an_immutable_ones_in_any() {
    let one = desk(Handling::Mutable);
    let taken = lease(&one, 1).unwrap();
    assert_eq!(lease(&one, 1).err(), Some(Miss::Unknown));
    taken.restore();
    assert!(lease(&one, 1).is_ok());
    let many = desk(Handling::Immutable);
    let _first = lease(&many, 1).unwrap();
    assert!(lease(&many, 1).is_ok());
}

#[test]
fn each_end_of_a_lease_does_what_its_row_says() {
    use CheckedIn::{Advanced, Dropped, Restored};
    type End = fn(ConversationLease<Clean>);
    let ends: [(&str, End, CheckedIn, CheckedIn); 8] = [
        ("clean, restored", |lease| lease.restore(), Restored, Restored),
        ("clean, let go of", drop, Restored, Restored),
        ("refused", |lease| drop(lease.sent().refused(RefusalProof::by_reply())), Restored, Restored),
        ("sent, let go of", |lease| drop(lease.sent()), Dropped, Restored),
        ("gone", |lease| lease.sent().dead(true), Dropped, Dropped),
        ("stalled", |lease| lease.sent().dead(false), Dropped, Restored),
        ("completed", |lease| lease.sent().completed().advance(key(2), conversation("h2")), Advanced, Advanced),
        ("completed, without a key", |lease| drop(lease.sent().completed()), Dropped, Restored),
    ];
    for (name, end, mutable, immutable) in ends {
        for (handling, expected) in [(Handling::Mutable, mutable), (Handling::Immutable, immutable)] {
            let desk = desk(handling);
            end(lease(&desk, 1).unwrap());
            assert_eq!(*desk.became.lock().unwrap(), [expected], "{name} {handling:?}");
            let old = lease(&desk, 1).is_ok();
            let stays = expected == Restored || (expected == Advanced && handling == Handling::Immutable);
            assert_eq!(old, stays, "{name} {handling:?}");
            assert_eq!(lease(&desk, 2).is_ok(), expected == Advanced, "{name} {handling:?}");
        }
    }
}

#[test]
fn a_lease_of_an_older_epoch_is_refused_when_it_comes_back() {
    let desk = desk(Handling::Mutable);
    let mut loan = desk.table.lock().unwrap().take(Moment(1), &"ann".into(), key(1), |_| true).unwrap();
    loan.record.epoch = 0;
    ConversationLease::new(loan, desk.clone()).restore();
    assert_eq!(*desk.became.lock().unwrap(), [CheckedIn::Dropped]);
    assert_eq!(lease(&desk, 1).err(), Some(Miss::Unknown));
}

#[test]
fn a_newer_conversation_under_the_same_key_replaces_the_one_whose_lease_comes_back() {
    let desk = desk(Handling::Mutable);
    let taken = lease(&desk, 1).unwrap();
    let newer = Record { conversation: conversation("h9"), ..record(Handling::Mutable) };
    desk.table.lock().unwrap().begin(Moment(1), "ann".into(), key(1), newer, |_| true);
    taken.restore();
    assert_eq!(*desk.became.lock().unwrap(), [CheckedIn::Dropped]);
    assert_eq!(&*lease(&desk, 1).unwrap().record().unwrap().conversation.handle, "h9");
}

#[test]
fn another_caller_finds_no_lease() {
    let desk = desk(Handling::Immutable);
    let found = desk.table.lock().unwrap().take(Moment(1), &"bob".into(), key(1), |_| true);
    assert_eq!(found.err(), Some(Miss::Unknown));
}

#[test]
fn a_lease_that_had_to_reread_has_to_after_a_refusal_that_came_before_it_could() {
    let desk = desk(Handling::Mutable);
    let failed = lease(&desk, 1).unwrap().sent().refused(RefusalProof::by_failure());
    let again = failed.sent().refused(RefusalProof::never_left());
    assert!(again.must_reread());
    drop(again);
    let again = lease(&desk, 1).unwrap();
    assert!(again.must_reread(), "the next turn, too");
    again.sent().completed().advance(key(2), conversation("h1"));
    assert!(!lease(&desk, 2).unwrap().must_reread(), "its position is known anew");
}

/// What is told of changes, in short.
fn told(desk: &Desk) -> Vec<String> {
    let word = |change| match change {
        Change::Stands { key, record, .. } => format!("{} stands under {}", record.conversation.handle, key.0[0]),
        Change::Nothing { key, .. } => format!("nothing under {}", key.0[0]),
        Change::Lost(record) => format!("{} is lost", record.conversation.handle),
    };
    desk.table.lock().unwrap().changes().into_iter().map(word).collect()
}

#[test]
fn what_becomes_of_a_lease_is_told_to_whoever_writes_it_down_and_to_its_driver() {
    let desk = desk(Handling::Mutable);
    assert_eq!(told(&desk), ["h1 stands under 1"]);
    let taken = lease(&desk, 1).unwrap();
    assert_eq!(told(&desk), [""; 0], "it may come back");
    taken.restore();
    assert_eq!(told(&desk), ["h1 stands under 1"]);
    lease(&desk, 1).unwrap().sent().completed().advance(key(2), conversation("h1"));
    assert_eq!(told(&desk), ["nothing under 1", "h1 stands under 2"]);
    lease(&desk, 2).unwrap().sent().interrupted();
    assert_eq!(told(&desk), ["nothing under 2", "h1 is lost"]);
}

#[test]
fn a_lease_whose_driver_names_another_conversation_at_the_end_loses_the_one_before() {
    let desk = desk(Handling::Mutable);
    drop(told(&desk));
    lease(&desk, 1).unwrap().sent().completed().advance(key(2), conversation("h2"));
    assert_eq!(told(&desk), ["h1 is lost", "nothing under 1", "h2 stands under 2"]);
}

#[test]
fn a_lease_of_a_branch_that_is_gone_takes_no_newer_one_with_it() {
    let desk = desk(Handling::Immutable);
    let (first, second) = (lease(&desk, 1).unwrap(), lease(&desk, 1).unwrap());
    let newer = Record { conversation: conversation("h9"), ..record(Handling::Immutable) };
    assert!(desk.table.lock().unwrap().begin(Moment(1), "ann".into(), key(1), newer, |_| true));
    first.sent().dead(true);
    assert_eq!(&*lease(&desk, 1).unwrap().record().unwrap().conversation.handle, "h9");
    second.sent().completed().advance(key(2), conversation("h2"));
    assert!(lease(&desk, 2).is_ok());
}

#[test]
fn a_lease_whose_handle_is_too_long_is_not_kept_and_lost() {
    let desk = desk(Handling::Mutable);
    drop(told(&desk));
    let long = "x".repeat(MAX_HANDLE + 1);
    lease(&desk, 1).unwrap().sent().completed().advance(key(2), conversation(&long));
    assert_eq!(*desk.became.lock().unwrap(), [CheckedIn::Dropped]);
    let other = Record { conversation: conversation(&long), ..record(Handling::Mutable) };
    assert!(!desk.table.lock().unwrap().begin(Moment(1), "ann".into(), key(3), other, |_| true));
    assert_eq!(desk.table.lock().unwrap().len(Moment(1)), 0);
    assert_eq!(told(&desk).iter().filter(|told| told.ends_with("is lost")).count(), 3);
}

#[test]
fn an_idle_conversation_and_one_of_age_end_and_are_told() {
    let mut table = Conversations::default();
    let at = |time: Duration| Moment(0).after(time);
    table.begin(Moment(0), "ann".into(), key(1), record(Handling::Mutable), |_| true);
    assert_eq!(table.len(at(IDLE - Duration::from_millis(1))), 1);
    assert_eq!(table.len(at(IDLE)), 0);
    let lost = table.changes().iter().filter(|change| matches!(change, Change::Lost(_))).count();
    assert_eq!(lost, 1);
    let ends = at(IDLE + Duration::from_secs(9));
    table.begin(at(IDLE), "ann".into(), key(1), Record { ends, ..record(Handling::Mutable) }, |_| true);
    let loan = table.take(at(IDLE), &"ann".into(), key(1), |_| true).unwrap();
    assert_eq!(table.check_in(at(IDLE), loan, LeaseEnd::Restored { reread: false }, |_| true), CheckedIn::Restored);
    assert_eq!(table.len(ends), 0, "used a moment ago, and of age");
}

#[test]
fn what_an_earlier_run_kept_lives_as_long_as_was_left_of_it() {
    let mut table = Conversations::default();
    let left = Duration::from_secs(60);
    table.take_up(Moment(0), "ann".into(), key(1), record(Handling::Mutable), left);
    table.take_up(Moment(0), "ann".into(), key(2), record(Handling::Mutable), IDLE * 9);
    assert!(table.changes().is_empty(), "it is written down as it is");
    assert_eq!(table.len(Moment(0).after(left)), 1);
    assert_eq!(table.len(Moment(0).after(IDLE)), 0);
}

#[test]
fn conversations_of_accounts_that_are_not_what_they_were_are_swept_out() {
    let mut table = Conversations::default();
    table.begin(Moment(0), "ann".into(), key(1), record(Handling::Mutable), |_| true);
    table.begin(Moment(0), "ann".into(), key(2), Record { epoch: 2, ..record(Handling::Mutable) }, |_| true);
    drop(table.changes());
    table.sweep(|record| record.epoch == 2);
    assert_eq!(table.len(Moment(0)), 1);
    assert_eq!(table.changes().len(), 2, "its place is empty and it is lost");
}

#[test]
fn a_caller_that_begins_many_conversations_pushes_out_nobody_elses() {
    let mut table = Conversations::new(ShelfBounds { count: 10, bytes: 1 << 20 });
    for number in 0..3 {
        table.begin(Moment(0), "bob".into(), key(number), record(Handling::Mutable), |_| true);
    }
    for number in 0..100 {
        let conversation = conversation(&format!("ann-{number}"));
        let record = Record { conversation, ..record(Handling::Mutable) };
        table.begin(Moment(0), "ann".into(), key(number), record, |_| true);
    }
    assert_eq!(table.len(Moment(0)), 10);
    assert!((0..3).all(|number| table.take(Moment(0), &"bob".into(), key(number), |_| true).is_ok()));
    let lost = table.changes().iter().filter(|change| matches!(change, Change::Lost(_))).count();
    assert_eq!(lost, 93, "and its driver hears of each of its own");
}
