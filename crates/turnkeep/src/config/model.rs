//! `[[models]]`: the names clients use, and where each may go.

use super::amounts;
use super::read::{Item, Known, Names};
use super::text::{nearest, quoted_list};
use super::upstream::Upstream;
use std::time::Duration;
use turnkeep_base::Price;

/// The name of the catch-all: any name that no other entry has, passed on as it is.
pub const ANY_MODEL: &str = "*";

/// A name that clients may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// The name, or [`ANY_MODEL`].
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Where it may go, the first one first; at least one.
    pub routes: Vec<Route>,
    /// Other models of the configuration, by name, that answer when none of its routes can; the client is told. Their
    /// own fallbacks are not followed.
    pub fallbacks: Vec<String>,
    /// Other models of the configuration, by name, that take a request which its upstream calls too long for it.
    pub larger: Vec<String>,
    /// How long its answers may be used again; without, they are not.
    pub cache: Option<Duration>,
    /// What its tokens cost.
    pub price: Option<Price>,
}

/// One place a model may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// An upstream of the configuration.
    pub upstream: String,
    /// What the upstream calls the model; `None`: as [`Model::upstream_model`] says.
    pub model: Option<String>,
}

impl Model {
    /// The catch-all over these upstreams.
    pub fn any(upstreams: impl IntoIterator<Item = String>) -> Model {
        let routes = upstreams.into_iter().map(|upstream| Route { upstream, model: None }).collect();
        Model { name: ANY_MODEL.into(), routes, ..Model::default() }
    }

    /// It is the catch-all.
    pub fn is_any(&self) -> bool {
        self.name == ANY_MODEL
    }

    /// It answers to this name; the catch-all answers to none of its own.
    pub fn is_called(&self, requested: &str) -> bool {
        !self.is_any() && (self.name == requested || self.aliases.iter().any(|alias| alias == requested))
    }

    /// What to ask a route's upstream for when the client asked for `requested`: the route's own word, else this
    /// model's name, and on the catch-all the client's word.
    pub fn upstream_model<'a>(&'a self, route: &'a Route, requested: &'a str) -> &'a str {
        match &route.model {
            Some(model) => model,
            None if self.is_any() => requested,
            None => &self.name,
        }
    }
}

const MODEL: Known = Known {
    table: "[[models]]",
    keys: &["name", "aliases", "routes", "fallbacks", "larger", "cache", "price"],
    later: &[],
};
const CACHE: Known = Known { table: "cache", keys: &["ttl"], later: &[] };
const ROUTE: Known = Known { table: "a route", keys: &["upstream", "model"], later: &[] };

/// Reads all models. `upstreams` are those that were read without mistakes.
pub(super) fn read_all(item: Item<'_>, upstreams: &[Upstream]) -> Vec<Model> {
    let mut names = Names::new();
    let upstreams: Vec<&str> = upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    let items = item.list_of_tables();
    let others = Others::look(&items);
    items.into_iter().filter_map(|item| read(item, &upstreams, &others, &mut names)).collect()
}

/// The names of all models, also of those that are wrong otherwise; and the aliases, each with its model's name.
struct Others<'a> {
    names: Vec<&'a str>,
    aliases: Vec<(&'a str, &'a str)>,
}

