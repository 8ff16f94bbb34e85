//! What the speed examples share: 1 000 accounts of one upstream that is never asked, one route to it, and the line that
//! an example prints for each case.

use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::time::Instant;
use turnkeep_base::{AccountId, Dialect, Evidence, Fault, FaultKind, Fingerprint, Phase, Secret};
use turnkeep_engine::admission::{Admission, Setup, Wanted};
use turnkeep_engine::ports::{Answer, Call, Upstream};
use turnkeep_engine::route::{Clocks, Reuse, Route, Speech, UpstreamEntry};
use turnkeep_policy::Tuning;
use turnkeep_policy::accounts::{AccountKey, AccountSpec, Tier, UpstreamSpec};
use turnkeep_policy::glob::Globs;

pub const ACCOUNTS: u32 = 1000;

struct Nobody;

impl Upstream for Nobody {
    fn send(&self, _: Call) -> BoxFuture<'_, Result<Answer, Fault>> {
        let evidence = Evidence::text("there is no upstream here");
        Box::pin(std::future::ready(Err(Fault::new(FaultKind::GatewayBug, Phase::Unsent, evidence))))
    }
}

/// The one route.
pub fn routes() -> Arc<[Route]> {
    let upstream = UpstreamEntry {
        name: "upstream".into(),
        speech: Speech::Dialect { dialect: Dialect::Chat, chains: false, port: Arc::new(Nobody) },
        reuse: Reuse::Off,
        clocks: Clocks::default(),
        on_client_gone: Default::default(),
    };
    [Route { upstream: Arc::new(upstream), model: "model".into(), tier: Tier::Own, name: "model".into(), price: None }]
        .into()
}

/// The accounts; `shape` may change the n-th.
pub fn admission(tuning: Tuning, shape: impl Fn(u32, &mut AccountSpec)) -> Arc<Admission> {
    let upstream: Arc<str> = "upstream".into();
    let account = |n| {
        let mut spec = AccountSpec {
            id: AccountId { upstream: upstream.clone(), account: format!("account-{n}").into() },
            max_in_flight: 8,
            models: Globs::default(),
            has_secret: true,
            enabled: true,
            limit_group: None,
            requests_per_minute: None,
            tokens_per_minute: None,
            generation: 0,
            place: Fingerprint([0; 16]),
        };
        shape(n, &mut spec);
        (spec, Some(Secret::new(format!("secret-{n}"))))
    };
    let admission = Admission::new(tuning.clone(), Instant::now());
    admission.reconfigure(Setup {
        tuning,
        upstreams: vec![UpstreamSpec { name: upstream.clone(), egress: "direct".into() }],
        accounts: (0..ACCOUNTS).map(account).collect(),
        entries: routes().iter().map(|route| route.upstream.clone()).collect(),
        routes: vec![(upstream.clone(), "model".into())],
        ..Setup::default()
    });
    admission
}

/// What a turn's first attempt wants.
pub fn wanted(routes: &Arc<[Route]>, tie: u64, only: Option<AccountKey>) -> Wanted {
    Wanted {
        routes: routes.clone(),
        from_route: 0,
        larger: false,
        tried: Vec::new(),
        only,
        tie,
        tokens: 500,
        retry: false,
        preferred: Vec::new(),
        owner: None,
    }
}

/// A case's line, in nanoseconds.
pub fn print(case: &str, mut samples: Vec<u64>) {
    samples.sort_unstable();
    let at = |percent: usize| samples.get(samples.len() * percent / 100).copied().unwrap_or_default();
    println!("{case}: {} ns median, {} ns p99", at(50), at(99));
}
