//! What a fault does to an account short of its status: which dimensions cool, for how long, and the health samples.

use super::Standing;
use crate::accounts::cooldown::Scope;
use crate::accounts::judged::Applied;
use crate::moment::Moment;
use crate::tuning::Tuning;
use std::collections::BTreeMap;
use std::time::Duration;
use turnkeep_base::seeded;
use turnkeep_base::{Effect, Fault, LimitScope};

/// Samples kept.
const SAMPLES: usize = 16;
/// Models whose overloads in a row are counted.
const OVERLOADED: usize = 256;

impl Standing {
    /// The part of a fault's effect that is not the status: cooldowns and samples.
    pub(super) fn cool(
        &mut self,
        now: Moment,
        tuning: &Tuning,
        fault: &Fault,
        effect: Effect,
        model: &str,
        judged: bool,
        applied: &mut Vec<Applied>,
    ) {
        let mut ends: BTreeMap<Scope, Duration> = BTreeMap::new();
        let mut cool = |scope: Scope, wait: Duration| {
            let entry = ends.entry(scope).or_insert(wait);
            *entry = wait.max(*entry);
        };
        let this_model = || Scope::Model(model.to_owned());
        let scope_of = |scope: LimitScope| match scope {
            LimitScope::Account => Scope::Account,
            LimitScope::Requests => Scope::Rate,
            LimitScope::Quota => Scope::Quota,
            LimitScope::Model => this_model(),
        };
        let windows = || fault.declared.windows.iter();
        let mut sample = false;
        match effect {
            Effect::None | Effect::Budget | Effect::Suspend => {}
            Effect::Misconfigured => applied.push(Applied::Misconfigured),
            Effect::QuotaCooldown if seeded::is("quota-is-not-heeded") => {}
            Effect::QuotaCooldown => {
                windows().for_each(|window| cool(scope_of(window.scope), window.wait));
                let own_window = windows().any(|window| window.scope == LimitScope::Quota);
                match fault.declared.wait {
                    Some(wait) => cool(Scope::Quota, wait),
                    None if own_window => {}
                    None => cool(Scope::Quota, tuning.quota_cooldown),
                }
            }
            Effect::RateCooldown => {
                windows().for_each(|window| cool(scope_of(window.scope), window.wait));
                let scope = if fault.declared.names_model { this_model() } else { Scope::Account };
                match fault.declared.wait.filter(|_| !seeded::is("retry-after-is-not-heeded")) {
                    Some(wait) => cool(scope, wait),
                    None if fault.declared.windows.is_empty() => cool(scope, tuning.rate_cooldown),
                    None => {}
                }
            }
            Effect::ModelBlocked => cool(this_model(), tuning.model_blocked),
            Effect::ModelOverload => {
                let stated = windows().filter(|window| window.scope == LimitScope::Model).map(|window| window.wait);
                let stated = fault.declared.wait.into_iter().chain(stated).max();
                let in_a_row = self.overloaded(model);
                let growing = tuning.overload_cooldown.saturating_mul(1 << in_a_row.min(16));
                let scope = if seeded::is("an-overload-cools-the-account") { Scope::Account } else { this_model() };
                cool(scope, stated.unwrap_or(growing.min(tuning.longest_overload)));
            }
            Effect::HealthSample => {
                sample = true;
                if seeded::is("a-sample-cools-the-account") {
                    cool(Scope::Account, tuning.rate_cooldown);
                }
            }
        }
        for (scope, wait) in ends {
            let until = self.cooldowns.cool(now, scope.clone(), wait, tuning.longest_cooldown, fault.kind);
            if until > now {
                applied.push(Applied::Cooled { scope, until });
            }
        }
        if sample && judged {
            self.samples.retain(|&until| until > now);
            if self.samples.len() < SAMPLES {
                self.samples.push(now.after(tuning.sample_life));
            }
            applied.push(Applied::Sample);
        }
    }

    /// Counts an overload of the model; gives how many came before it in a row.
    fn overloaded(&mut self, model: &str) -> u32 {
        if self.overloads.len() >= OVERLOADED && !self.overloads.contains_key(model) {
            self.overloads.pop_first();
        }
        let in_a_row = self.overloads.entry(model.to_owned()).or_insert(0);
        let before = *in_a_row;
        *in_a_row = in_a_row.saturating_add(1);
        before
    }
}
