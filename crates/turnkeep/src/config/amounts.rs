//! Amounts of money and budgets: read from the decimal as it is written, so that nothing is rounded on the way.

use super::read::{Item, Known};
use turnkeep_base::{NanoUsd, Price};
use turnkeep_policy::limits::{Amount, Budget, Per};

/// The dearest token, in US dollars per million.
const DEAREST: u64 = 100_000;
/// The largest budget in US dollars.
const MOST_USD: u64 = 1_000_000;
/// The largest budget in tokens.
const MOST_TOKENS: u64 = 1_000_000_000_000_000;

/// Why a decimal is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// No decimal, or one without a value.
    NoNumber,
    /// Below zero.
    Negative,
    /// Too many digits.
    TooLarge,
    /// More decimals than can be kept.
    TooFine,
}

/// A decimal as it is written, times ten to the power of `scale`.
fn scaled(text: &str, scale: usize) -> Result<u64, Wrong> {
    let text = text.replace('_', "");
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| Wrong::NoNumber)?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Wrong::NoNumber);
    }
    if digits.bytes().all(|byte| byte == b'0') {
        return Ok(0);
    }
    if negative {
        return Err(Wrong::Negative);
    }
    // How many zeros follow the digits; below zero, how many of them must be zeros.
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let zeros = signed(scale) + i64::from(exponent) - signed(part.len());
    let digits = match usize::try_from(-zeros) {
        Ok(cut) => {
            let kept = digits.len().checked_sub(cut).ok_or(Wrong::TooFine)?;
            let (kept, cut) = digits.split_at_checked(kept).ok_or(Wrong::TooFine)?;
            if cut.bytes().any(|byte| byte != b'0') {
                return Err(Wrong::TooFine);
            }
            kept.to_owned()
        }
        Err(_) if zeros > 40 => return Err(Wrong::TooLarge),
        Err(_) => digits + &"0".repeat(usize::try_from(zeros).unwrap_or(0)),
    };
    digits.trim_start_matches('0').parse().map_err(|_| Wrong::TooLarge)
}

const PRICE: Known = Known { table: "price", keys: &["input", "output", "cache_read", "cache_write"], later: &[] };

/// Reads a model's price: US dollars per million tokens, as providers list it.
pub(super) fn read_price(item: &Item<'_>) -> Option<Price> {
    let fields = item.table(&PRICE)?;
    let input = fields.require("input", "input = 3.0").and_then(|item| per_token(&item));
    let output = fields.require("output", "output = 15.0").and_then(|item| per_token(&item));
    let cached = |key: &str| match fields.get(key) {
        Some(item) => per_token(&item),
        None => input,
    };
    let (cache_read, cache_write) = (cached("cache_read"), cached("cache_write"));
    Some(Price { input: input?, output: output?, cache_read: cache_read?, cache_write: cache_write? })
}

/// US dollars per million tokens as billionths of a dollar per token: a thousand times the number.
fn per_token(item: &Item<'_>) -> Option<NanoUsd> {
    let text = item.decimal()?;
    match scaled(&text, 3) {
        Ok(nano) if nano <= DEAREST * 1_000 => Some(nano),
        Ok(_) | Err(Wrong::TooLarge) => {
            item.fail(format!("is more than {DEAREST} dollars per million tokens; is it per token?"))
        }
        Err(Wrong::Negative) => item.fail("must not be negative; a model that costs nothing has the price 0"),
        Err(Wrong::TooFine) => item
            .fail("has more than three decimals; a token's price is kept in whole billionths of a dollar, so round it"),
        Err(Wrong::NoNumber) => item.fail("must be a price in US dollars per million tokens, as in 3.0"),
    }
}

const BUDGET: Known = Known { table: "budget", keys: &["usd", "tokens", "per"], later: &[] };
const PERS: [(&str, Per); 3] = [("day", Per::Day), ("week", Per::Week), ("month", Per::Month)];

