//! What `--only` leaves of an experiment.
//!
//! A run has some properties: its case, the parameters of the case, and what makes it a sample of its own (`q`, or
//! `repetition` with icount). It is left if each condition holds for which it has the property: `f=0,50` leaves the bare machine alone,
//! which knows no f.
use indexmap::IndexMap;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The property that is the case's name.
pub const CASE: &str = "case";
/// The property that is the slice of the lockstep clock.
pub const Q: &str = "q";
/// The property that is the number of an icount run. Manifests know it too.
pub const REPETITION: &str = "repetition";
/// What no parameter can be called.
pub const RESERVED: [&str; 3] = [CASE, Q, REPETITION];

/// One `--only NAME=VALUE,...`, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    name: String,
    values: String,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) =
            text.split_once('=').map_or((text, ""), |(name, values)| (name.trim(), values.trim()));
        if name.is_empty() || values.is_empty() {
            return Err(format!("it must be NAME=VALUE,...: {CASE}=native, or f=0,50"));
        }
        Ok(Self { name: name.to_owned(), values: values.to_owned() })
    }
}

/// The values that are left, by the name of the property. All of them where there is no name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Only(IndexMap<String, Vec<String>>);

impl Only {
    /// Makes conditions out of what was written. `known` are all values of an experiment's properties, by name. Several conditions on
    /// the same name add up; a name or a value that isn't known is an error that lists those that are.
    pub fn new(conditions: &[Condition], known: &IndexMap<String, Vec<String>>) -> Result<Self> {
        let mut only = IndexMap::<String, Vec<String>>::new();
        for Condition { name, values } in conditions {
            let Some(known) = known.get(name) else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                return Err(miette!(
                    help = format!("there are: {}", names.join(", ")),
                    "--only: there is no {name:?}"
                ));
            };
            // A value may have commas of its own.
            let values = if known.contains(values) {
                vec![&**values]
            } else {
                values.split(',').map(str::trim).collect()
            };
            for value in values {
                if !known.iter().any(|known| known == value) {
                    return Err(miette!(
                        help = format!("its values are: {}", known.join(", ")),
                        "--only: {name} is never {value:?}"
                    ));
                }
                let left = only.entry(name.clone()).or_default();
                if !left.iter().any(|known| known == value) {
                    left.push(value.to_owned());
                }
            }
        }
        Ok(Self(only))
    }

    /// Is everything left?
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Is what has these properties left?
    pub fn leaves<'a>(&self, mut properties: impl Iterator<Item = (&'a str, String)>) -> bool {
        properties.all(|(name, value)| self.0.get(name).is_none_or(|values| values.contains(&value)))
    }

    /// The options that mean this, for a shell: ` --only case=lhp --only f=0,50`.
    pub fn options(&self) -> String {
        let option = |name: &String, values: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,/:".contains(c);
            match values.chars().all(plain) {
                true => format!(" --only {name}={values}"),
                false => format!(" --only '{name}={}'", values.replace('\'', r"'\''")),
            }
        };
        let options =
            |(name, values): (&String, &Vec<String>)| match values.iter().any(|value| value.contains(',')) {
                true => values.iter().map(|value| option(name, value)).collect(),
                false => option(name, &values.join(",")),
            };
        self.0.iter().map(options).collect()
    }
}

/// `f = 0, 50; q = 250`
impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<_> =
            self.0.iter().map(|(name, values)| format!("{name} = {}", values.join(", "))).collect();
        f.write_str(&conditions.join("; "))
    }
}

#[cfg(test)]
mod tests;
