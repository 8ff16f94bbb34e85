//! The lists of models a Messages client reads. Only names are known here; `created_at` is the time the caller gives.

use crate::json::Object;
use bytes::Bytes;

/// `GET /v1/models`, all on one page. `created` is in Unix seconds.
pub fn list(models: &[&str], created: u64) -> Bytes {
    page(models, false, created)
}

/// One page of `GET /v1/models`; `more` follow in its direction. `created` is in Unix seconds.
pub fn page(models: &[&str], more: bool, created: u64) -> Bytes {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    {
        let mut data = object.array("data");
        for model in models {
            fields(&mut data.object(), model, created);
        }
    }
    object.bool("has_more", more);
    object.optional_string("first_id", models.first().copied());
    object.optional_string("last_id", models.last().copied());
    drop(object);
    out.into()
}

/// `GET /v1/models/{id}`.
pub fn one(model: &str, created: u64) -> Bytes {
    let mut out = Vec::new();
    fields(&mut Object::open(&mut out), model, created);
    out.into()
}

fn fields(object: &mut Object<'_>, model: &str, created: u64) {
    object.string("type", "model");
    object.string("id", model);
    object.string("display_name", model);
    object.string("created_at", &rfc3339(created));
}

/// Unix seconds as a date and time in UTC (the civil calendar, computed in eras of 400 years from March on).
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
