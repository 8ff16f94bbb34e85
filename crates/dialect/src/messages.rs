//! placeholder

pub mod classify;
pub mod error;
pub mod models;
pub mod order;
pub mod reply_decode;
pub mod reply_encode;
pub mod request;
pub mod request_encode;
pub mod tap;
