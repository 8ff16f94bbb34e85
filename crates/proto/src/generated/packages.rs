// Written by `cargo xtask proto` from proto/; do not edit.

/// Packages below `cascade`.
pub mod cascade {
    /// The package `turnkeep.cascade.v1`.
    #[allow(missing_docs, rustdoc::all, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm, rust_2018_idioms)]
    pub mod v1 {
        include!("turnkeep.cascade.v1.rs");
        include!("turnkeep.cascade.v1.serde.rs");
    }
}
/// Packages below `connect`.
pub mod connect {
    /// The package `turnkeep.connect.v1`.
    #[allow(missing_docs, rustdoc::all, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm, rust_2018_idioms)]
    pub mod v1 {
        include!("turnkeep.connect.v1.rs");
        include!("turnkeep.connect.v1.serde.rs");
    }
}
