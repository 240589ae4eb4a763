//! Lists of records that a guest printed among its results (`"tasks":[{"jobs":750,"missed":0},...]`), as tables.
use super::{
    Rows,
    units::{column, within},
};
use crate::serial::GuestResult;
use serde_json::{Map, Value};

/// Most columns of a table, most rows, and most characters of a cell: a guest can print any number.
const MOST_COLUMNS: usize = 16;
const MOST_ROWS: usize = 40;
const MOST_LENGTH: usize = 100;
/// Most tables of a guest.
pub const MOST_TABLES: usize = 10;

/// The records, if the value is a list of such, all with the same keys.
pub fn records(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let records: Vec<_> = value.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let first = records.first()?;
    let is_alike = |one: &&Map<String, Value>| {
        one.len() == first.len() && first.keys().all(|name| one.contains_key(name))
    };
    ((1..=MOST_COLUMNS).contains(&first.len()) && records.iter().all(is_alike)).then_some(records)
}

/// All lists of records among results, with their names.
pub fn lists(results: &[GuestResult]) -> impl Iterator<Item = (&str, Vec<&Map<String, Value>>)> {
    let summaries = results.iter().filter(|result| !result.contains_key("hist")).flatten();
    summaries.filter_map(|(name, value)| Some((&**name, records(value)?)))
}

/// A row for each record, a column for each key; and how many records are left out. `plain` makes a guest's text one for a terminal.
pub(crate) fn table(
    records: &[&Map<String, Value>],
    tick_ns: Option<f64>,
    plain: impl Fn(&str) -> String,
) -> (Rows, usize) {
    let names = records.first().into_iter().flat_map(|first| first.keys());
    let shown = &records[..records.len().min(MOST_ROWS)];
    let columns: Vec<(String, Vec<String>, bool)> = names
        .map(|name| {
            let values = shown.iter().filter_map(|record| Some(within(record, name, record.get(name)?)));
            let (header, cells, are_numbers) = column(name, values, tick_ns);
            let short = |text: String| {
                let text = plain(&text);
                let mut short: String = text.chars().take(MOST_LENGTH).collect();
                if short.len() < text.len() {
                    short.push('…');
                }
                short
            };
            (short(header), cells.into_iter().map(short).collect(), are_numbers)
        })
        .collect();
    let header: Vec<&str> = columns.iter().map(|(name, ..)| &**name).collect();
    let right: Vec<&str> =
        columns.iter().filter(|(.., are_numbers)| *are_numbers).map(|(name, ..)| &**name).collect();
    let mut rows = Rows::new(&header, &right);
    for index in 0..shown.len() {
        rows.add_row(columns.iter().map(|(_, cells, _)| &*cells[index]));
    }
    (rows, records.len() - shown.len())
}
