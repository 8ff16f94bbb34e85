//! Child processes under supervision: started when they are needed, once for however many wait; watched for their end and
//! their memory; started anew within bounds; ended as a group. Each start is an *instance* with an id and a secret of its
//! own, so that what one instance kept cannot be taken for another's.
//!
//! [`Supervisor`] keeps one process and whatever talks to it; [`Daemon`] is the plain case of a process that listens where
//! it is told to.
//!
//! What leaves its process group (`setsid`) leaves supervision too; its standard input, which closes when the gateway is
//! killed, is the sign for well-behaved processes to end.

mod daemon;
mod environment;
mod group;
mod launch;
mod listener;
mod memory;
mod process;
mod restarts;
mod spec;
mod stderr;
mod supervisor;

pub use daemon::{Address, Daemon, DaemonSpec, Endpoint, Lent, Listen};
pub use launch::{Input, Launch, Launched, Launcher, Output};
pub(crate) use process::private_directory;
pub use process::{Ended, Exit, Process};
pub use restarts::Restarts;
pub use spec::{ProcessLimits, ProcessSpec};
pub(crate) use supervisor::random;
pub use supervisor::{NotReady, Running, Service, Started, Supervisor, Variables};
