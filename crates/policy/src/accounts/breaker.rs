//! The breaker of one endpoint: faults of the network or the upstream in a row take it out for a while. It says so and no
//! more; whoever picks heeds it only while another route can serve, and then lets one turn at a time probe.

use crate::moment::Moment;
use crate::tuning::Tuning;
use turnkeep_base::seeded;

/// One endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    in_a_row: u32,
    /// The present ejection's end; it stays until a success, so that only a probe ends it.
    ejected_until: Option<Moment>,
    /// Ejections, less those that have decayed.
    ejections: u32,
    last_end: Moment,
    probe: Option<u64>,
}

impl Breaker {
    /// A fault of the endpoint. What strikes while it is out changes nothing.
    pub(super) fn fault(&mut self, now: Moment, tuning: &Tuning) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let out = self.ejected_until.is_some_and(|until| until > now);
        if out || self.in_a_row < tuning.breaker_faults {
            return;
        }
        self.ejections = self.ejections(now, tuning).saturating_add(1);
        let until = now.after(tuning.ejection.saturating_mul(self.ejections).min(tuning.longest_ejection));
        self.ejected_until = Some(until);
        self.last_end = until;
    }

    /// A turn completed, or was refused by a whole reply: the endpoint is back. Its ejections decay by one each longest ejection.
    pub(super) fn success(&mut self) {
        self.in_a_row = 0;
        if !seeded::is("the-breaker-never-closes") {
            self.ejected_until = None;
        }
    }

    /// It is out, or waits to be probed.
    pub(super) fn is_open(&self) -> bool {
        self.ejected_until.is_some()
    }

    /// Its time is over, and nobody probes it.
    pub(super) fn may_probe(&self, now: Moment) -> bool {
        !seeded::is("the-breaker-is-never-probed")
            && self.probe.is_none()
            && self.ejected_until.is_some_and(|until| until <= now)
    }

    /// An attempt probes it.
    pub(super) fn begin_probe(&mut self, attempt: u64) {
        self.probe = Some(attempt);
    }

    /// That attempt has ended, however.
    pub(super) fn end_probe(&mut self, attempt: u64) {
        if self.probe == Some(attempt) {
            self.probe = None;
        }
    }

    /// Until when it is out; a time that has passed means that it waits to be probed.
    pub(super) fn ejected_until(&self) -> Option<Moment> {
        self.ejected_until
    }

    /// Faults in a row.
    pub(super) fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// Ejections that still count.
    pub(super) fn ejections(&self, now: Moment, tuning: &Tuning) -> u32 {
        let each = tuning.longest_ejection.as_millis().max(1);
        let decayed = now.since(self.last_end).as_millis() / each;
        self.ejections.saturating_sub(u32::try_from(decayed).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(breaker: &mut Breaker, now: Moment, count: u32) {
        (0..count).for_each(|_| breaker.fault(now, &Tuning::default()));
    }

    #[test]
    fn five_faults_in_a_row_eject_and_a_success_between_starts_over() {
        let mut breaker = Breaker::default();
        faults(&mut breaker, Moment(0), 4);
        breaker.success();
        faults(&mut breaker, Moment(0), 4);
        assert!(!breaker.is_open());
        faults(&mut breaker, Moment(0), 1);
        assert_eq!(breaker.ejected_until(), Some(Moment(10_000)));
        assert!(!breaker.may_probe(Moment(9_999)) && breaker.may_probe(Moment(10_000)));
    }

    #[test]
    fn faults_while_it_is_out_do_not_lengthen_it_and_a_failed_probe_ejects_for_longer() {
        let mut breaker = Breaker::default();
        faults(&mut breaker, Moment(0), 50);
        assert_eq!(breaker.ejected_until(), Some(Moment(10_000)));
        breaker.begin_probe(7);
        assert!(!breaker.may_probe(Moment(10_000)));
        faults(&mut breaker, Moment(10_000), 1);
        breaker.end_probe(8);
        assert!(!breaker.may_probe(Moment(30_000)), "another attempt's end does not free the probe");
        breaker.end_probe(7);
        assert_eq!(breaker.ejected_until(), Some(Moment(30_000)));
        assert!(breaker.may_probe(Moment(30_000)));
        breaker.success();
        assert!(!breaker.is_open());
    }

    #[test]
    fn an_ejection_is_at_most_five_minutes_and_the_count_decays() {
        let tuning = Tuning::default();
        let mut breaker = Breaker::default();
        let mut now = Moment(0);
        for _ in 0..60 {
            faults(&mut breaker, now, 5);
            now = breaker.ejected_until().unwrap();
        }
        let last = breaker.ejections(now, &tuning);
        faults(&mut breaker, now, 1);
        assert_eq!((last, now.until(breaker.ejected_until().unwrap())), (60, tuning.longest_ejection));
        breaker.success();
        let later = breaker.last_end.after(tuning.longest_ejection * 100);
        faults(&mut breaker, later, 5);
        assert_eq!(later.until(breaker.ejected_until().unwrap()), tuning.ejection);
    }
}
