use super::*;

/// What counts of a user's text, and the directory that it names.
fn of(text: &str) -> (String, Option<&str>) {
    let mut place = None;
    let words = said(text, &mut place).into_owned();
    (words, place)
}

fn prompt(text: &str) -> String {
    system(text, &mut None).into_owned()
}

#[test]
fn dates_of_today_and_billing_headers_go_and_all_else_stays() {
    let text = "x-anthropic-billing-header: cc_version=2.1.3; cc_entrypoint=cli;\nYou are an agent.\nToday's date: 2026-11-30\n\
        Current date is Monday, November 30, 2026.\nToday's date: Tue Dec 01 2026\nReleased in 2024 for 2025-01.\n\
        Port 12034, date 20501234\nEnd";
    assert_eq!(prompt(text), "You are an agent.\nReleased in 2024 for 2025-01.\nPort 12034, date 20501234\nEnd");
    assert!(matches!(system("You are an agent of 2026.", &mut None), Cow::Borrowed(_)));
    assert_eq!(prompt("x-anthropic-billing-header: a"), "");
    assert_eq!(prompt("Be brief.\n\nToday's date is 2026-12-01."), "Be brief.");
}

#[test]
fn the_state_of_the_repository_goes_up_to_the_next_heading_or_tag() {
    let status = "Current branch: main\n\nStatus:\n M a.rs\n\nRecent commits:\nabc1234 first\n";
    assert_eq!(prompt(&format!("Be brief.\ngitStatus: a snapshot.\n{status}")), "Be brief.");
    assert_eq!(prompt(&format!("# gitStatus\n{status}# Rules\nAsk.")), "# Rules\nAsk.");
    assert_eq!(prompt(&format!("gitStatus: {status}<rules>\nAsk.")), "<rules>\nAsk.");
    assert_eq!(prompt("A.\n```text\ngit: Current branch: main\ngit: ?? c.txt\n```\nB."), "A.\n```text\n```\nB.");
    assert_eq!(prompt("Use git: it is there.\nSee gitStatus:"), "Use git: it is there.\nSee gitStatus:");
}

#[test]
fn reminders_go_wherever_a_line_begins_with_one() {
    let reminder = "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>";
    assert_eq!(of(reminder), (String::new(), None));
    for text in [
        format!("{reminder}\nfn main() {{}}"),
        format!("fn main() {{}}\n\n{reminder}\n"),
        format!("fn main() {{}}\n  {reminder}{reminder}"),
    ] {
        assert_eq!(of(&text).0, "fn main() {}", "{text:?}");
    }
    assert_eq!(of(&format!("a\n{reminder}\nb\n\n{reminder}\nc")).0, "a\nb\nc");
    // A quotation, one that never ends, one far from the line's start.
    for text in [
        "What is a <system-reminder>? </system-reminder>",
        "12→<system-reminder>\n</system-reminder>",
        "<system-reminder>\nnever ended",
        "                    <system-reminder>a</system-reminder>b",
    ] {
        let text = format!("See:\n{text}");
        assert!(matches!(said(&text, &mut None), Cow::Borrowed(_)), "{text:?}");
    }
    assert_eq!(of("<system-reminder>a</system-reminder>").0, "");
    assert_eq!(of(" x \n").0, "x");
}

#[test]
fn of_the_surroundings_only_the_directory_counts() {
    let codex = |path: &str, date: &str| {
        format!(
            "<environment_context>\n  <cwd>{path}</cwd>\n  <current_date>{date}</current_date>\n</environment_context>"
        )
    };
    let text = codex("/home/a b", "2026-11-30");
    assert_eq!(of(&text), (String::new(), Some("/home/a b")));
    let text = format!("{}\nGo on.", codex("/p", "x"));
    assert_eq!(of(&text), ("Go on.".to_owned(), Some("/p")));
    let text = "<session_context>\nToday's date is Monday.\n- **Workspace Directories:**\n  - /p\n  - /q\n- **Directory Structure:**\n\n/p/\n└───a\n</session_context>";
    assert_eq!(of(text), (String::new(), Some("- /p\n  - /q")));
    let text =
        "<system-reminder>\nToday is Monday.\nI'm currently working in the directory: /p\nFiles:\n</system-reminder>";
    assert_eq!(of(text), (String::new(), Some("/p")));
    let text = "<environment_details>\n# Open Tabs\na.rs\n\n# Current Working Directory (/p (old)) Files\na.rs\n</environment_details>";
    assert_eq!(of(text), (String::new(), Some("/p (old)")));
    let text = "<system-reminder>\n# Environment\n - Primary working directory: /p\n</system-reminder>";
    assert_eq!(of(text).1, Some("/p"));
    // In the user's own words they are words.
    let text = "My directory:\n<environment_context><cwd>/p</cwd></environment_context>";
    assert_eq!(of(text), (text.to_owned(), None));
}

#[test]
fn texts_that_are_made_to_be_slow_are_read_once() {
    let many = 100_000;
    for text in [
        "<system-reminder>\n".repeat(many),
        "\n<system-reminder></system-reminder>".repeat(many),
        "<environment_context>".repeat(many),
        "<session_context></session_context>".repeat(many),
        format!("<system-reminder>{}</system-reminder>", "directories ".repeat(many)),
        format!("<system-reminder>{}</system-reminder>", "directories\n".repeat(many)),
        "today 2026-11-30 ".repeat(many),
        "gitStatus:\n#\n".repeat(many),
    ] {
        // One that is read once for each line, or each tag in it, takes minutes.
        let left = system(&text, &mut None);
        assert_eq!(system(&left, &mut None), left, "{:?}: nothing is left that would be left out", &text[..20]);
    }
    let long = "today 2026-11-30 ".repeat(many);
    assert_eq!(prompt(&long), long.trim());
    let cut = format!("{long}\nToday's date: 2026-11-30\n{long}");
    assert_eq!(prompt(&cut).len(), 2 * long.len());
}
