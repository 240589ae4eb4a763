//! The one rule about harts that a manifest names, wherever it does.
use super::BoardView;
use crate::host::{findings::Finding, reader::At};

/// Has the board this hart? If not, that is reported, and nothing else is to be said of it. So is it taken to have one while nobody knows how many it has.
pub fn check(hart: &At<u32>, board: BoardView, findings: &mut Vec<Finding>) -> bool {
    let Some(ids) = board.hart_ids().filter(|ids| !ids.contains(&hart.value)) else { return true };
    let message = format!("hart {} is not on the board", hart.value);
    let help = match ids.len() {
        1 => format!("the board has one hart, {}", ids.start),
        has => format!("the board has {has} harts, {} to {}", ids.start, ids.end - 1),
    };
    findings.push(Finding::at(hart.span.clone(), message).help(help));
    false
}
