//! A table as wide as the terminal is, in which no word is broken.
use std::fmt::{self, Display};
use std::io::{self, IsTerminal};
use std::iter;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

/// Width of tables where there is no terminal to ask.
const DEFAULT_WIDTH: u16 = 140;

/// Narrower than this nothing can be read, so a terminal that says so isn't believed.
const LEAST_WIDTH: u16 = 20;

/// Lines above, below and under the header: one character for each component of a table, in comfy-table's order.
const LINES: &str = "  ── ──      ──    ";

/// Blanks beside the content of each column, and the one between two of them.
const PADDING: usize = 3;

/// A header and rows. Shown as a table, or where that is too wide for its words, row by row with the name of each column before its cell.
pub(crate) struct Rows {
    header: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// Without rows; the columns named in `right` hold numbers.
    pub(crate) fn new(header: &[&str], right: &[&str]) -> Self {
        Self {
            header: header.iter().map(|&name| name.to_owned()).collect(),
            right: header.iter().map(|name| right.contains(name)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, of as many cells as the header has.
    pub(crate) fn add_row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text, in so many columns of the terminal.
    fn in_width(&self, width: u16) -> String {
        let text = self.table(width, None).to_string();
        if self.has_all_words(&text) {
            return text;
        }
        // A word that would leave no room for the others is broken all the same.
        let words = self.longest_words(usize::from(width) / 3);
        let most = usize::from(width).saturating_sub(PADDING * words.len() + 1);
        if words.iter().sum::<usize>() <= most {
            self.table(width, Some(&words)).to_string()
        } else {
            self.list()
        }
    }

    /// Does each word of the cells stand in the text in one piece?
    fn has_all_words(&self, text: &str) -> bool {
        let is_word = |word: &&str| !word.contains('─');
        let mut shown: Vec<&str> = text.split_whitespace().filter(is_word).collect();
        let cells = self.header.iter().chain(self.rows.iter().flatten());
        let mut words: Vec<&str> = cells.flat_map(|cell| cell.split_whitespace()).filter(is_word).collect();
        shown.sort_unstable();
        words.sort_unstable();
        shown == words
    }

    /// How wide the longest word of each column is, its header included, or `most`.
    fn longest_words(&self, most: usize) -> Vec<usize> {
        let mut longest = vec![0; self.header.len()];
        for row in iter::once(&self.header).chain(&self.rows) {
            for (longest, cell) in longest.iter_mut().zip(row) {
                let word = cell.split_whitespace().map(wide).max().unwrap_or(0);
                *longest = word.min(most).max(*longest);
            }
        }
        longest
    }

    /// A table whose columns are at least as wide as `words` says.
    fn table(&self, width: u16, words: Option<&[usize]>) -> Table {
        let mut table = Table::new();
        table.load_preset(LINES).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(&self.header).set_width(width);
        for row in &self.rows {
            table.add_row(row);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            if self.right.get(index) == Some(&true) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if let Some(word) = words.and_then(|words| words.get(index)) {
                let least = u16::try_from(word + 2).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        table
    }

    /// Row by row: the first cell, and below it the others.
    fn list(&self) -> String {
        let names: Vec<String> =
            self.header.iter().map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let widest = names.iter().skip(1).map(|name| wide(name)).max().unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            for (index, (name, cell)) in names.iter().zip(row).enumerate() {
                let cell = cell.lines().collect::<Vec<_>>().join(" ");
                match index {
                    0 => text += &format!(" {name} {cell}\n"),
                    _ => text += &format!("   {name:widest$}  {cell}\n"),
                }
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_width(width()))
    }
}

/// How many columns a text takes. All of ours are of letters that take one.
fn wide(text: &str) -> usize {
    text.chars().count()
}

fn width() -> u16 {
    let size = || rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col >= LEAST_WIDTH);
    match io::stdout().is_terminal() {
        true => size().map_or(DEFAULT_WIDTH, |size| size.ws_col),
        false => DEFAULT_WIDTH,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(cells: &[Vec<String>]) -> Rows {
        let mut rows = Rows::new(&["guest", "stopped at", "results"], &["stopped at"]);
        cells.iter().for_each(|row| rows.add_row(row));
        rows
    }

    proptest! {
        /// Each word stands there in one piece, at any width, and no line of a table is wider than the terminal.
        #[test]
        fn no_word_is_broken(
            cells in prop::collection::vec(prop::collection::vec("([a-z0-9]{1,6} ){0,8}", 3), 0..5),
            width in 20_u16..200,
        ) {
            let rows = rows(&cells);
            let text = rows.in_width(width);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let shown = words(&text);
            for word in cells.iter().flatten().flat_map(|cell| words(cell)) {
                prop_assert!(shown.contains(&word), "{word} in {width}:\n{text}");
            }
            let is_table = text.contains('─');
            prop_assert!(!is_table || text.lines().all(|line| wide(line) <= width.into()), "{width}:\n{text}");
        }
    }

    #[test]
    fn where_words_have_no_room_there_is_a_list() {
        let cells =
            [vec!["linux".into(), "1.2345 s".into(), "{\"job\":\"hackbench\",\"seconds\":1.25}".into()]];
        assert!(rows(&cells).in_width(60).contains('─'));
        let list =
            " guest linux\n   stopped at  1.2345 s\n   results     {\"job\":\"hackbench\",\"seconds\":1.25}";
        assert_eq!(rows(&cells).in_width(24), list);
    }
}
