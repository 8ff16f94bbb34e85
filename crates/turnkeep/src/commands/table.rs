//! Lists for people: columns as wide as their widest cell.

use std::io::{self, Write};

/// Writes a heading and its rows. Missing cells are empty.
pub(super) fn write(out: &mut impl Write, heading: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let heading: Vec<String> = heading.iter().map(|cell| (*cell).to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&heading).chain(rows).collect();
    let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| all.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0))
        .collect();
    for row in all {
        let cells = widths.iter().enumerate().map(|(column, width)| format!("{:width$}", cell(row, column)));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let mut out = Vec::new();
        let rows = [vec!["a".into(), "1".into()], vec!["longer".into(), "2".into()]];
        super::write(&mut out, &["name", "n"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name    n\na       1\nlonger  2\n");
    }
}
