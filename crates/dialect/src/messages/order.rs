//! stub
use turnkeep_wire::sse::Frame;
/// stub
#[derive(Debug, Default)]
pub struct Order {}
impl Order {
    /// stub
    pub fn frame(&mut self, _frame: &Frame) -> Result<(), String> {
        todo!()
    }
    /// stub
    pub fn finish(&self) -> Result<(), String> {
        todo!()
    }
}
