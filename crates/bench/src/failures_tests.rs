//! The section says what was missed, replaces itself and nothing else, and outlives a new report around it.

use super::*;
use crate::refusal::Refusal;

fn measured() -> Measured {
    let line = |median| Line { name: "a case".to_owned(), median, p99: 9_000 };
    let figures = Figures { success_us: 100.0, alike_us: None, storm_us: 250.0, attempts: 3.0, rate: 1000.0 };
    let case = Case { accounts: 20, refusal: Refusal::Flood };
    Measured {
        admission: Ok(vec![line(1_000), line(1_999)]),
        judgement: Ok(vec![line(20_000)]),
        storms: vec![(case, Ok(figures)), (case, Err(anyhow::anyhow!("it | broke\noff")))],
    }
}

#[test]
fn what_is_met_missed_or_not_measured_is_said_by_the_worst_case() {
    let text = section(&["Date: today".to_owned()], &measured());
    assert!(text.contains("giving it back, median | 2.00 µs | < 2 µs | met |"), "{text}");
    assert!(text.contains("a failed attempt, median | 20.0 µs | < 20 µs | missed |"), "{text}");
    assert!(text.contains("to a successful turn's | 2.50× | ≤ 1× | missed |"), "{text}");
    assert!(text.contains("| 1 000 | 3.00 | 250 | 100 | 2.50× | 0.83× | missed |"), "{text}");
    assert!(text.contains("broke off: it   broke off |"), "{text}");
    let slow = Figures { success_us: 100.0, alike_us: Some(500.0), storm_us: 250.0, attempts: 1.0, rate: 60.0 };
    let case = Case { accounts: 1, refusal: Refusal::Soon };
    let text = section(&[], &Measured { storms: vec![(case, Ok(slow))], ..measured() });
    assert!(text.contains("| 60.0 | 1.00 | 250 | 100 (500) | 0.50× | 0.50× | met |"), "{text}");
    let none = Measured { admission: Err(anyhow::anyhow!("no such example")), storms: Vec::new(), ..measured() };
    let text = section(&[], &none);
    assert!(text.contains("not measured") && text.contains("Not measured: no such example"), "{text}");
}

#[test]
fn the_middle_of_the_rounds_is_that_of_their_ratios() {
    let round = |success_us, alike_us, storm_us| Figures { success_us, alike_us, storm_us, attempts: 1.0, rate: 1.0 };
    let three = |alike| [round(100.0, alike, 300.0), round(200.0, alike, 400.0), round(100.0, alike, 100.0)];
    let closed = middle(&three(None)).unwrap();
    assert_eq!((closed.success_us, closed.storm_us), (100.0, 200.0));
    let alike = middle(&three(Some(50.0))).unwrap();
    assert_eq!((alike.success_us, alike.storm_us, alike.ratio()), (100.0, 300.0, 6.0));
}
