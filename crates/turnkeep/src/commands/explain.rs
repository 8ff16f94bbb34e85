//! `turnkeep explain`: what the running build knows, printed.

mod account;
mod export;
mod fault;
mod turn;

use super::Failure;
use crate::cli::Topic;
use std::io::Write;

/// Prints what is asked for.
///
/// # Errors
/// Usage: the configuration, or a name that is none. Operation: the store, there is no such account or turn, or the output
/// cannot be written.
pub async fn run(topic: &Topic, out: &mut impl Write) -> Result<(), Failure> {
    match topic {
        Topic::Faults => {
            out.write_all(FAULTS.as_bytes())?;
            out.write_all(turnkeep_base::verdict::table().as_bytes())?;
            Ok(())
        }
        Topic::Translation => {
            out.write_all(TRANSLATION.as_bytes())?;
            out.write_all(turnkeep_dialect::translation::table().as_bytes())?;
            Ok(())
        }
        Topic::Account(args) => account::run(args, out).await,
        Topic::Turn(args) => match &args.export {
            Some(file) => export::run(args, file, out).await,
            None => turn::run(args, out).await,
        },
    }
}

const FAULTS: &str = "\
# Faults and whom they are blamed on

Every way a turn can fail, and what follows from it. Only a fault of origin `account` can change an account's standing, but
for the last of five 401/403 shells in a row; `unclassified` is what nothing else describes, and it blames no account. A
provider's words convict an account only as whole sentences of its own, never inside a quotation. While nothing of the answer has reached the
client the turn goes on as \"next step\" says; afterwards it ends with an error in the client's dialect.

";

const TRANSLATION: &str = "\
# What becomes of each field in another dialect

Where client and upstream speak one dialect, every byte of a request stays but for the edits that ARCHITECTURE.md names. Where
they do not, each field of the client's is carried to the place given here, dropped and named in the answer's header
`x-turnkeep-dropped`, or refused with an error that names it. A field that is not in the table is dropped and named. The table is the
code's own, and a test holds every line of it against what is sent to a recent model of each vendor.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_table_of_translations_has_a_part_for_each_dialect() {
        let mut out = Vec::new();
        run(&Topic::Translation, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("# What becomes"));
        assert_eq!(text.matches("\n## From ").count(), 4);
    }

    #[tokio::test]
    async fn the_table_stands_under_a_heading_and_names_every_fault() {
        let mut out = Vec::new();
        run(&Topic::Faults, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("# Faults"));
        for kind in turnkeep_base::FaultKind::ALL {
            assert!(text.contains(&format!("\n| `{}` |", kind.name())), "{kind}");
        }
    }
}
