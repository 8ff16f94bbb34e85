//! The contract of a store, on every store: accounts and how they stand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code outside of #[test] functions")]

#[macro_use]
mod support;

use std::sync::Arc;
use support::{account, literal};
use turnkeep_base::AccountId;
use turnkeep_store::{
    CooldownRecord, CooldownScope, NewAccount, NewKey, OpenedSecret, RecordError, SecretInput, SecretKind, SecretRef,
    StandingRecord, StandingStatus, Store, Switch,
};

on_every_store! {
    async fn an_account_is_added_switched_and_rotated(store) {
        let id = account("openai", "a");
        let added = store.add_account(support::by_reference("a")).await.unwrap();
        assert_eq!((added.generation, added.enabled, added.created_ms), (1, true, support::NOW));
        assert!(matches!(store.add_account(support::by_reference("a")).await, Err(RecordError::Exists(_))));
        assert!(!store.set_account_enabled(id.clone(), false).await.unwrap().enabled);
        let rotated = store.rotate_account_secret(id.clone(), SecretInput::Literal(literal("sk-2"))).await.unwrap();
        assert_eq!((rotated.generation, rotated.enabled, &rotated.secret), (2, false, &SecretKind::Sealed));
        assert_eq!(store.list_accounts().await.unwrap(), [rotated]);
        let OpenedSecret::Literal(secret) = store.open_secret(id).await.unwrap() else { panic!("sealed") };
        assert_eq!(secret.expose(), "sk-2");
        let nobody = account("openai", "nobody");
        assert!(matches!(store.open_secret(nobody.clone()).await, Err(RecordError::Unknown(_))));
        assert!(matches!(store.set_account_enabled(nobody, true).await, Err(RecordError::Unknown(_))));
    }

    async fn a_reference_is_kept_as_it_was_given(store) {
        store.add_account(support::by_reference("a")).await.unwrap();
        let opened = store.open_secret(account("openai", "a")).await.unwrap();
        assert!(matches!(opened, OpenedSecret::Reference(SecretRef::Env(name)) if name == "OPENAI_API_KEY"));
        let bad = NewAccount {
            secret: SecretInput::Reference(SecretRef::Env("sk-literal".into())),
            ..support::by_reference("b")
        };
        let error = store.add_account(bad).await.unwrap_err();
        assert!(matches!(&error, RecordError::Invalid(words) if !words.contains("sk-literal")), "{error}");
    }

    async fn every_change_to_keys_and_accounts_raises_the_revision(store) {
        let mut seen = vec![store.revision().await.unwrap()];
        store.create_key(NewKey::named("a")).await.unwrap();
        seen.push(store.revision().await.unwrap());
        store.revoke_key("a".into()).await.unwrap();
        seen.push(store.revision().await.unwrap());
        store.add_account(support::by_reference("a")).await.unwrap();
        seen.push(store.revision().await.unwrap());
        store.set_account_enabled(account("openai", "a"), false).await.unwrap();
        seen.push(store.revision().await.unwrap());
        store.set_account_enabled(account("openai", "a"), true).await.unwrap();
        seen.push(store.revision().await.unwrap());
        store.rotate_account_secret(account("openai", "a"), SecretInput::Literal(literal("sk-2"))).await.unwrap();
        seen.push(store.revision().await.unwrap());
        store.remove_account(account("openai", "a"), "cli".into()).await.unwrap();
        seen.push(store.revision().await.unwrap());
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    }

    async fn an_accounts_limits_are_kept_through_every_other_change(store) {
        let new = NewAccount {
            limit_group: Some("org-1".into()), requests_per_minute: Some(600), tokens_per_minute: Some(u32::MAX),
            ..support::by_reference("a")
        };
        let added = store.add_account(new).await.unwrap();
        let limits = (Some("org-1"), Some(600), Some(u32::MAX));
        assert_eq!((added.limit_group.as_deref(), added.requests_per_minute, added.tokens_per_minute), limits);
        store.set_account_enabled(added.id.clone(), false).await.unwrap();
        store.rotate_account_secret(added.id.clone(), SecretInput::Literal(literal("sk-2"))).await.unwrap();
        let [kept] = &store.list_accounts().await.unwrap()[..] else { panic!("one account") };
        assert_eq!((kept.limit_group.as_deref(), kept.requests_per_minute, kept.tokens_per_minute), limits);
        let plain = store.add_account(support::by_reference("b")).await.unwrap();
        assert_eq!((plain.limit_group, plain.requests_per_minute, plain.tokens_per_minute), (None, None, None));
    }

    async fn limits_that_cannot_be_meant_are_refused(store) {
        let plain = || support::by_reference("a");
        for bad in [
            NewAccount { limit_group: Some(String::new()), ..plain() },
            NewAccount { requests_per_minute: Some(0), ..plain() },
            NewAccount { tokens_per_minute: Some(0), ..plain() },
        ] {
            assert!(matches!(store.add_account(bad).await, Err(RecordError::Invalid(_))));
        }
        assert!(store.list_accounts().await.unwrap().is_empty());
    }

    async fn a_removed_account_is_gone_with_its_secret_and_the_audit_log_says_who_did_it(store) {
        let (a, b) = (support::by_reference("a"), support::by_reference("b"));
        store.add_account(a.clone()).await.unwrap();
        let other = store.add_account(b).await.unwrap();
        let removed = store.remove_account(a.id.clone(), "cli".into()).await.unwrap();
        assert_eq!(removed.id, a.id);
        assert_eq!(store.list_accounts().await.unwrap(), [other]);
        assert!(matches!(store.open_secret(a.id.clone()).await, Err(RecordError::Unknown(_))));
        let again = store.remove_account(a.id.clone(), "cli".into()).await;
        assert!(matches!(again, Err(RecordError::Unknown(_))), "{again:?}");
        let [line] = &store.audit_entries(9).await.unwrap()[..] else { panic!("one line") };
        assert_eq!((line.actor.as_str(), line.action.as_str(), line.subject.as_str()), ("cli", "remove", "account openai/a"));
        assert_eq!(line.at_ms, support::NOW);
        assert_eq!(store.add_account(a).await.unwrap().generation, 1, "its name is free again");
    }

    async fn the_standing_of_an_account_outlives_its_removal(store) {
        let id = store.add_account(support::by_reference("a")).await.unwrap().id;
        store.save_standing(vec![standing("a", "[]")]).await.unwrap();
        store.remove_account(id, "cli".into()).await.unwrap();
        assert_eq!(store.load_standing().await.unwrap(), [standing("a", "[]")]);
    }

    async fn a_standing_reads_back_as_it_was_saved_whatever_its_budget_and_its_reason_say(store) {
        let long = format!("[{}0]", "1234567, ".repeat(454));
        assert!(long.len() > 4_080 && long.len() <= 4_096);
        let budgets = [
            "[]", "null", "{\"at\":[1,2],\"\u{e9}\":\"\\u0000\\n'\"}", " [ 1 ,\n2 ] ", "18446744073709551615", &long,
        ];
        let rows: Vec<_> = budgets.iter().enumerate().map(|(place, budget)| StandingRecord {
            reason: Some(format!("{place}: \u{8d26}\u{53f7} 'named' \"so\"\n")),
            since_ms: (place % 2 == 0).then_some(place as u64),
            retry_at_ms: (place % 3 == 0).then_some(9_000_000_000_000),
            episode: u32::MAX,
            ..standing(&format!("{place}"), budget)
        }).collect();
        store.save_standing(rows.clone()).await.unwrap();
        assert_eq!(store.load_standing().await.unwrap(), rows);
        let cleared: Vec<_> = rows.into_iter()
            .map(|row| StandingRecord { reason: None, since_ms: None, retry_at_ms: None, ..row })
            .collect();
        store.save_standing(cleared.clone()).await.unwrap();
        assert_eq!(store.load_standing().await.unwrap(), cleared);
    }

    async fn a_switch_is_open_until_it_is_taken_and_the_audit_log_says_who_made_it(store) {
        let (a, b) = (account("openai", "a"), account("openai", "b"));
        assert_eq!(store.open_switches().await.unwrap(), []);
        store.switch_account(b.clone(), true, "cli".into()).await.unwrap();
        store.switch_account(a.clone(), false, "cli".into()).await.unwrap();
        let switch = |id: &AccountId, enabled| Switch { account: id.clone(), enabled, at_ms: support::NOW };
        assert_eq!(store.open_switches().await.unwrap(), [switch(&a, false), switch(&b, true)]);
        store.take_switch(a, support::NOW).await.unwrap();
        assert_eq!(store.open_switches().await.unwrap(), [switch(&b, true)]);
        store.take_switch(account("openai", "nobody"), support::NOW).await.unwrap();
        assert_eq!(store.open_switches().await.unwrap(), [switch(&b, true)]);
        let log = store.audit_entries(9).await.unwrap();
        let said: Vec<_> = log.iter().map(|line| (line.actor.as_str(), line.action.as_str(), line.subject.as_str())).collect();
        assert_eq!(said, [("cli", "disable", "account openai/a"), ("cli", "enable", "account openai/b")]);
        assert_eq!(store.load_standing().await.unwrap(), [], "standings are the gateway's");
    }

    async fn what_is_switched_again_within_the_same_millisecond_is_not_taken_with_what_was_before_it(store) {
        let a = account("openai", "a");
        store.switch_account(a.clone(), false, "cli".into()).await.unwrap();
        let [first] = &store.open_switches().await.unwrap()[..] else { panic!("one") };
        store.switch_account(a.clone(), true, "cli".into()).await.unwrap();
        store.take_switch(a.clone(), first.at_ms).await.unwrap();
        let [second] = &store.open_switches().await.unwrap()[..] else { panic!("the second is open") };
        assert!(second.enabled && second.at_ms > first.at_ms, "{first:?} {second:?}");
        store.take_switch(a.clone(), second.at_ms).await.unwrap();
        assert_eq!(store.open_switches().await.unwrap(), []);
        store.switch_account(a, true, "cli".into()).await.unwrap();
        assert_eq!(store.open_switches().await.unwrap().len(), 1, "switched the same way again, it is open again");
    }

    async fn saved_standing_is_loaded_and_saving_replaces_an_account_whole(store) {
        let wait = |scope, model: Option<&str>, until_ms| CooldownRecord {
            scope, model: model.map(Into::into), fault: "rate_limited".into(), until_ms, length_ms: 15_000,
        };
        let standing = |name: &str, cooldowns| StandingRecord {
            account: account("openai", name), status: StandingStatus::Errored, episode: 2, since_ms: Some(5),
            retry_at_ms: Some(9), reason: Some("credential_rejected".into()), budget_json: "[1,2]".into(),
            updated_ms: 7, cooldowns,
        };
        let two = vec![wait(CooldownScope::Account, None, 20_000), wait(CooldownScope::Model, Some("m"), 30_000)];
        let (a, b) = (standing("a", two), standing("b", vec![wait(CooldownScope::Quota, None, 1)]));
        store.save_standing(vec![b.clone(), a.clone()]).await.unwrap();
        assert_eq!(store.load_standing().await.unwrap(), [a, b.clone()]);
        let a = standing("a", vec![wait(CooldownScope::Rate, None, 40_000)]);
        store.save_standing(vec![a.clone()]).await.unwrap();
        assert_eq!(store.load_standing().await.unwrap(), [a, b.clone()]);
        let both = vec![wait(CooldownScope::Rate, None, 40_000), wait(CooldownScope::Rate, None, 30_000)];
        store.save_standing(vec![standing("a", both)]).await.unwrap();
        assert_eq!(store.load_standing().await.unwrap()[0].cooldowns, [wait(CooldownScope::Rate, None, 40_000)]);
    }
}

fn standing(name: &str, budget_json: &str) -> StandingRecord {
    StandingRecord {
        account: account("openai", name),
        status: StandingStatus::Suspended,
        episode: 1,
        since_ms: Some(1),
        retry_at_ms: None,
        reason: Some("account_deactivated".into()),
        budget_json: budget_json.into(),
        updated_ms: 2,
        cooldowns: vec![],
    }
}
