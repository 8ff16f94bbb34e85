//! The names of dropped fields, as the client is told them in a header. They come from the client's own JSON, so they may
//! hold anything and be any number of any length; a header holds little, and only visible ASCII.

use std::fmt::Write;

/// Names that are told; of more the last name is [`MORE`]. Readers stop keeping names one above it.
pub const MAX_NAMES: usize = 64;
/// Bytes of one name that are told.
pub const MAX_NAME: usize = 96;
/// Stands for what is left out.
pub const MORE: &str = "...";

/// The names in the letters of a header and within its bounds. Commas part them there, so a comma in a name, `%` and all
/// that is not visible ASCII are percent-encoded.
pub fn names(names: Vec<String>) -> Vec<String> {
    let more = names.len() > MAX_NAMES;
    let told = names.iter().take(MAX_NAMES).map(|name| plain(name));
    told.chain(more.then(|| MORE.to_owned())).collect()
}

fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len().min(MAX_NAME));
    for byte in name.bytes() {
        if out.len() >= MAX_NAME {
            out.push_str(MORE);
            break;
        }
        if byte.is_ascii_graphic() && byte != b',' && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_a_header() {
        let given = ["plain[].name", "a,b", "größe", "a b\n%", "x".repeat(500).as_str()].map(String::from).to_vec();
        let told = names(given);
        assert_eq!(told[..4], ["plain[].name", "a%2Cb", "gr%C3%B6%C3%9Fe", "a%20b%0A%25"]);
        assert_eq!(told[4], format!("{}{MORE}", "x".repeat(MAX_NAME)));
    }

    #[test]
    fn of_too_many_names_the_last_says_so() {
        let told = names((0..1000).map(|number| number.to_string()).collect());
        assert_eq!((told.len(), told[MAX_NAMES].as_str()), (MAX_NAMES + 1, MORE));
        assert_eq!(names((0..MAX_NAMES).map(|number| number.to_string()).collect()).len(), MAX_NAMES);
    }
}
