//! Models that stand in for others, and accounts that share limits.

use super::{UPSTREAM, only_error, parse};

fn text(fast: &str) -> String {
    let model = |name: &str, sent: &str, rest: &str| {
        format!("[[models]]\nname = \"{name}\"\nroutes = [{{ upstream = \"openai\", model = \"{sent}\" }}]\n{rest}\n")
    };
    let fast = model("fast", "f", &format!("aliases = [\"quick\"]\n{fast}"));
    format!("{UPSTREAM}{fast}{}{}", model("big", "b", "aliases = [\"large\"]"), model("*", "any", ""))
}

#[test]
fn a_model_names_others_that_stand_in_for_it_in_order() {
    let config = parse(&text("fallbacks = [\"big\"]\nlarger = [\"big\"]"));
    let fast = config.model("fast").unwrap();
    assert_eq!((&fast.fallbacks[..], &fast.larger[..]), (&["big".to_owned()][..], &["big".to_owned()][..]));
    assert!(config.model("big").unwrap().fallbacks.is_empty());
}

#[test]
fn two_models_may_stand_in_for_each_other() {
    let both = text("fallbacks = [\"big\"]").replace("aliases = [\"large\"]", "fallbacks = [\"fast\"]");
    assert_eq!(parse(&both).model("big").unwrap().fallbacks, ["fast"]);
}

#[test]
fn a_name_that_no_other_model_has_is_told_with_the_right_one() {
    for key in ["fallbacks", "larger"] {
        let wrong = [
            ("[\"bgi\"]", "[0]", "did you mean \"big\"?"),
            ("[\"nothing\"]", "[0]", "there is \"big\""),
            ("[\"large\"]", "[0]", "is an alias; write the model's name, \"big\""),
            ("[\"quick\"]", "[0]", "alias of this model itself"),
            ("[\"fast\"]", "[0]", "this model itself"),
            ("[\"*\"]", "[0]", "is no model"),
            ("[\"big\", \"big\"]", "[1]", "twice"),
            ("[\"\"]", "[0]", "must not be empty"),
            ("\"big\"", "", "must be an array"),
        ];
        for (value, at, part) in wrong {
            let (place, message) = only_error(&text(&format!("{key} = {value}")));
            assert!(place.ends_with(&format!(" models[0].{key}{at}")), "{value}: {place}");
            assert!(message.contains(part), "{value}: {message}");
        }
    }
}

#[test]
fn nothing_stands_in_for_the_catch_all() {
    let text = format!("{}fallbacks = [\"big\"]\n", text(""));
    assert!(only_error(&text).1.contains("catch-all"));
}

#[test]
fn a_fallback_that_goes_where_its_model_goes_already_is_doubtful() {
    let same = text("fallbacks = [\"big\"]").replace("model = \"b\"", "model = \"f\"");
    let told = |text: &str| {
        let warnings = parse(text).warnings;
        warnings.iter().any(|w| w.key == "models[0].fallbacks" && w.message.contains("\"big\" goes only where"))
    };
    assert!(told(&same));
    assert!(!told(&text("fallbacks = [\"big\"]")));
}

#[test]
fn an_account_may_share_a_limit_and_have_its_own() {
    let limits = "limit_group = \"org\"\nrequests_per_minute = 600\ntokens_per_minute = 400000\n";
    let second = "[[upstreams.accounts]]\nname = \"b\"\nsecret = { env = \"B\" }\nlimit_group = \"org\"\n";
    let config = parse(&format!("{UPSTREAM}{limits}{second}"));
    let [first, second] = &config.upstreams[0].accounts[..] else { panic!("{config:?}") };
    assert_eq!(first.limit_group, second.limit_group);
    assert_eq!((first.requests_per_minute, first.tokens_per_minute), (Some(600), Some(400_000)));
    assert_eq!((second.requests_per_minute, second.tokens_per_minute), (None, None));
    assert!(!config.warnings.iter().any(|warning| warning.key.ends_with("limit_group")), "{:?}", config.warnings);
}

#[test]
fn a_limit_group_of_one_account_is_doubtful() {
    let config = parse(&format!("{UPSTREAM}limit_group = \"org\"\n"));
    let told = config.warnings.iter().find(|warning| warning.key == "upstreams[0].accounts[0].limit_group");
    assert!(told.unwrap().message.contains("\"org\""), "{told:?}");
}

#[test]
fn limits_that_are_none_are_told() {
    for (line, part) in [
        ("requests_per_minute = 0", "from 1"),
        ("tokens_per_minute = 0", "from 1"),
        ("tokens_per_minute = \"1k\"", "must be an integer"),
        ("limit_group = \"\"", "must not be empty"),
        ("limit_group = \"a/b\"", "no slash"),
    ] {
        let (place, message) = only_error(&format!("{UPSTREAM}{line}\n"));
        assert!(place.starts_with("9:") && message.contains(part), "{line}: {place} {message}");
    }
}
