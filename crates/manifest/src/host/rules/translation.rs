//! How a guest's addresses are translated, and how many tables there are for it if the hypervisor makes them.
use super::super::{findings::Finding, reader::At, schema::GuestDraft};
use crate::config::{DEFAULT_SHADOW_TABLES, SHADOW_TABLES, Shadow, Translation};

/// Shadow tables are counted only where there are any, and each vCPU has enough.
pub fn check(draft: &GuestDraft, findings: &mut Vec<Finding>) -> Option<Translation> {
    let tables = match &draft.shadow_tables {
        Some(tables) => check_tables(tables, findings),
        None => Some(DEFAULT_SHADOW_TABLES),
    };
    let Some(spaces) = draft.translation.as_ref().and_then(|translation| translation.value.0) else {
        if !draft.lost.has("translation") {
            refuse_without_shadow(draft, findings);
        }
        return Some(Translation::TwoStage);
    };
    let reclaim = draft.shadow_reclaim.as_ref().map(|reclaim| reclaim.value).unwrap_or_default();
    Some(Translation::Shadow(Shadow { spaces, tables: tables?, reclaim }))
}

fn check_tables(tables: &At<u32>, findings: &mut Vec<Finding>) -> Option<u16> {
    let valid = u16::try_from(tables.value).ok().filter(|tables| SHADOW_TABLES.contains(tables));
    if valid.is_none() {
        let message = format!("a vCPU can't have {} shadow tables", tables.value);
        let help = format!(
            "from {} to {}; each takes 4 KiB, for each vCPU of the guest",
            SHADOW_TABLES.start(),
            SHADOW_TABLES.end()
        );
        findings.push(Finding::at(tables.span.clone(), message).help(help));
    }
    valid
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
