//! The layer table of ARCHITECTURE.md as data. Change a rule here, with its reason in the commit, and nowhere else.
//!
//! What a crate may name directly is an allow-list for the pure layers (0 to 2) and open for the outer ones, where only
//! the `never` column binds. `never` holds for the whole tree below a crate, not only for its own manifest.

/// What one crate may depend on. Dev-dependencies are free: tests may use what they like.
pub struct CrateRule {
    /// Package name.
    pub name: &'static str,
    /// Packages of this workspace it may depend on.
    pub crates: &'static [&'static str],
    /// Outside packages it may name.
    pub externals: Externals,
    /// Packages that may not appear anywhere below it, and why not, in the words of the error.
    pub never: &'static [&'static str],
    /// Why the row is as it is; shown when it is broken.
    pub why: &'static str,
}

/// Which outside packages a manifest may name.
pub enum Externals {
    /// These and no others.
    Only(&'static [&'static str]),
    /// Any, short of the `never` column.
    Any,
}

/// Text that may appear only in some crates' sources (tests apart).
pub struct SourceRule {
    /// The text looked for, outside of comments and tests.
    pub needle: &'static str,
    /// The crate folders it is allowed in, or forbidden in.
    pub scope: Scope,
    /// Why; shown when the rule is broken.
    pub why: &'static str,
}

/// Where a [`SourceRule`] bites.
pub enum Scope {
    /// Allowed in these crate folders only.
    OnlyIn(&'static [&'static str]),
    /// Forbidden in these crate folders.
    NotIn(&'static [&'static str]),
}

use Externals::{Any, Only};

const BASE: &str = "turnkeep-base";
const WIRE: &str = "turnkeep-wire";
const PROTO: &str = "turnkeep-proto";
const DIALECT: &str = "turnkeep-dialect";
const POLICY: &str = "turnkeep-policy";
const ENGINE: &str = "turnkeep-engine";

