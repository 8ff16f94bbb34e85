//! stub
use crate::reply::{Facts, Passed, ReplyFault, ReplyOptions};
use turnkeep_wire::sse::Frame;
/// stub
#[derive(Debug)]
pub struct Tap {}
impl Tap {
    /// stub
    pub fn new(_options: &ReplyOptions) -> Self {
        todo!()
    }
    /// stub
    pub fn frame(&mut self, _frame: &Frame, _facts: &mut Facts) -> Result<Passed, ReplyFault> {
        todo!()
    }
}
/// stub
pub fn plain(_body: &[u8], _facts: &mut Facts) -> Result<(), ReplyFault> {
    todo!()
}
