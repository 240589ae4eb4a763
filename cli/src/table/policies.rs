//! The table of policies.
use super::Rows;
use crate::policies::Policy;

/// Each policy with what it does.
pub fn policies(policies: &[Policy]) -> String {
    let mut rows = Rows::new(&["policy", "what it does"], &[]);
    for policy in policies {
        rows.add_row([policy.name, policy.summary]);
    }
    format!("{rows}\n")
}
