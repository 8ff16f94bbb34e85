use super::*;
use turnkeep_base::receipt::{Level, Mint};
use turnkeep_base::{Dialect, TurnId};
use turnkeep_dialect::reply::Facts;

#[derive(Default)]
struct Written(Mutex<Vec<KeptAnswer>>);

impl AnswerStore for Written {
    fn keep(&self, answer: KeptAnswer) {
        self.0.lock().push(answer);
    }

    fn forget(&self, key: KeptKey) {
        self.0.lock().retain(|kept| kept.key != key);
    }
}

fn print(number: u8) -> Fingerprint {
    Fingerprint([number; 16])
}

fn answer(text: &'static str) -> Arc<Recorded> {
    let bytes = Bytes::from_static(text.as_bytes());
    Arc::new(Recorded { dialect: Dialect::Chat, stream: true, bytes, facts: Facts::default() })
}

fn receipt() -> Receipt {
    Mint::for_the_wiring().receipt(TurnId::new(1, 1), Level::Acked)
}

const NOW: At = At { now: Moment(1_000), wall_ms: 5_000_000 };

fn look(caller: &Arc<str>, request: u8) -> LookUp<'_> {
    let request = print(request);
    LookUp { caller, request, named: request, idempotency: None, cache: false, bypass: false, first: true }
}

/// What is found, without becoming a turn that others may join.
fn seen(kept: &Arc<Kept>, now: Moment, look: &LookUp<'_>) -> Found {
    kept.look_up(now, look).0
}

fn kept() -> (Arc<Kept>, Arc<Written>) {
    let written = Arc::new(Written::default());
    (Kept::new(written.clone()), written)
}

fn is_answer(found: &Found, text: &str, how: Again) -> bool {
    matches!(found, Found::Answer(recorded, was) if *was == how && recorded.bytes == text.as_bytes())
}

#[test]
fn a_held_answer_is_its_callers_alone_and_spent_by_a_receipt() {
    let (kept, written) = kept();
    let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
    kept.hold(NOW, &ann, print(1), &answer("held"));
    assert!(kept.concerns(NOW.now, &ann) && !kept.concerns(NOW.now, &bob));
    assert!(matches!(seen(&kept, NOW.now, &look(&bob, 1)), Found::Nothing), "nothing of one caller is another's");
    assert!(matches!(seen(&kept, NOW.now, &look(&ann, 2)), Found::Nothing), "another request");
    assert!(is_answer(&seen(&kept, NOW.now, &look(&ann, 1)), "held", Again::Held));
    let bypassing = LookUp { bypass: true, ..look(&ann, 1) };
    assert!(matches!(seen(&kept, NOW.now, &bypassing), Found::Nothing));
    assert_eq!(written.0.lock().len(), 1);
    kept.spend(&receipt(), &ann, print(1));
    assert!(matches!(seen(&kept, NOW.now, &look(&ann, 1)), Found::Nothing));
    assert!(written.0.lock().is_empty());
}

#[test]
fn a_held_answer_ends_by_itself() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    kept.hold(NOW, &ann, print(1), &answer("held"));
    let later = NOW.now.after(HELD_FOR + Duration::from_millis(1));
    assert!(matches!(seen(&kept, later, &look(&ann, 1)), Found::Nothing));
}

#[test]
fn the_cache_answers_only_a_model_whose_cache_is_on() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    kept.cache(&receipt(), NOW, &ann, print(1), Duration::from_secs(60), &answer("cached"));
    assert!(matches!(seen(&kept, NOW.now, &look(&ann, 1)), Found::Nothing));
    let on = LookUp { cache: true, ..look(&ann, 1) };
    assert!(is_answer(&seen(&kept, NOW.now, &on), "cached", Again::Hit));
    assert!(matches!(seen(&kept, NOW.now, &LookUp { bypass: true, ..on }), Found::Nothing));
    let later = NOW.now.after(Duration::from_secs(61));
    assert!(matches!(seen(&kept, later, &on), Found::Nothing));
}

#[test]
fn an_idempotency_key_stands_for_one_request() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    let keyed = LookUp { idempotency: Some(print(9)), ..look(&ann, 1) };
    let (Found::Nothing, leading) = kept.look_up(NOW.now, &keyed) else { panic!("the first one runs") };
    assert!(matches!(seen(&kept, NOW.now, &keyed), Found::Running(_)), "joined while it runs");
    let other = LookUp { request: print(2), named: print(2), ..keyed };
    assert!(matches!(seen(&kept, NOW.now, &other), Found::Reused), "another body, while it runs");
    drop(leading);
    assert!(matches!(seen(&kept, NOW.now, &keyed), Found::Nothing), "it failed: the next one runs");
    kept.remember(NOW, &ann, print(9), print(1), &answer("done"));
    assert!(matches!(seen(&kept, NOW.now, &keyed), Found::Remembered(_)));
    assert!(matches!(seen(&kept, NOW.now, &other), Found::Reused), "another body, afterwards");
    let bob: Arc<str> = "bob".into();
    assert!(matches!(seen(&kept, NOW.now, &LookUp { caller: &bob, ..other }), Found::Nothing));
}

