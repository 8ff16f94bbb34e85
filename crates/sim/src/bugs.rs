//! The bugs that are put in on purpose, one at a time, to see that they are found: written down from the turn's contract
//! before any of them was tried. Each is a place in the gateway's code that asks `turnkeep_base::seeded::is`, which without
//! the feature `seeded-bugs` is never so.
//!
//! Not among them, as types forbid them: a receipt that nobody has proven, a conversation put back after a send, a commit
//! without a receipt. Bugs that mix callers up are left to the tests of isolation: each key is made in several places.

/// A bug: its name, and the rule that it breaks.
pub const BUGS: &[(&str, &str)] = &[
    // Blame: one for each row of effects.
    ("charge-in-the-fallthrough", "a fault that nobody knows is charged to the account"),
    ("charge-for-the-network", "a reset connection is charged to the account"),
    ("charge-for-a-rate-limit", "a rate limit is charged to the account's budget"),
    ("charge-for-the-request", "a request that is invalid is charged to the account"),
    ("suspend-at-the-first-word", "an account is suspended when that is said once"),
    ("a-sample-cools-the-account", "a health sample takes the whole account out for a while"),
    ("an-overload-cools-the-account", "a model's overload cools the whole account"),
    ("quota-is-not-heeded", "a used-up quota cools nothing"),
    ("retry-after-is-not-heeded", "a declared wait is passed over"),
    ("a-cooldown-that-shrinks", "a later, shorter cooldown replaces a longer one"),
    ("a-cooldown-without-end", "a cooldown ends in a year"),
    // Standing.
    ("errored-at-the-first-charge", "one refusal of the credential takes the account out"),
    ("success-does-not-clear-the-budget", "refusals add up over successes between them"),
    ("any-success-revives", "an attempt that was not the try brings an errored account back"),
    ("half-open-floods", "an errored account is tried by every turn at once"),
    ("a-try-that-is-never-freed", "a try that ends without a judgement keeps the account out for ever"),
    ("an-older-secret-counts", "a refusal of the secret before is charged to the one after"),
    ("a-charge-is-not-taken-back", "what a second account has disproved stays charged"),
    ("the-breaker-never-closes", "a probe that succeeds leaves the endpoint ejected"),
    ("the-breaker-is-never-probed", "an ejected endpoint is never tried again"),
    // Slots and the queue.
    ("a-slot-leaked-on-a-fault", "an attempt that failed keeps its slot"),
    ("a-slot-leaked-by-a-client-that-left", "an attempt that was interrupted keeps its slot"),
    ("slots-past-the-limit", "an account gets more attempts than it has slots"),
    ("a-waiter-is-never-woken", "a slot that comes free wakes nobody who waits"),
    // Conversations: one for each cell of the lease's table.
    ("restore-after-send", "a conversation that a turn was sent into is put back as it was"),
    ("a-forgotten-lease", "a lease that is dropped is not handed back"),
    ("two-turns-in-one-conversation", "a conversation that is in a turn is lent to another"),
    ("a-gone-conversation-is-put-back", "a conversation that its upstream does not know is kept"),
    ("an-older-epoch-is-lent", "the conversation of an account that was replaced is gone on with"),
    ("the-position-is-not-read-again", "after a failure it is not looked whether the turn had begun"),
    ("taken-survives-a-crash", "a conversation that was in a turn is there again after a crash"),
    // Streams.
    ("an-eof-is-an-end", "an answer that breaks off is taken as complete"),
    ("retry-after-touch", "a turn is sent again although the client has seen something of it"),
    ("an-error-ends-as-a-stop", "a stream that fails ends as if the model had ended it"),
    ("a-broken-stream-just-ends", "a stream that fails ends without a word"),
    // Closings.
    ("an-attempt-closed-twice", "an attempt's entry is closed twice"),
    ("an-attempt-never-closed", "an attempt that failed is not closed"),
    ("an-interrupted-answer-is-exact", "what a cut answer has cost is told as the provider's own word"),
    ("a-receipt-for-everything", "a reply whose arrival is not known counts as arrived"),
    ("what-arrived-is-held", "an answer that has arrived is held for the same request"),
    ("half-an-answer-is-kept", "an answer that was cut is given to those who joined"),
    // Restart.
    ("cooldowns-end-with-the-process", "a restart forgets cooldowns"),
    ("the-budget-ends-with-the-process", "a restart forgets what is used of the budget"),
    // Time.
    ("no-clock-between", "an answer that stalls is waited for without end"),
    ("attempts-without-bound", "a turn is tried for as long as there are accounts"),
];
