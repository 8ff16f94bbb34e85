//! OpenAI's legacy completions (`POST /v1/completions`): a prompt that is continued. A Chat upstream gets the bytes, and
//! its answer passes through [`super::tap`], which reads `text_completion` too; another upstream gets a turn with the
//! prompt as the user's message, and its answer is written as a `text_completion`. Errors are Chat's.

mod decode;
mod encode;
mod read;

pub use decode::decode;
pub use encode::{StreamEncoder, plain};
pub use read::read;
pub(super) use read::texts;