#[test]
fn an_idempotency_key_is_taken_also_where_the_answer_is_found_by_the_request() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    kept.hold(NOW, &ann, print(1), &answer("held"));
    let keyed = LookUp { idempotency: Some(print(9)), ..look(&ann, 1) };
    let (found, leading) = kept.look_up(NOW.now, &keyed);
    assert!(is_answer(&found, "held", Again::Held));
    let other = LookUp { request: print(2), named: print(2), ..keyed };
    assert!(matches!(seen(&kept, NOW.now, &other), Found::Reused), "another body under the same key");
    drop(leading);
}

#[test]
fn one_of_many_identical_requests_runs_and_the_others_get_its_answer() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    let on = LookUp { cache: true, ..look(&ann, 1) };
    let (Found::Nothing, leading) = kept.look_up(NOW.now, &on) else { panic!("the first one runs") };
    let [lead] = &leading[..] else { panic!("it leads under one name") };
    let Found::Running(mut joined) = seen(&kept, NOW.now, &on) else { panic!("the second one joins") };
    assert!(matches!(*joined.borrow_and_update(), Lead::Running));
    lead.publish(&answer("made"));
    drop(leading);
    assert!(matches!(&*joined.borrow(), Lead::Answered(recorded) if &recorded.bytes[..] == b"made"));
    let Found::Nothing = seen(&kept, NOW.now, &on) else { panic!("its place is free") };
}

#[test]
fn a_request_without_a_cache_joins_only_a_turn_whose_client_has_left() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    let (Found::Nothing, leading) = kept.look_up(NOW.now, &look(&ann, 1)) else { panic!("it runs") };
    assert!(leading.is_empty() && matches!(seen(&kept, NOW.now, &look(&ann, 1)), Found::Nothing));
    let alone = kept.lead_on(&ann, print(1)).unwrap();
    assert!(kept.lead_on(&ann, print(1)).is_none(), "one leads");
    let Found::Running(joined) = seen(&kept, NOW.now, &look(&ann, 1)) else { panic!("joined") };
    drop(alone);
    assert!(matches!(&*joined.borrow(), Lead::Ended), "cancelled: whoever joined runs");
}

#[test]
fn an_answer_on_its_way_is_told_of_to_the_same_bytes_of_the_same_caller_alone() {
    let (kept, _) = kept();
    let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
    let arriving = kept.arriving(&ann, print(1)).unwrap();
    assert!(kept.arriving(&ann, print(1)).is_none(), "one is waited for");
    assert!(kept.is_awaited(&ann) && !kept.is_awaited(&bob));
    assert!(!kept.concerns(NOW.now, &ann), "its request need not be known for that");
    assert!(kept.awaited(&bob, print(1)).is_none() && kept.awaited(&ann, print(2)).is_none());
    let mut verdict = kept.awaited(&ann, print(1)).unwrap();
    assert!(matches!(*verdict.borrow_and_update(), Lead::Running));
    drop(arriving);
    assert!(matches!(&*verdict.borrow(), Lead::Ended));
    assert!(!kept.is_awaited(&ann));
}

#[test]
fn a_turn_that_has_waited_for_another_in_vain_runs_without_waiting_or_leading() {
    let (kept, _) = kept();
    let ann: Arc<str> = "ann".into();
    let on = LookUp { cache: true, ..look(&ann, 1) };
    let (Found::Nothing, _leading) = kept.look_up(NOW.now, &on) else { panic!("the first one runs") };
    let (found, leading) = kept.look_up(NOW.now, &LookUp { first: false, ..on });
    assert!(matches!(found, Found::Nothing) && leading.is_empty());
}

#[test]
fn what_was_kept_is_taken_up_by_the_next_run_for_the_rest_of_its_time() {
    let (first, written) = kept();
    let ann: Arc<str> = "ann".into();
    first.hold(NOW, &ann, print(1), &answer("held"));
    first.remember(NOW, &ann, print(9), print(1), &answer("done"));
    let answers = written.0.lock().clone();
    let (second, _) = kept();
    let half = At { now: Moment(0), wall_ms: NOW.wall_ms + 300_000 };
    second.take_up(half, answers);
    assert!(is_answer(&seen(&second, half.now, &look(&ann, 1)), "held", Again::Held));
    let keyed = LookUp { idempotency: Some(print(9)), ..look(&ann, 2) };
    assert!(matches!(seen(&second, half.now, &keyed), Found::Reused), "the key still knows its request");
    let later = half.now.after(Duration::from_millis(300_001));
    assert!(matches!(seen(&second, later, &look(&ann, 1)), Found::Nothing));
}
