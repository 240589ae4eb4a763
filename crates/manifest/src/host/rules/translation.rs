//! How a guest's addresses are translated, and how many tables there are for it if the hypervisor makes them.
use super::{
    super::{
        findings::{Finding, Span},
        reader::At,
        schema::{GuestDraft, TranslationDraft},
    },
    BoardView,
};
use crate::config::{
    DEFAULT_SHADOW_TABLES, FEWEST_SHADOW_TABLES_WITHOUT_H, SHADOW_TABLES, Shadow, ShadowSpaces, Translation,
};

/// Shadow tables are counted only where there are any, and each vCPU has enough. On harts without H, each guest has some.
pub fn check(draft: &GuestDraft, board: BoardView, findings: &mut Vec<Finding>) -> Option<Translation> {
    let breakpoints = check_breakpoints(draft, board, findings);
    let tables = match &draft.shadow_tables {
        Some(tables) => check_tables(tables, fewest_tables(draft, board), findings),
        None => Some(DEFAULT_SHADOW_TABLES),
    };
    let spaces = match &draft.translation {
        Some(translation) => match translation.value {
            TranslationDraft::Shadow(spaces) => Ok(spaces),
            without => {
                if board.has_h == Some(false) {
                    refuse_without_h(without, translation.span.clone(), findings);
                    return None;
                }
                Err(if without == TranslationDraft::None { Translation::None } else { Translation::TwoStage })
            }
        },
        None if board.has_h == Some(false) => Ok(ShadowSpaces::Multi),
        None => Err(Translation::TwoStage),
    };
    let spaces = match spaces {
        Ok(spaces) => spaces,
        Err(translation) => {
            // As long as nobody knows the harts, the guest may have some.
            if !draft.lost.has("translation") && (draft.translation.is_some() || board.has_h.is_some()) {
                refuse_without_shadow(draft, findings);
            }
            return Some(translation);
        }
    };
    let reclaim = draft.shadow_reclaim.as_ref().map(|reclaim| reclaim.value).unwrap_or_default();
    Some(Translation::Shadow(Shadow { spaces, tables: tables?, reclaim, breakpoints: breakpoints? }))
}

/// They are for harts without H, where they are there unless the guest has none of it, or devices that load and store in its memory with nobody seeing it: these would
/// load breakpoints, and what they store may be instructions' old places still.
fn check_breakpoints(draft: &GuestDraft, board: BoardView, findings: &mut Vec<Finding>) -> Option<bool> {
    match (&draft.breakpoints, board.has_h) {
        (Some(breakpoints), Some(true)) => {
            let message = "the board's harts have the H extension: no privileged instruction of a guest traps, so no breakpoint could stand for one";
            let help = "remove the key; it is for harts without H: cpu = \"rv64,h=false\" in [board]";
            findings.push(Finding::at(breakpoints.span.clone(), message).help(help));
            None
        }
        (Some(breakpoints), _) => {
            if breakpoints.value && draft.dma.is_some() {
                let message = "devices can load breakpoints where the guest has put instructions: nothing sees what they do with its memory";
                let help = "remove the key, unless the guest never lets a device write to its disk, or fill, what it has executed as its kernel; with Linux, \
                            unload no modules";
                findings.push(Finding::at(breakpoints.span.clone(), message).warning().help(help));
            }
            Some(breakpoints.value)
        }
        (None, has_h) => Some(has_h == Some(false) && draft.dma.is_none()),
    }
}

/// With fewer a vCPU of this guest might not get on.
fn fewest_tables(draft: &GuestDraft, board: BoardView) -> u16 {
    let is_single = (draft.translation.as_ref())
        .is_some_and(|translation| translation.value == TranslationDraft::Shadow(ShadowSpaces::Single));
    if board.has_h == Some(false) && !is_single {
        FEWEST_SHADOW_TABLES_WITHOUT_H
    } else {
        *SHADOW_TABLES.start()
    }
}

fn check_tables(tables: &At<u32>, fewest: u16, findings: &mut Vec<Finding>) -> Option<u16> {
    let valid =
        u16::try_from(tables.value).ok().filter(|tables| (fewest..=*SHADOW_TABLES.end()).contains(tables));
    if valid.is_none() {
        let message = format!("a vCPU can't have {} shadow tables", tables.value);
        let of_these_harts = if fewest == *SHADOW_TABLES.start() {
            ""
        } else {
            " on harts without H, or fewer with translation = \"shadow-single\""
        };
        let help = format!(
            "from {fewest} to {}{of_these_harts}; each takes 4 KiB, for each vCPU of the guest",
            SHADOW_TABLES.end()
        );
        findings.push(Finding::at(tables.span.clone(), message).help(help));
    }
    valid
}

fn refuse_without_h(wanted: TranslationDraft, span: Span, findings: &mut Vec<Finding>) {
    let message = match wanted {
        // Its kernel runs in user mode, where the hart lets nobody choose tables.
        TranslationDraft::None => {
            "the board's harts can't walk a guest's own tables alone: they lack the H extension, and the hypervisor's trap entry has to be in each table that they walk"
        }
        _ => "the board's harts have no second stage of translation: they lack the H extension",
    };
    let help = "leave the key out: on such harts each guest has shadow tables, `shadow-multi` unless it says `shadow-single`; or choose harts with H: \
                cpu = \"rv64\" in [board]";
    findings.push(Finding::at(span, message).help(help));
}

fn refuse_without_shadow(draft: &GuestDraft, findings: &mut Vec<Finding>) {
    let spans = [
        draft.shadow_tables.as_ref().map(|tables| tables.span.clone()),
        draft.shadow_reclaim.as_ref().map(|reclaim| reclaim.span.clone()),
    ];
    for span in spans.into_iter().flatten() {
        let message = "this guest has no shadow tables, so there is nothing to say about them";
        findings
            .push(Finding::at(span, message).help("add translation = \"shadow-multi\", or remove the key"));
    }
}
