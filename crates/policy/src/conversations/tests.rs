use super::*;
use parking_like::Desk;

mod parking_like {
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
        created: Moment(0),
        reread: false,
    }
}

fn desk(handling: Handling) -> Arc<Desk> {
    let mut table = Conversations::default();
    table.begin(Moment(0), "ann".into(), key(1), record(handling));
    Arc::new(Desk { table: table.into(), became: Default::default(), now: Moment(1) })
}

fn lease(desk: &Arc<Desk>, number: u8) -> Result<ConversationLease<Clean>, Miss> {
    let loan = desk.table.lock().unwrap().take(Moment(1), &"ann".into(), key(number), |record| record.epoch == 1)?;
    Ok(ConversationLease::new(loan, desk.clone()))
}

#[test]
fn a_mutable_conversation_is_in_one_turn_at_a_time_and_an_immutable_one_in_any() {
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
fn a_newer_conversation_under_the_same_key_replaces_the_one_that_comes_back() {
    let desk = desk(Handling::Mutable);
    let taken = lease(&desk, 1).unwrap();
    let newer = Record { conversation: conversation("h9"), ..record(Handling::Mutable) };
    desk.table.lock().unwrap().begin(Moment(1), "ann".into(), key(1), newer);
    taken.restore();
    assert_eq!(*desk.became.lock().unwrap(), [CheckedIn::Dropped]);
    assert_eq!(&*lease(&desk, 1).unwrap().record().unwrap().conversation.handle, "h9");
}

#[test]
fn another_caller_finds_nothing() {
    let desk = desk(Handling::Immutable);
    let found = desk.table.lock().unwrap().take(Moment(1), &"bob".into(), key(1), |_| true);
    assert_eq!(found.err(), Some(Miss::Unknown));
}
