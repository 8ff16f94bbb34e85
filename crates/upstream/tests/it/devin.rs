//! The driver of Devin against the lab's, which is made from the public reference.

mod asking;
mod cancelling;
mod ends;
mod faults;
mod lease_every_poll;
mod resuming;

use asking::{Scene, Told, scene};
