//! Reports for people.
mod counters;
mod deadlines;
mod fault;
mod policies;
mod run;
mod system;
mod units;

pub use deadlines::deadlines;
pub use policies::policies;
pub use run::{Detail, run};
pub use system::{sizes, system};

use comfy_table::{CellAlignment, ContentArrangement, Table};
use std::io::{self, IsTerminal};

/// Width of tables where there is no terminal to ask.
const DEFAULT_WIDTH: u16 = 140;

/// Lines above, below and under the header: one character for each component of a table, in comfy-table's order.
const LINES: &str = "  ── ──      ──    ";

/// An empty table with a header; the columns named in `right` hold numbers.
pub(crate) fn table(header: &[&str], right: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(LINES).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    table.set_width(width());
    for (column, name) in table.column_iter_mut().zip(header) {
        if right.contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn width() -> u16 {
    let size = || rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col >= 60);
    match io::stdout().is_terminal() {
        true => size().map_or(DEFAULT_WIDTH, |size| size.ws_col),
        false => DEFAULT_WIDTH,
    }
}
