//! Looks at a server's health, which tells its process. At one that is started here, one look is for however many turns want
//! it, and goes on when they have left: turns with less time than it takes would else never find out that a server hangs.

use super::link::Link;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio::sync::watch;
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};

/// Why a server's process is not known.
#[derive(Clone, Debug)]
pub(super) struct Unwell {
    pub(super) fault: Fault,
    /// It takes no calls, and is not lent again.
    pub(super) dismissed: bool,
}

type Outcome = Option<Result<u128, Unwell>>;

/// The looks at the servers of all accounts: of each the last one.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<BTreeMap<AccountId, (u128, watch::Receiver<Outcome>)>>);

impl Looks {
    /// The process, as the server tells it now.
    pub(super) async fn ask(&self, link: &Link) -> Result<u128, Unwell> {
        let Some(started) = link.started else { return told_in_time(link).await };
        let mut outcome = self.shared(link, started);
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(given_up())),
            Err(_) => Err(given_up()),
        }
    }

    fn shared(&self, link: &Link, started: u128) -> watch::Receiver<Outcome> {
        let mut looks = self.0.lock();
        let under_way = looks.get(&link.account).filter(|(of, outcome)| *of == started && outcome.borrow().is_none());
        if let Some((_, outcome)) = under_way {
            return outcome.clone();
        }
        let (tell, outcome) = watch::channel(None);
        // What one turn has left of its time does not bound what all wait for.
        let mut link = link.clone();
        link.until = None;
        looks.insert(link.account.clone(), (started, outcome.clone()));
        tokio::spawn(async move {
            let told = told_in_time(&link).await;
            if told.as_ref().is_err_and(|unwell| unwell.dismissed) {
                link.dismiss();
            }
            tell.send_replace(Some(told));
        });
        outcome
    }

    pub(super) fn forget(&self, account: &AccountId) {
        self.0.lock().remove(account);
    }
}

/// No clock of a turn runs for those who only look.
async fn told_in_time(link: &Link) -> Result<u128, Unwell> {
    let within = link.links.health_within;
    match tokio::time::timeout(within, link.health()).await {
        Ok(Ok(instance)) => Ok(instance),
        // Whatever it answers, it answers.
        Ok(Err(fault)) => {
            let unanswered = matches!(
                fault.kind,
                FaultKind::ConnectRefused
                    | FaultKind::ConnectTimeout
                    | FaultKind::ConnectionReset
                    | FaultKind::StreamTruncated
            );
            Err(Unwell { fault, dismissed: unanswered && link.started.is_some() })
        }
        Err(_) => {
            let text = format!("the server has not told its health within {} s", within.as_secs());
            let fault = Fault::new(FaultKind::UpstreamUnavailable, Phase::MaybeSent, Evidence::text(text));
            Err(Unwell { fault, dismissed: link.started.is_some() })
        }
    }
}

fn given_up() -> Unwell {
    let evidence = Evidence::text("the look at the server's health was given up");
    Unwell { fault: Fault::new(FaultKind::UpstreamUnavailable, Phase::Unsent, evidence), dismissed: false }
}
