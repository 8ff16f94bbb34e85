//! OpenAI's embeddings (`POST /v1/embeddings`): texts as vectors. A Chat upstream gets the bytes; a Gemini upstream gets
//! `batchEmbedContents`, and its answer is written in OpenAI's form. No other kind of upstream embeds.

mod reply;
mod request;

pub use reply::{from_gemini, plain};
pub use request::{read, to_gemini};
