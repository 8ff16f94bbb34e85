//! Mutants of seeds: bytes, words, lines, and JSON values that change places, so that what comes out is broken in its
//! bytes, or well-formed and wrong.

use crate::chance::Chance;
use serde_json::Value;

/// The longest mutant, in bytes.
const LONGEST: usize = 64 << 10;

/// What decoders trip over.
const WORDS: &[&[u8]] = &[
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b"data:",
    b"event: ",
    b"data: [DONE]\n\n",
    b": \n\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"",
    b"\\",
    b"\\ud83d",
    b"\\u0000",
    b"\\\"",
    b",",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b"-1",
    b"0",
    b"1e400",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-0.0",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"\xc3\xa9",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xa8",
    b"__proto__",
    b"9999999999999999999999",
    b"1970-01-01T00:00:00Z",
    b"Thu, 01 Jan 1970 00:00:00 GMT",
];

/// A mutant of one of the seeds; parts of the others may get into it.
pub(crate) fn mutant(seeds: &[&[u8]], chance: &mut Chance) -> Vec<u8> {
    let mut data = chance.one_of(seeds).map(|seed| seed.to_vec()).unwrap_or_default();
    let most = if chance.one_in(4) { 8 } else { 3 };
    let changes = 1 + chance.below(most);
    for _ in 0..changes {
        let other = chance.one_of(seeds).copied().unwrap_or_default();
        change(&mut data, other, chance);
        data.truncate(LONGEST);
    }
    data
}

fn change(data: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    match chance.below(12) {
        0 => {
            let at = chance.below(data.len());
            let byte = if chance.one_in(2) { chance.byte() } else { 1 << chance.below(8) };
            if let Some(slot) = data.get_mut(at) {
                *slot ^= byte;
            }
        }
        1 => {
            let word = chance.one_of(WORDS).copied().unwrap_or_default();
            let (from, to) = if chance.one_in(2) { (at(data, chance), 0) } else { span(data.len(), 8, chance) };
            data.splice(from..to.max(from), word.iter().copied());
        }
        2 => {
            let (from, to) = span(data.len(), 40, chance);
            data.drain(from..to);
        }
        3 => {
            let (from, to) = span(data.len(), 60, chance);
            let piece = data.get(from..to).unwrap_or_default().to_vec();
            let to = at(data, chance);
            data.splice(to..to, piece);
        }
        4 => {
            let end = at(data, chance);
            data.truncate(end);
        }
        5 => {
            let (from, to) = span(other.len(), other.len(), chance);
            let place = at(data, chance);
            data.splice(place..place, other.get(from..to).unwrap_or_default().iter().copied());
        }
        6 | 7 => lines(data, other, chance),
        _ => values(data, other, chance),
    }
}

fn at(data: &[u8], chance: &mut Chance) -> usize {
    chance.below(data.len() + 1)
}

fn span(length: usize, longest: usize, chance: &mut Chance) -> (usize, usize) {
    let from = chance.below(length + 1);
    (from, (from + chance.below(longest.max(1)) + 1).min(length))
}

/// A line, or the lines up to a blank one, goes, comes twice, changes places, or comes from elsewhere.
fn lines(data: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let groups = chance.one_in(2);
    let split = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        let mut joins = false;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match out.last_mut() {
                Some(last) if joins => last.extend_from_slice(line),
                Some(_) | None => out.push(line.to_vec()),
            }
            joins = groups && !line.iter().all(u8::is_ascii_whitespace);
        }
        out
    };
    let mut own = split(data);
    if own.is_empty() {
        return;
    }
    let (one, two) = (chance.below(own.len()), chance.below(own.len()));
    match chance.below(4) {
        0 => drop(own.remove(one)),
        1 => own.insert(one, own[two].clone()),
        2 => own.swap(one, two),
        _ => {
            let foreign = split(other);
            if let Some(line) = chance.one_of(&foreign) {
                own.insert(one, line.clone());
            }
        }
    }
    *data = own.concat();
}

/// Where a JSON text stands in the bytes: the whole, or of one line what follows `data:`.
fn texts(data: &[u8]) -> Vec<(usize, usize)> {
    if serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok() {
        return vec![(0, data.len())];
    }
    let mut found = Vec::new();
    let mut from = 0;
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let skipped = line.iter().position(|byte| matches!(byte, b'{' | b'['));
        let end = line.trim_ascii_end().len();
        if let Some(skipped) = skipped.filter(|skipped| *skipped < end && found.len() < 64) {
            found.push((from + skipped, from + end));
        }
        from += line.len();
    }
    found
}

