//! stub
use crate::event::Event;
use crate::reply::{Progress, ReplyFault, ReplyOptions};
use turnkeep_wire::sse::Frame;
/// stub
#[derive(Debug)]
pub struct StreamDecoder {}
impl StreamDecoder {
    /// stub
    pub fn new(_options: &ReplyOptions) -> Self {
        todo!()
    }
    /// stub
    pub fn frame(&mut self, _frame: &Frame, _events: &mut Vec<Event>) -> Result<Progress, ReplyFault> {
        todo!()
    }
}
/// stub
pub fn plain(_body: &[u8], _options: &ReplyOptions) -> Result<Vec<Event>, ReplyFault> {
    todo!()
}
