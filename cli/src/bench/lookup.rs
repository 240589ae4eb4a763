//! Which case an expression's reference means, among the points of a plan or the cases of results.
use super::{
    experiment::{Range, Scalar},
    expression::{Expression, Reference},
    template::Values,
};
use miette::{Result, miette};
use std::collections::{BTreeMap, BTreeSet};

/// A case with one value for each of its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The case's name.
    pub case: &'a str,
    /// Values of its parameters.
    pub values: &'a Values,
}

/// The index of the one place that a reference means, where `bound` are the parameters that have a value there. An error: there
/// is none, or there are several.
pub fn find<'a>(
    places: impl Iterator<Item = Place<'a>>,
    reference: &Reference,
    bound: &Values,
) -> Result<usize> {
    let matches = |place: &Place<'_>| {
        let has = |name: &String, value: &String| {
            place.values.get(name).map(ToString::to_string).as_ref() == Some(value)
        };
        let agrees =
            |(name, value): (&String, &Scalar)| place.values.get(name).is_none_or(|own| own == value);
        place.case == reference.case
            && reference.fixed.iter().all(|(name, value)| has(name, value))
            && bound.iter().filter(|(name, _)| !reference.fixed.contains_key(*name)).all(agrees)
    };
    let found: Vec<_> =
        places.enumerate().filter(|(_, place)| matches(place)).map(|(index, _)| index).collect();
    match found[..] {
        [index] => Ok(index),
        [] => Err(miette!("there is no case for {reference}{}", shown(bound))),
        _ => Err(miette!(
            help = "fix what varies: {case[parameter=value].metric}, or name the parameter in `each`",
            "{reference} could be any of {} cases{}",
            found.len(),
            shown(bound)
        )),
    }
}

/// All combinations of values that the parameters of `each` have together in the cases of an expression, as far as `only` lets
/// them through. There may be none left: the values can be another form's.
pub fn combinations<'a>(
    places: impl Iterator<Item = Place<'a>>,
    expression: &Expression,
    each: &[String],
    only: &BTreeMap<String, Range>,
) -> Vec<Values> {
    let cases: BTreeSet<&str> = expression.references().iter().map(|reference| &*reference.case).collect();
    let mut combinations = Vec::new();
    for place in places.filter(|place| cases.contains(place.case)) {
        let values = each.iter().map(|name| Some((name.clone(), place.values.get(name)?.clone())));
        // A case without one of these parameters takes part in each combination, but makes none.
        let Some(values) = values.collect::<Option<Values>>() else { continue };
        let is_meant = only
            .iter()
            .all(|(name, range)| values.get(name).is_none_or(|value| range.values().contains(value)));
        if is_meant && !combinations.contains(&values) {
            combinations.push(values);
        }
    }
    combinations
}

/// `, with f = 30`
fn shown(bound: &Values) -> String {
    let pairs: Vec<_> = bound.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if pairs.is_empty() { String::new() } else { format!(", with {}", pairs.join(", ")) }
}
