//! Sections of the report that are measured by themselves: each is written anew without the rest, and the rest without it.

/// `report` with the section under `heading` replaced by `section`, or with it at its end.
pub fn with_section(report: &str, heading: &str, section: &str) -> String {
    let (before, after) = match report.find(heading) {
        Some(at) => {
            let rest = &report[at + heading.len()..];
            let end = rest.find("\n## ").map_or(rest.len(), |end| end + 1);
            (&report[..at], &rest[end..])
        }
        None => (report, ""),
    };
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let after_gap = if after.is_empty() { "" } else { "\n" };
    format!("{before}{gap}{section}{after_gap}{after}")
}

/// The section of `report` under `heading`, to be carried over when the rest is written anew.
pub fn section_of(report: &str, heading: &str) -> Option<String> {
    let at = report.find(heading)?;
    let rest = &report[at..];
    Some(rest[..rest.find("\n## ").map_or(rest.len(), |end| end + 1)].trim_end().to_owned() + "\n")
}

/// `report` with the sections under these headings of the one before.
pub fn carried_over(report: &str, before: &str, headings: &[&str]) -> String {
    headings.iter().fold(report.to_owned(), |report, heading| match section_of(before, heading) {
        Some(section) => with_section(&report, heading, &section),
        None => report,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "## One part";

    #[test]
    fn a_section_replaces_itself_and_leaves_the_rest_of_the_report_alone() {
        let report = "# Benchmarks\n\n## Goals\n\ntable\n";
        let first = format!("{HEADING}\n\nfirst\n");
        let second = format!("{HEADING}\n\nsecond\n");
        let once = with_section(report, HEADING, &first);
        assert_eq!(once, format!("{report}\n{first}"));
        assert_eq!(with_section(&once, HEADING, &second), format!("{report}\n{second}"));
        let between = format!("{once}\n## After\n\nmore\n");
        assert_eq!(with_section(&between, HEADING, &second), format!("{report}\n{second}\n## After\n\nmore\n"));
        assert_eq!(section_of(&between, HEADING).as_deref(), Some(first.as_str()));
        assert_eq!(carried_over(report, &between, &[HEADING]), once);
        assert_eq!(carried_over(report, &between, &[HEADING, "## After"]), between);
        assert_eq!(carried_over(report, report, &[HEADING]), report);
    }
}
