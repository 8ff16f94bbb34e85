//! A Messages client's request: [`read`] checks its form in one pass over the bytes, which is all that a same-dialect
//! route needs; [`decode`] builds the canonical turn for the routes that are translated.

mod decode;
mod hints;
mod parts;
mod read;

pub use decode::decode;
pub use read::read;
