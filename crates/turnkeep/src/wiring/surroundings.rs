//! What the processes of accounts have around them: their homes, and their variables with the secrets in them.

use crate::config::{Account, Credential, EnvValue};
use crate::secrets;
use futures_util::future::try_join_all;
use std::collections::BTreeMap;
use std::path::PathBuf;
use turnkeep_base::{AccountId, Secret};

/// Of all accounts that have any and whose secrets could be read.
pub(crate) type Surroundings = BTreeMap<AccountId, Place>;

/// Of one account. No `Debug`: its variables may be secrets.
#[derive(Clone, PartialEq)]
pub(crate) struct Place {
    /// Its HOME.
    pub(super) home: PathBuf,
    /// Its own variables.
    pub(super) env: Vec<(String, String)>,
    /// By which of its methods it is asked to log in.
    pub(super) auth_method: Option<String>,
}

impl Place {
    /// Its own variables, for a process.
    pub(super) fn variables(&self) -> BTreeMap<String, Secret> {
        self.env.iter().map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect()
    }
}

/// Reads the secrets among an account's variables. Nothing for one without a process.
///
/// # Errors
/// In words, with the variable, without a secret.
pub(crate) async fn of(account: &Account) -> Result<Option<Place>, String> {
    let Credential::Surroundings { home, env: configured, auth_method } = &account.credential else { return Ok(None) };
    let read = |(name, value): &(String, EnvValue)| {
        let (name, value) = (name.clone(), value.clone());
        async move {
            match value {
                EnvValue::Text(text) => Ok((name, text)),
                EnvValue::Secret(place) => match secrets::fetch(&place).await {
                    Ok(secret) => Ok((name, secret.expose().to_owned())),
                    Err(why) => Err(format!("env.{name}: {why}")),
                },
            }
        }
    };
    let env = try_join_all(configured.iter().map(read)).await?;
    Ok(Some(Place { home: home.clone(), env, auth_method: auth_method.clone() }))
}
