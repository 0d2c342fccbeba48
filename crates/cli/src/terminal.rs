//! The width that answers have on the terminal, and tables and text that fit it.

use std::io;

use comfy_table::{ContentArrangement, Table, presets};

/// How wide tables are where nobody says how much room there is.
const USUAL: usize = 80;
/// How wide help is at most: longer lines are hard to read.
const HELP: usize = 100;
/// No terminal is narrower than this and still of use.
const LEAST: usize = 40;

/// How many columns there are, if somebody says so: the terminal, else the variable `COLUMNS`.
fn width() -> Option<usize> {
    let of_terminal = || Some(usize::from(terminal_size::terminal_size_of(io::stdout())?.0.0));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal().or_else(said).map(|width: usize| width.max(LEAST))
}

/// How wide help is.
pub(crate) fn help_width() -> usize {
    width().unwrap_or(HELP).min(HELP)
}

/// A table for people that fits the terminal. Columns have two spaces between them.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width().unwrap_or(USUAL)).unwrap_or(u16::MAX));
    table.set_header(header);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Text with lines that fit the terminal. What goes elsewhere, to a file or another program, keeps its lines.
pub(crate) fn wrapped(text: &str) -> String {
    width().map_or_else(|| text.to_owned(), |width| wrapped_to(text, width))
}

/// Breaks lines if they have more than `width` columns: between words, or after a comma in a word that fits no line. What
/// follows is indented by two more than the line.
pub(crate) fn wrapped_to(text: &str, width: usize) -> String {
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_end().chars().count() <= width {
            result.push_str(line);
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut column = indent;
        result.push_str(&line[..indent]);
        let mut separator = "";
        for word in line.split_whitespace() {
            let is_long = word.chars().count() + indent + 2 > width;
            let parts: Vec<&str> = if is_long { word.split_inclusive(',').collect() } else { vec![word] };
            for part in parts {
                let length = part.chars().count();
                if column > indent && column + separator.len() + length > width {
                    result.push('\n');
                    result.push_str(&" ".repeat(indent + 2));
                    column = indent + 2;
                } else {
                    result.push_str(separator);
                    column += separator.len();
                }
                result.push_str(part);
                column += length;
                separator = "";
            }
            separator = " ";
        }
        if line.ends_with('\n') {
            result.push('\n');
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_short_ones_stay() {
        let text = "a    b\n  one two three four five\n\nunbreakable-word-that-is-too-long\nlast";
        let expected = "a    b\n  one two three\n    four five\n\nunbreakable-word-that-is-too-long\nlast";
        assert_eq!(wrapped_to(text, 16), expected);
        assert_eq!(wrapped_to("gates a=1,b=2,c=3,d=4\n", 10), "gates a=1,\n  b=2,c=3,\n  d=4\n");
        assert_eq!(wrapped_to("→ → → →\n", 3), "→ →\n  →\n  →\n");
    }
}
