//! The same bytes in other pieces.

use crate::chance::Chance;

/// Inputs up to this many bytes are also fed byte by byte.
const BY_BYTE: usize = 2 << 10;

/// The ways in which an input is cut: whole, at drawn places, and byte by byte where it is short. The first is the whole.
pub(crate) fn ways(data: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut ways = vec![vec![data], drawn(data)];
    if data.len() <= BY_BYTE {
        ways.push(data.chunks(1).collect());
    }
    ways
}

/// Cut at drawn places: mostly short pieces, some empty, some long.
pub(crate) fn drawn(data: &[u8]) -> Vec<&[u8]> {
    let mut chance = Chance::over("cuts", data);
    let (mut rest, mut pieces) = (data, Vec::new());
    while !rest.is_empty() {
        let most = if chance.one_in(8) { rest.len() } else { 48 };
        let (piece, after) = rest.split_at(chance.below(most + 1).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A beginning of the input, at a drawn place.
pub(crate) fn beginning(data: &[u8]) -> &[u8] {
    let at = Chance::over("beginning", data).below(data.len() + 1);
    data.get(..at).unwrap_or(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_all_the_bytes_in_their_order() {
        let data: Vec<u8> = (0..=255).cycle().take(700).collect();
        for way in ways(&data) {
            assert_eq!(way.concat(), data);
        }
        assert!(drawn(&data).len() > 3);
        assert!(data.starts_with(beginning(&data)));
    }
}