impl<'a> Others<'a> {
    fn look(items: &[Item<'a>]) -> Self {
        let mut others = Others { names: Vec::new(), aliases: Vec::new() };
        for item in items {
            let Some(name) = item.quiet_get("name").and_then(|name| name.quiet_text()) else { continue };
            others.names.push(name);
            let aliases = item.quiet_get("aliases").map(|aliases| aliases.one_or_list()).unwrap_or_default();
            others.aliases.extend(aliases.iter().filter_map(|alias| Some((alias.quiet_text()?, name))));
        }
        others.names.retain(|name| *name != ANY_MODEL);
        others
    }

    /// Reads a list of other models' names.
    fn read(&self, item: &Item<'_>, own: Option<&str>) -> Vec<String> {
        if own == Some(ANY_MODEL) {
            item.fail::<()>("the catch-all \"*\" has none; add routes to it, or give the model an entry of its own");
            return Vec::new();
        }
        let mut names: Vec<String> = Vec::new();
        for item in item.list().unwrap_or_default() {
            let Some(name) = item.filled_text() else { continue };
            if let Some(why) = self.refuse(name, own) {
                item.fail::<()>(why);
            } else if names.iter().any(|other| other == name) {
                item.fail::<()>(format!("{name:?} is listed twice; remove one"));
            } else {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn refuse(&self, name: &str, own: Option<&str>) -> Option<String> {
        if name == ANY_MODEL {
            return Some("\"*\" is no model; name one of the other [[models]]".into());
        }
        if own == Some(name) {
            return Some(format!("{name:?} is this model itself; name another"));
        }
        if self.names.contains(&name) {
            return None;
        }
        if let Some((_, model)) = self.aliases.iter().find(|(alias, _)| *alias == name) {
            return Some(match own == Some(model) {
                true => format!("{name:?} is an alias of this model itself; name another"),
                false => format!("{name:?} is an alias; write the model's name, {model:?}"),
            });
        }
        let others: Vec<&str> = self.names.iter().copied().filter(|other| own != Some(other)).collect();
        Some(match nearest(name, &others) {
            Some(near) => format!("there is no model {name:?}; did you mean {near:?}?"),
            None if others.is_empty() => format!("there is no model {name:?}; add it to [[models]]"),
            None => format!("there is no model {name:?}; there is {}", quoted_list(&others)),
        })
    }
}

fn read(item: Item<'_>, upstreams: &[&str], others: &Others<'_>, names: &mut Names) -> Option<Model> {
    let fields = item.table(&MODEL)?;
    let name = fields.require("name", r#"name = "gpt-5", or name = "*" for any other"#);
    let name = name.and_then(|item| read_name(&item, true, names));
    let any = name.as_deref() == Some(ANY_MODEL);
    let mut aliases = Vec::new();
    if let Some(item) = fields.get("aliases") {
        if any {
            item.fail::<()>("the catch-all \"*\" has no aliases; it takes every name already");
        } else {
            let items = item.list().unwrap_or_default();
            aliases = items.iter().filter_map(|item| read_name(item, false, names)).collect();
        }
    }
    let routes = fields.require("routes", r#"routes = [{ upstream = "…" }]"#).and_then(|item| {
        let items = item.list()?;
        if items.is_empty() {
            return item.fail(r#"names no route; write [{ upstream = "…" }]"#);
        }
        Some(items.iter().filter_map(|item| read_route(item, upstreams)).collect::<Vec<_>>())
    });
    let list = |key: &str| fields.get(key).map(|item| others.read(&item, name.as_deref())).unwrap_or_default();
    let (fallbacks, larger) = (list("fallbacks"), list("larger"));
    let cache = fields.get("cache").and_then(|item| read_cache(&item));
    let price = fields.get("price").and_then(|item| amounts::read_price(&item));
    Some(Model { name: name?, aliases, routes: routes?, fallbacks, larger, cache, price })
}

fn read_cache(item: &Item<'_>) -> Option<Duration> {
    let fields = item.table(&CACHE)?;
    let ttl = fields.require("ttl", r#"ttl = "5m""#)?;
    ttl.duration(Duration::from_secs(1), Duration::from_secs(7 * 86_400))
}

fn read_name(item: &Item<'_>, any_allowed: bool, names: &mut Names) -> Option<String> {
    let name = item.filled_text()?;
    if name.trim() != name || name.chars().count() > 256 || name.chars().any(char::is_control) {
        return item.fail("a model's name is 1 to 256 characters, without control characters or blanks at its ends");
    }
    if name.contains('*') && !(any_allowed && name == ANY_MODEL) {
        return item.fail("a model's name is no pattern; only the whole name \"*\" stands for any other");
    }
    item.claim(name, names)?;
    Some(name.to_owned())
}

fn read_route(item: &Item<'_>, upstreams: &[&str]) -> Option<Route> {
    let fields = item.table(&ROUTE)?;
    let model = match fields.get("model") {
        Some(item) => Some(item.filled_text()?.to_owned()),
        None => None,
    };
    let item = fields.require("upstream", r#"upstream = "…", the name of one of [[upstreams]]"#)?;
    let upstream = item.filled_text()?;
    if !upstreams.contains(&upstream) {
        return match nearest(upstream, upstreams) {
            Some(near) => item.fail(format!("there is no upstream {upstream:?}; did you mean {near:?}?")),
            None if upstreams.is_empty() => item.fail(format!("there is no upstream {upstream:?}; add [[upstreams]]")),
            None => item.fail(format!("there is no upstream {upstream:?}; there is {}", quoted_list(upstreams))),
        };
    }
    Some(Route { upstream: upstream.to_owned(), model })
}
