//! Expressions with a name, which others of the experiment can use: `definitions.ideal = "..."`, then `value = "{lhp.rate} / ideal"`.
//!
//! A definition is put in as text in parentheses, before anything is parsed. It can use others, but not itself.
use super::experiment::Experiment;
use miette::{Result, miette};
use std::collections::BTreeMap;

/// Puts the definitions of an experiment into its bars, derived figures and charts. An error: one of them uses itself.
pub fn expand(experiment: &mut Experiment) -> Result<()> {
    let definitions = &experiment.definitions;
    let bars = experiment.bars.iter_mut().map(|bar| &mut bar.value);
    let derived = experiment.derived.iter_mut().map(|derived| &mut derived.value);
    let lines = experiment.charts.iter_mut().flat_map(|chart| &mut chart.lines).map(|line| &mut line.value);
    for value in bars.chain(derived).chain(lines) {
        *value = expanded(value, definitions, &mut Vec::new())?;
    }
    Ok(())
}

/// An expression with an experiment's definitions put in.
pub fn put_in(text: &str, experiment: &Experiment) -> Result<String> {
    expanded(text, &experiment.definitions, &mut Vec::new())
}

/// An expression with definitions put in; `open` are the names of those that are being put in.
fn expanded(text: &str, definitions: &BTreeMap<String, String>, open: &mut Vec<String>) -> Result<String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            // What is in braces names cases and metrics.
            '{' => rest.find('}').map_or(rest.len(), |end| end + 1),
            c if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        match definitions.get(word) {
            Some(_) if open.iter().any(|name| name == word) => {
                return Err(miette!("the definition {word} uses itself: {}", open.join(", ")));
            }
            Some(definition) => {
                open.push(word.to_owned());
                result += &format!("({})", expanded(definition, definitions, open)?);
                open.pop();
            }
            None => result += word,
        }
        rest = after;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String> {
        let definitions = [("ideal", "part + 1"), ("part", "{a[f=1].part} / f"), ("round", "round")];
        let definitions = definitions.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        expanded(text, &definitions, &mut Vec::new())
    }

    #[test]
    fn definitions_are_put_in_as_a_whole() {
        assert_eq!(of("2 * ideal").unwrap(), "2 * (({a[f=1].part} / f) + 1)");
        assert_eq!(of("ideals + {ideal.part} - f").unwrap(), "ideals + {ideal.part} - f");
    }

    #[test]
    fn a_definition_of_itself_is_refused() {
        assert_eq!(of("round").unwrap_err().to_string(), "the definition round uses itself: round");
    }
}
