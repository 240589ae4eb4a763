//! Expressions of metrics, bars and computed lines.
//!
//! Arithmetic as usual. A plain name is a parameter, or a metric of the same run; `{case.metric}` is another case's:
//! `{lhp[policy=ainori].rate} / ((1 - f/100) * {native[harts=4].rate})`. Its parts are
//!
//! - the case's name;
//! - in brackets, parameters that must have a value, where the case varies them;
//! - the metric's name, and perhaps `.min` or `.max` for the least or greatest of the samples instead of their median.
use exmex::{Express, FlatEx};
use miette::{Result, miette};
use std::{collections::BTreeMap, fmt};

/// A metric of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The case's name.
    pub case: String,
    /// Parameters that must have a value.
    pub fixed: BTreeMap<String, String>,
    /// The metric's name.
    pub metric: String,
    /// Which figure of the metric.
    pub figure: Figure,
}

/// A figure over the samples of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The least.
    Min,
    /// The one in the middle.
    Median,
    /// The greatest.
    Max,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}", self.case)?;
        if !self.fixed.is_empty() {
            let fixed: Vec<_> = self.fixed.iter().map(|(name, value)| format!("{name}={value}")).collect();
            write!(f, "[{}]", fixed.join(","))?;
        }
        write!(f, ".{}", self.metric)?;
        match self.figure {
            Figure::Min => write!(f, ".min}}"),
            Figure::Median => write!(f, "}}"),
            Figure::Max => write!(f, ".max}}"),
        }
    }
}

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    flat: FlatEx<f64>,
    references: Vec<Reference>,
}

/// Variables that stand for references in what the parser sees.
const STAND_IN: &str = "reference_";

impl Expression {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: String| miette!("the expression {text:?} can't be used: {why}");
        let mut plain = String::new();
        let mut references = Vec::new();
        let mut rest = text;
        while let Some((before, from)) = rest.split_once('{') {
            let (inside, after) =
                from.split_once('}').ok_or_else(|| wrong("a brace is not closed".into()))?;
            let reference = reference(inside).ok_or_else(|| {
                wrong(format!("{{{inside}}} is not of the form {{case[parameter=value].metric}}"))
            })?;
            plain += &format!("{before}{STAND_IN}{}", references.len());
            references.push(reference);
            rest = after;
        }
        plain += rest;
        let flat = exmex::parse::<f64>(&plain).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { flat, references })
    }

    /// The metrics of cases in it.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The plain names in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_plain = |name: &&str| stand_in(name).is_none();
        self.flat.var_names().iter().map(String::as_str).filter(is_plain)
    }

    /// Its value; `None` if one of the parts has none, or the result is not a finite number.
    pub fn value(
        &self,
        name: impl Fn(&str) -> Option<f64>,
        reference: impl Fn(&Reference) -> Option<f64>,
    ) -> Option<f64> {
        let values: Option<Vec<f64>> = self
            .flat
            .var_names()
            .iter()
            .map(|variable| match stand_in(variable) {
                Some(index) => reference(&self.references[index]),
                None => name(variable),
            })
            .collect();
        self.flat.eval(&values?).ok().filter(|value| value.is_finite())
    }
}

fn stand_in(variable: &str) -> Option<usize> {
    variable.strip_prefix(STAND_IN)?.parse().ok()
}

/// `case[a=1,b=2].metric.max`, without the braces.
fn reference(text: &str) -> Option<Reference> {
    let (case, fixed, rest) = match text.split_once('[') {
        Some((case, from)) => {
            let (inside, rest) = from.split_once(']')?;
            let pairs = inside.split(',').map(|pair| {
                let (name, value) = pair.split_once('=')?;
                Some((name.trim().to_owned(), value.trim().to_owned()))
            });
            (case, pairs.collect::<Option<BTreeMap<_, _>>>()?, rest.strip_prefix('.')?)
        }
        None => {
            let (case, rest) = text.split_once('.')?;
            (case, BTreeMap::new(), rest)
        }
    };
    let (metric, figure) = match rest.split_once('.') {
        None => (rest, Figure::Median),
        Some((metric, "min")) => (metric, Figure::Min),
        Some((metric, "max")) => (metric, Figure::Max),
        Some(_) => return None,
    };
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    (is_name(case) && is_name(metric)).then(|| Reference {
        case: case.to_owned(),
        fixed,
        metric: metric.to_owned(),
        figure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_names_get_their_values() {
        let text = "{lhp[policy=ainori, f=30].rate} / ((1 - f/100) * {native.rate.max})";
        let expression = Expression::parse(text).unwrap();
        assert_eq!(expression.names().collect::<Vec<_>>(), ["f"]);
        let shown: Vec<_> = expression.references().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["{lhp[f=30,policy=ainori].rate}", "{native.rate.max}"]);
        let value = expression.value(
            |name| (name == "f").then_some(30.0),
            |reference| Some(if reference.case == "lhp" { 63.0 } else { 90.0 }),
        );
        assert!((value.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_value_gives_none() {
        let expression = Expression::parse("{a.b} - x").unwrap();
        assert_eq!(expression.value(|_| Some(1.0), |_| None), None);
        assert_eq!(expression.value(|_| None, |_| Some(1.0)), None);
        assert_eq!(Expression::parse("1 / x").unwrap().value(|_| Some(0.0), |_| None), None);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["{a}", "{a.b", "{a.b.p99}", "{a[f].b}", "1 +", "{.b}"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
