//! The tools of a Responses request under canonical names. A tool in a namespace is `namespace__name` in the turn; how
//! the client knows it is kept in `turn.renamed`.

use crate::chat::request::{hint, missing, named};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{ClientTool, Renamed, Text, Tool, ToolKind, Turn};
use std::collections::{BTreeMap, BTreeSet};

/// A tool as the client gave it.
#[derive(Debug)]
pub(super) struct Given<'a> {
    namespace: Option<Text<'a>>,
    kind: ToolKind<'a>,
}

/// Reads a list of tools.
pub(super) fn tools<'a>(r: &mut Reader<'a>, out: &mut Vec<Given<'a>>, hints: &mut Vec<String>) -> Result<(), Invalid> {
    r.array(|r, _| tool(r, None, out, hints))
}

#[derive(Default)]
struct Fields<'a> {
    kind: Option<Text<'a>>,
    name: Option<Text<'a>>,
    description: Option<Text<'a>>,
    schema: Option<&'a str>,
    strict: Option<bool>,
    format: Option<&'a str>,
    tools: Option<Reader<'a>>,
    /// Other fields that say something.
    other: Vec<String>,
}

fn tool<'a>(
    r: &mut Reader<'a>,
    namespace: Option<&Text<'a>>,
    out: &mut Vec<Given<'a>>,
    hints: &mut Vec<String>,
) -> Result<(), Invalid> {
    let mut fields = Fields::default();
    r.object(|r, key| field(r, key, &mut fields))?;
    let Fields { kind, name, description, schema, strict, format, tools, mut other } = fields;
    let Some(kind) = kind else { return Err(missing(r, "type")) };
    let kind = match (kind.as_ref(), name) {
        ("function" | "custom" | "namespace", None) => return Err(missing(r, "name")),
        ("function", Some(name)) => ToolKind::Function { name, description, schema, strict },
        ("custom", Some(name)) => ToolKind::Custom { name, description, format: format.map(Text::Borrowed) },
        ("namespace", Some(name)) => {
            if namespace.is_some() {
                return Err(r.fail("a namespace within a namespace"));
            }
            if description.is_some_and(|text| !text.trim().is_empty()) {
                hint(hints, "tools[].namespace.description");
            }
            let Some(mut tools) = tools else { return Err(missing(r, "tools")) };
            return tools.array(|r, _| tool(r, Some(&name), out, hints));
        }
        (other, _) => ToolKind::Hosted(other.to_owned()),
    };
    if !matches!(kind, ToolKind::Hosted(_)) {
        other.drain(..).for_each(|name| hint(hints, &name));
    }
    out.push(Given { namespace: namespace.cloned(), kind });
    Ok(())
}

fn field<'a>(r: &mut Reader<'a>, key: &str, fields: &mut Fields<'a>) -> Result<(), Invalid> {
    match (key, r.kind()?) {
        (_, Kind::Null) => r.null().map(drop)?,
        ("type", _) => fields.kind = Some(r.string()?),
        ("name", Kind::String) => fields.name = Some(r.string()?),
        ("description", Kind::String) => fields.description = Some(r.string()?),
        ("parameters", Kind::Object) => fields.schema = Some(r.raw()?),
        ("strict", Kind::Bool) => fields.strict = Some(r.bool()?),
        ("format", Kind::Object) => fields.format = Some(r.raw()?),
        ("tools", Kind::Array) => {
            fields.tools = Some(r.clone());
            r.skip()?;
        }
        // What it means when it is not there.
        ("defer_loading" | "async", Kind::Bool) if !r.clone().bool()? => r.skip().map(drop)?,
        _ => named(r, &mut fields.other, "tools[].", key)?,
    }
    Ok(())
}

/// The canonical names of the request's tools.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Names that are taken.
    taken: BTreeSet<String>,
    /// The number that is tried next for a name that was wanted before.
    next: BTreeMap<String, u32>,
    /// The canonical names of tools in namespaces, by namespace and name.
    spaced: BTreeMap<(Text<'a>, Text<'a>), String>,
    /// The same by name alone; `None` where several namespaces have the name.
    alone: BTreeMap<Text<'a>, Option<String>>,
    /// How the client knows what the turn knows otherwise, by canonical name.
    renamed: BTreeMap<String, ClientTool>,
}