/// A value of one JSON text is replaced, goes, or comes again under another name.
fn values(data: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let own = texts(data);
    let Some(&(from, to)) = chance.one_of(&own) else { return };
    let Ok(mut tree) = serde_json::from_slice::<Value>(&data[from..to]) else { return };
    let foreign = texts(other);
    let donor = chance.one_of(&foreign).and_then(|&(from, to)| serde_json::from_slice::<Value>(&other[from..to]).ok());
    let donor = donor.filter(|_| chance.one_in(2)).unwrap_or_else(|| tree.clone());
    let given = match chance.below(3) {
        0 => plain(chance),
        _ => pick(&donor, chance),
    };
    let number = chance.below(count(&tree));
    let how = chance.below(4);
    edit(&mut tree, &mut { number }, &mut |node| match (how, node) {
        (0, Value::Object(members)) => {
            let key = members.keys().nth(number % members.len().max(1)).cloned();
            if let Some(key) = key {
                members.shift_remove(&key);
            }
        }
        (0, Value::Array(items)) => {
            items.pop();
        }
        (1, Value::Object(members)) => {
            let key = members.keys().nth(number % members.len().max(1)).cloned();
            if let Some(key) = key {
                members.insert(key, given.clone());
            }
        }
        (1, Value::Array(items)) => items.push(given.clone()),
        (2, Value::Array(items)) => items.extend(items.clone()),
        (_, node) => *node = given.clone(),
    });
    if let Ok(text) = serde_json::to_vec(&tree) {
        data.splice(from..to, text);
    }
}

fn plain(chance: &mut Chance) -> Value {
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::from(""),
        Value::from("text"),
        Value::from(0),
        Value::from(-1),
        Value::from(u64::MAX),
        Value::from(1.5),
        Value::Array(Vec::new()),
        Value::Object(serde_json::Map::new()),
        Value::from("\u{0}\u{2028}\u{1f600}\"\\"),
    ];
    chance.one_of(&values).cloned().unwrap_or(Value::Null)
}

fn children(node: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match node {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Box::new(std::iter::empty()),
    }
}

fn count(node: &Value) -> usize {
    1 + children(node).map(count).sum::<usize>()
}

fn pick(tree: &Value, chance: &mut Chance) -> Value {
    let mut node = tree;
    loop {
        let below: Vec<&Value> = children(node).collect();
        match chance.one_of(&below) {
            Some(next) if !chance.one_in(4) => node = next,
            Some(_) | None => return node.clone(),
        }
    }
}

/// Does something with the node of this number, counted from the root down.
fn edit(node: &mut Value, number: &mut usize, work: &mut impl FnMut(&mut Value)) -> bool {
    if *number == 0 {
        work(node);
        return true;
    }
    *number -= 1;
    match node {
        Value::Array(items) => items.iter_mut().any(|item| edit(item, number, work)),
        Value::Object(members) => members.values_mut().any(|item| edit(item, number, work)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_chance_makes_the_same_mutants_and_another_makes_others() {
        let seeds: [&[u8]; 2] = [b"data: {\"a\":[1,{\"b\":\"c\"}]}\n\ndata: [DONE]\n\n", b"{\"x\":{\"y\":null}}"];
        let some = |purpose: &str| -> Vec<Vec<u8>> {
            (0..200).map(|number| mutant(&seeds, &mut Chance::of(purpose, number))).collect()
        };
        let one = some("one");
        assert_eq!(one, some("one"));
        assert_ne!(one, some("two"));
        let mut told: Vec<_> = one.clone();
        told.sort();
        told.dedup();
        assert!(told.len() > 150, "{}", told.len());
    }

    #[test]
    fn many_mutants_of_json_are_json_still() {
        let seeds: [&[u8]; 1] = [b"{\"a\":[1,{\"b\":\"c\"}],\"d\":{\"e\":[null,true]}}"];
        let good = (0..300)
            .map(|number| mutant(&seeds, &mut Chance::of("json", number)))
            .filter(|mutant| mutant != seeds[0] && serde_json::from_slice::<Value>(mutant).is_ok())
            .count();
        assert!(good > 40, "{good}");
    }
}
