//! A process group: signalled as one, and gone when its guard is.

use rustix::process::{Pid, Signal, kill_process_group};

/// The group of a child that was started as its leader. Dropping it kills what is left of it. The leader must not be waited
/// for (reaped) before: until then its number cannot be another's.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    /// The group that this child leads; `None` for a number that is none.
    pub(super) fn of(child: Option<u32>) -> Option<Group> {
        let leader = Pid::from_raw(i32::try_from(child?).ok()?)?;
        Some(Group { leader: Some(leader) })
    }

    /// Asks every member to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends every member, and lets go of the group.
    pub(super) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.signal(Signal::KILL);
        self.leader = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // Nobody left is what is wanted.
            let _gone = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