impl<'a> Names<'a> {
    /// Puts the tools into the turn: those of the request, then those of `additional_tools` items. A tool that is given
    /// again by an item replaces the one before it, and so does one of the same namespace.
    pub(super) fn of(own: Vec<Given<'a>>, additional: Vec<Given<'a>>, turn: &mut Turn<'a>) -> Self {
        let mut names = Names::default();
        let flat = own.iter().chain(&additional).filter(|given| given.namespace.is_none());
        names.taken.extend(flat.filter_map(|given| name_of(&given.kind)).map(|name| name.to_string()));
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let before = own.len();
        for (at, given) in own.into_iter().chain(additional).enumerate() {
            let Given { namespace, mut kind } = given;
            let replaces = at >= before || namespace.is_some();
            let custom = matches!(kind, ToolKind::Custom { .. });
            let index = turn.tools.len();
            if let ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } = &mut kind {
                let client = name.clone();
                if let Some(namespace) = &namespace {
                    *name = names.spaced(namespace, &client).into();
                }
                let canonical = name.to_string();
                names.know(&canonical, &client, namespace.as_ref(), custom);
                match places.get(&canonical).and_then(|place| turn.tools.get_mut(*place)) {
                    Some(known) if replaces => {
                        known.kind = kind;
                        continue;
                    }
                    Some(_) | None => places.insert(canonical, index),
                };
            }
            turn.tools.push(Tool { index: index as u32, kind });
        }
        names
    }

    /// The canonical name of a tool in a namespace.
    pub(super) fn spaced(&mut self, namespace: &Text<'a>, name: &Text<'a>) -> String {
        let key = (namespace.clone(), name.clone());
        if let Some(known) = self.spaced.get(&key) {
            return known.clone();
        }
        let first = format!("{namespace}__{name}");
        // Where it stopped counting the last time, so that many names of one form cost no more than each by itself.
        let number = self.next.entry(first.clone()).or_insert(1);
        let canonical = loop {
            let one = if *number == 1 { first.clone() } else { format!("{first}_{number}") };
            *number += 1;
            if self.taken.insert(one.clone()) {
                break one;
            }
        };
        self.alone.entry(name.clone()).and_modify(|several| *several = None).or_insert_with(|| Some(canonical.clone()));
        self.spaced.insert(key, canonical.clone());
        canonical
    }

    /// Notes how the client knows a tool, where that is not how the turn does. The last word counts.
    fn know(&mut self, canonical: &str, name: &str, space: Option<&Text<'_>>, custom: bool) {
        if custom || space.is_some() {
            let client = ClientTool { name: name.to_owned(), namespace: space.map(|space| space.to_string()), custom };
            self.renamed.insert(canonical.to_owned(), client);
        } else {
            self.renamed.remove(canonical);
        }
    }

    /// The canonical name for the tool of a call. A tool that is not offered any more is still known as what it was.
    pub(super) fn called(&mut self, name: &mut Text<'a>, namespace: Option<&Text<'a>>, custom: bool) {
        let client = name.clone();
        match namespace {
            Some(namespace) => *name = self.spaced(namespace, &client).into(),
            None => self.rename(name),
        }
        let offered =
            self.renamed.contains_key(name.as_ref()) || self.taken.contains(name.as_ref()) && namespace.is_none();
        if !offered {
            self.know(name, &client, namespace, custom);
        }
    }

    /// What the turn keeps of the client's names.
    pub(super) fn into_renamed(self) -> Vec<Renamed> {
        self.renamed.into_iter().map(|(canonical, client)| Renamed { canonical, client }).collect()
    }

    /// The canonical name for a name without its namespace, where only one tool can be meant.
    pub(super) fn rename(&self, name: &mut Text<'a>) {
        if !self.taken.contains(name.as_ref())
            && let Some(Some(canonical)) = self.alone.get(name)
        {
            *name = canonical.clone().into();
        }
    }
}

fn name_of<'t, 'a>(kind: &'t ToolKind<'a>) -> Option<&'t Text<'a>> {
    match kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name),
        ToolKind::Hosted(_) => None,
    }
}
