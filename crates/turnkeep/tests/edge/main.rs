//! The edge of the whole gateway: every route in its dialect, every kind of error in the dialect of its path, lists of
//! models, counting and embeddings by what an upstream can do, what URLs in requests
//! name, and images that are none.

mod by_dialect;
mod counting;
mod fetching;
mod gemini;
mod media;
mod scene;
