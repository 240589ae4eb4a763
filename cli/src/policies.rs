//! `ainori policies`: what a manifest can name.
use serde::Serialize;

/// A policy that a manifest can name.
#[derive(Debug, Serialize)]
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// What it does and where it comes from, in one sentence.
    pub summary: &'static str,
    /// The quantum in milliseconds if it is part of the policy; otherwise the manifest gives it.
    pub fixed_quantum_ms: Option<u32>,
}

impl Policy {
    /// All of them, in the scheduler's order: the default comes first.
    pub fn all() -> Vec<Self> {
        let presets = ainori_sched::presets().iter();
        presets
            .map(|preset| Self {
                name: preset.name,
                summary: preset.summary,
                fixed_quantum_ms: preset.fixed_quantum_ms,
            })
            .collect()
    }
}
