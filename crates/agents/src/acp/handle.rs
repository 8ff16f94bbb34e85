//! A conversation's handle: its working directory's name and the agent's session id.

/// The letters of a directory's name.
pub(super) const NAME: usize = 32;

/// What a handle says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle<'a> {
    /// Of the account's directories.
    pub(super) directory: &'a str,
    /// The agent's own id.
    pub(super) session: &'a str,
}

/// Writes a handle.
pub(super) fn write(directory: &str, session: &str) -> String {
    format!("{directory}/{session}")
}

/// Reads a handle of ours; a directory's name can hold nothing but hexadecimal digits.
pub(super) fn read(handle: &str) -> Option<Handle<'_>> {
    let (directory, session) = handle.split_once('/')?;
    let is_name = directory.len() == NAME && directory.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_name && !session.is_empty()).then_some(Handle { directory, session })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_back_and_never_leads_out_of_its_folder() {
        let name = "0123456789abcdef0123456789abcdef";
        let handle = write(name, "a/../b");
        assert_eq!(read(&handle), Some(Handle { directory: name, session: "a/../b" }));
        for bad in ["", "x", "../a", "................................/a", &write(name, "")] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