/// Reads a key's budget.
pub(super) fn read_budget(item: &Item<'_>) -> Option<Budget> {
    let shape = r#"budget = { usd = 20.0, per = "day" } or { tokens = 1000000, per = "week" }"#;
    let fields = item.table(&BUDGET)?;
    let per = fields.require("per", r#"per = "day", "week" or "month""#).and_then(|item| item.word(&PERS, &[]));
    let amount = match (fields.get("usd"), fields.get("tokens")) {
        (Some(usd), None) => usd.decimal().and_then(|text| usd.told(dollars(&text)).map(Amount::NanoUsd)),
        (None, Some(tokens)) => tokens.decimal().and_then(|text| tokens.told(token_count(&text)).map(Amount::Tokens)),
        (Some(_), Some(_)) => item.fail(format!("is in money or in tokens, not in both; write {shape}")),
        (None, None) => item.fail(format!("names no amount; write {shape}")),
    };
    Some(Budget { amount: amount?, per: per? })
}

/// A budget on the command line: `20usd/day`, `1000000tokens/week`.
pub(crate) fn budget(text: &str) -> Result<Budget, String> {
    let shape = "write an amount and a window, as in 20usd/day or 1000000tokens/week";
    let (amount, per) = text.split_once('/').ok_or(shape)?;
    let per = Per::from_name(per.trim()).ok_or("the window is day, week or month, as in 20usd/day")?;
    let amount = amount.trim().to_lowercase();
    let amount = if let Some(number) = amount.strip_suffix("usd") {
        dollars(number.trim()).map(Amount::NanoUsd)
    } else if let Some(number) = amount.strip_suffix("tokens") {
        token_count(number.trim()).map(Amount::Tokens)
    } else {
        return Err(shape.into());
    };
    Ok(Budget { amount: amount?, per })
}

fn dollars(text: &str) -> Result<NanoUsd, String> {
    match scaled(text, 9) {
        Ok(nano) if (1..=MOST_USD * 1_000_000_000).contains(&nano) => Ok(nano),
        Err(Wrong::TooFine) => Err("has more than nine decimals".into()),
        Ok(_) | Err(Wrong::TooLarge | Wrong::Negative | Wrong::NoNumber) => {
            Err(format!("must be above 0 and at most {MOST_USD} US dollars"))
        }
    }
}

fn token_count(text: &str) -> Result<u64, String> {
    match scaled(text, 0) {
        Ok(tokens) if (1..=MOST_TOKENS).contains(&tokens) => Ok(tokens),
        Ok(_) | Err(_) => Err(format!("must be a whole number of tokens from 1 to {MOST_TOKENS}")),
    }
}

/// As it is written on the command line.
pub(crate) fn show_budget(budget: &Budget) -> String {
    let per = budget.per.name();
    match budget.amount {
        Amount::NanoUsd(nano) => format!("{}usd/{per}", turnkeep_base::price::shown_usd(nano)),
        Amount::Tokens(tokens) => format!("{tokens}tokens/{per}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_taken_as_it_is_written() {
        for (text, scale, value) in [
            ("3.0", 3, 3_000),
            ("0.075", 3, 75),
            ("3", 9, 3_000_000_000),
            ("1_000.50", 2, 100_050),
            ("5e-1", 3, 500),
            ("2.5E2", 0, 250),
            ("0.1000000000000000", 1, 1),
            ("-0.0", 3, 0),
            ("0e999999", 3, 0),
            ("+1.1", 9, 1_100_000_000),
        ] {
            assert_eq!(scaled(text, scale), Ok(value), "{text}");
        }
        for (text, why) in [
            ("0.0005", Wrong::TooFine),
            ("1e-9", Wrong::TooFine),
            ("-1", Wrong::Negative),
            ("nan", Wrong::NoNumber),
            ("-inf", Wrong::NoNumber),
            ("", Wrong::NoNumber),
            ("1.2.3", Wrong::NoNumber),
            ("1e99999999999", Wrong::NoNumber),
            ("1e2147483647", Wrong::TooLarge),
            ("1e-2147483648", Wrong::TooFine),
            ("99999999999999999999", Wrong::TooLarge),
        ] {
            assert_eq!(scaled(text, 3), Err(why), "{text}");
        }
    }

    #[test]
    fn a_budget_of_the_command_line_is_shown_as_it_is_written() {
        for text in ["20usd/day", "0.5usd/month", "1000000tokens/week"] {
            assert_eq!(show_budget(&budget(text).unwrap()), text);
        }
        for wrong in ["20", "20usd", "usd/day", "0usd/day", "20eur/day", "5tokens/year", "1.5tokens/day", "-1usd/day"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }
}
