//! The one list of the targets.

use crate::seeds::Fixtures;
use crate::targets;
use turnkeep_base::Dialect;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its function, its seeds' folder, its test and its libFuzzer target.
    pub name: &'static str,
    /// Runs one input. Panics where something does not hold.
    pub run: fn(&[u8]),
    /// What it decodes.
    pub of: &'static str,
    /// What holds for any bytes.
    pub holds: &'static str,
    /// Mutants that the tests run.
    pub mutants: u32,
    /// Fixtures that are read beside its seeds.
    pub fixtures: Fixtures,
}

/// Hands the list to a macro: name, what is decoded, what holds, mutants, and the fixtures read beside the seeds.
#[macro_export]
macro_rules! every_target {
    ($each:ident) => {
        $each! {
            sse, "server-sent events",
                "the same frames however the bytes are cut; their raw bytes are the stream; a frame over the limit is an error \
                 with its place; a written event reads back",
                6000, None;
            envelope, "envelopes of Connect and gRPC",
                "the same envelopes and the same error however cut; a payload over the limit is `TooLong` and an end within \
                 one is `Cut`; what was read, written again, is the stream",
                6000, None;
            json, "the JSON reader of all dialects",
                "takes what another parser takes, and nothing else (lone surrogates, long numbers and nesting apart); the same \
                 strings; an error stands within the text; nesting is bounded",
                6000, None;
            json_lines, "lines of an agent's output",
                "the same lines however cut; as many as a split at line feeds gives; none empty",
                6000, None;
            chat_request, "Chat requests",
                "what passes is JSON and passes on as it is; what is written for another dialect is a request of that dialect; \
                 written in its own it means the same; an error stands within the body",
                800, Requests(Dialect::Chat);
            responses_request, "Responses requests", "as `chat_request`", 800, Requests(Dialect::Responses);
            messages_request, "Messages requests", "as `chat_request`", 800, Requests(Dialect::Messages);
            gemini_request, "Gemini requests", "as `chat_request`", 800, Requests(Dialect::Gemini);
            other_requests, "requests for counts, vectors and older completions",
                "as `chat_request`, without the way back",
                2000, None;
            chat_stream, "streamed Chat answers, to each client",
                "the same pieces, facts and fault however cut; complete only with the upstream's own terminal; lawful in the \
                 client's dialect; passed on and written anew it says the same",
                900, None;
            responses_stream, "streamed Responses answers, to each client", "as `chat_stream`", 700, None;
            messages_stream, "streamed Messages answers, to each client", "as `chat_stream`", 900, None;
            gemini_stream, "streamed Gemini answers, to each client", "as `chat_stream`", 900, None;
            chat_whole, "plain Chat answers, to each client",
                "complete only with a finish reason; passed on as it is; passed on and written anew it says the same; the \
                 client's body is JSON",
                1500, None;
            responses_whole, "plain Responses answers, to each client", "as `chat_whole`", 1500, None;
            messages_whole, "plain Messages answers, to each client", "as `chat_whole`", 1500, None;
            gemini_whole, "plain Gemini answers, to each client", "as `chat_whole`", 1500, None;
            other_answers, "answers with counts and vectors", "never panics; what is given is JSON", 3000, None;
            error_reply, "error bodies of every upstream",
                "the same twice; message, field, code, evidence and windows within their bounds; no wait beyond a year; no key \
                 of a known form in what is kept",
                2500, None;
            stated_waits, "`Retry-After` and the other headers that state a wait",
                "no wait is zero, longer than a year or longer than it was said; at most so many windows",
                6000, None;
            rpc_end, "ends of Connect streams, gRPC statuses and their details",
                "no end without its own word; a refusal only where nothing had begun; no wait beyond a year",
                4000, None;
            rpc_events, "events of the Connect and Cascade services, binary and JSON",
                "only events in their order; an end only when the stream has ended; both forms give the same events",
                4000, None;
            devin, "sessions and pages of messages of the Devin API",
                "words within their bound; no message without its event; an error quotes nothing",
                4000, None;
            inflate, "compressed bodies: gzip, deflate, br, zstd",
                "the same bytes and the same end however cut; an end only with the coding's own; what is compressed comes back",
                1200, None;
            acp, "messages and updates of the Agent Client Protocol",
                "a message is what its members say; an id goes back as it came; a note is one bounded line; a line of ours is one \
                 line",
                5000, None;
            config, "the configuration and its overrides",
                "either a configuration or errors, each with a place within the file and a message, in file order; the same \
                 twice; no secret in a message",
                1500, None;
            kept_record, "answers as they are stored, and their other forms",
                "a record is itself when written again, or none; replayed it is lawful and ends once",
                3000, None;
            stored_record, "responses, conversations and upstreams' conversations as they are stored",
                "a record is itself when written again, or none",
                4000, None;
            sealed, "sealed values",
                "opens for its owner and as it was sealed, and never otherwise",
                4000, None;
            stored_rows, "rows of the database",
                "a row of any bytes is read as it is, left out and counted, or refused by name; the others are still read",
                500, None;
        }
    };
}

use Fixtures::{None, Requests};

macro_rules! rows {
    ($($name:ident, $of:literal, $holds:literal, $mutants:literal, $fixtures:expr;)*) => {
        /// Every target, from the bytes up.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: targets::$name,
            of: $of,
            holds: $holds,
            mutants: $mutants,
            fixtures: $fixtures,
        }),*];
    };
}
every_target!(rows);

/// The target of this name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