/// One row a crate, inner layers first.
pub const CRATES: &[CrateRule] = &[
    CrateRule {
        name: BASE,
        crates: &[],
        externals: Only(&["bytes", "memchr", "thiserror", "zeroize"]),
        never: &["serde_json", "tokio", "time", "chrono", "rand", "getrandom"],
        why: "layer 0 holds values: no JSON, no runtime, no clock, no randomness",
    },
    CrateRule {
        name: WIRE,
        crates: &[BASE],
        externals: Only(&["bytes", "memchr", "thiserror", "zeroize"]),
        never: &["serde_json", "tokio", "time", "chrono", "rand", "getrandom"],
        why: "layer 0 frames bytes without doing I/O",
    },
    CrateRule {
        name: PROTO,
        crates: &[],
        externals: Only(&["pbjson", "prost", "serde"]),
        never: &["serde_json", "tokio", "tonic", "time", "chrono", "rand", "getrandom"],
        why: "layer 0 holds the messages of the published schemas, generated; who sends them is the drivers' matter",
    },
    CrateRule {
        name: DIALECT,
        crates: &[BASE, WIRE],
        externals: Only(&["base64", "blake3", "bytes", "memchr", "serde", "serde_json", "thiserror", "tiktoken"]),
        never: &["tokio", "hyper", "time", "chrono", "rand", "getrandom"],
        why: "a dialect is bytes to canonical values and back; time and sockets are the engine's",
    },
    CrateRule {
        name: POLICY,
        crates: &[BASE, WIRE],
        externals: Only(&["serde", "thiserror"]),
        never: &["tokio", "hyper", "time", "chrono", "rand", "getrandom"],
        why: "policy is pure state machines: time and chance come in as arguments",
    },
    CrateRule {
        name: ENGINE,
        crates: &[BASE, WIRE, DIALECT, POLICY],
        externals: Only(&[
            "bytes",
            "futures-util",
            "http",
            "parking_lot",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        never: &["hyper", "rustls", "axum", "rusqlite", "tokio-rustls"],
        why: "the engine drives turns through its ports; it knows no transport and no store. JSON is the form of its incident \
              traces, and of nothing else in it",
    },
    CrateRule {
        name: "turnkeep-upstream",
        crates: &[BASE, WIRE, PROTO, DIALECT, POLICY, ENGINE],
        externals: Any,
        never: &["axum", "rusqlite", "prometheus-client", "clap"],
        why: "layer 3 crates do not see each other, nor the layers above",
    },
    CrateRule {
        name: "turnkeep-agents",
        crates: &[BASE, WIRE, DIALECT, POLICY, ENGINE],
        externals: Any,
        never: &["axum", "hyper", "rustls", "rusqlite", "prometheus-client", "clap"],
        why: "layer 3 crates do not see each other, nor the layers above; what it starts talks over pipes and local sockets",
    },
    CrateRule {
        name: "turnkeep-store",
        crates: &[BASE, WIRE, DIALECT, POLICY, ENGINE],
        externals: Any,
        never: &["axum", "hyper", "rustls", "prometheus-client", "clap"],
        why: "layer 3 crates do not see each other, nor the layers above",
    },
    CrateRule {
        name: "turnkeep-http",
        crates: &[BASE, WIRE, DIALECT, POLICY, ENGINE],
        externals: Any,
        never: &["rusqlite", "rustls-platform-verifier", "clap"],
        why: "the client side gets ports handed in; it may not know which store or upstream is behind them",
    },
    CrateRule {
        name: "turnkeep",
        crates: &[
            BASE,
            WIRE,
            DIALECT,
            POLICY,
            ENGINE,
            "turnkeep-upstream",
            "turnkeep-agents",
            "turnkeep-store",
            "turnkeep-http",
            "turnkeep-lab",
        ],
        externals: Any,
        never: &["turnkeep-bench", "turnkeep-xtask"],
        why: "the binary wires everything that is shipped, and nothing that is not",
    },
    CrateRule {
        name: "turnkeep-lab",
        crates: &[PROTO],
        externals: Any,
        never: &["axum", "rusqlite"],
        why: "the lab is an independent peer: sharing code with what it tests would share its mistakes; the published \
              schemas' messages are both sides' by their nature",
    },
    CrateRule {
        name: "turnkeep-bench",
        crates: &[],
        externals: Any,
        never: &["axum", "rusqlite"],
        why: "the load generator measures the binary from outside",
    },
    CrateRule {
        name: "turnkeep-sim",
        crates: &[
            BASE,
            POLICY,
            ENGINE,
            "turnkeep-agents",
            "turnkeep-upstream",
            "turnkeep-store",
            "turnkeep-http",
            "turnkeep-lab",
            "turnkeep",
        ],
        externals: Any,
        never: &["axum"],
        why: "the simulation holds the whole gateway, and reads what clients are told with none of its code: it may not name \
              the dialects",
    },
    CrateRule {
        name: "turnkeep-fuzz",
        crates: &[
            BASE,
            WIRE,
            PROTO,
            DIALECT,
            ENGINE,
            "turnkeep-upstream",
            "turnkeep-agents",
            "turnkeep-store",
            "turnkeep-http",
            "turnkeep",
        ],
        externals: Any,
        never: &["axum"],
        why: "the fuzz targets reach every decoder; nothing that is shipped reaches them",
    },
    CrateRule {
        name: "turnkeep-xtask",
        crates: &[],
        externals: Only(&["anyhow", "cargo_metadata", "clap", "pbjson-build", "prost-build", "protox"]),
        never: &["tokio", "hyper"],
        why: "it judges the other crates, so it depends on none",
    },
];

/// Rules that manifests cannot express.
pub const SOURCES: &[SourceRule] = &[
    SourceRule {
        needle: "Mint::",
        scope: Scope::OnlyIn(&["base", "turnkeep"]),
        why: "receipts come from the one mint that the wiring makes and hands to the connection layer",
    },
    SourceRule {
        needle: "RefusalProof::",
        scope: Scope::NotIn(&["base", "wire", "dialect", "engine", "store", "http", "turnkeep"]),
        why: "only the driver of an upstream knows that a send has certainly not begun",
    },
    SourceRule {
        needle: "::fuzzed",
        scope: Scope::OnlyIn(&["fuzz", "upstream", "http"]),
        why: "decoders by themselves are for the fuzz targets; everybody else goes by the crate's own way in",
    },
    SourceRule {
        needle: "Instant::now",
        scope: Scope::NotIn(&["base", "wire", "dialect", "policy"]),
        why: "the pure crates get the time as an argument",
    },
    SourceRule {
        needle: "SystemTime::now",
        scope: Scope::NotIn(&["base", "wire", "dialect", "policy", "engine"]),
        why: "wall-clock time comes through the Clock port",
    },
    SourceRule {
        needle: "HashMap",
        scope: Scope::NotIn(&["policy"]),
        why: "decisions may not hang on a hash map's order",
    },
    SourceRule {
        needle: "HashSet",
        scope: Scope::NotIn(&["policy"]),
        why: "decisions may not hang on a hash set's order",
    },
    SourceRule {
        needle: "tokio::net",
        scope: Scope::NotIn(&["engine", "store"]),
        why: "the engine uses tokio for its channels and timers only; sockets belong to layers 3 and 4",
    },
    SourceRule {
        needle: "tokio::fs",
        scope: Scope::NotIn(&["engine", "upstream", "http"]),
        why: "files belong to the store and the binary",
    },
];
