//! Manifests with places `${name}` for an experiment's parameters.
use super::experiment::Scalar;
use miette::{Result, miette};
use std::collections::{BTreeMap, BTreeSet};

/// Values of parameters by name.
pub type Values = BTreeMap<String, Scalar>;

/// A piece of a template.
enum Piece<'a> {
    Text(&'a str),
    Place(&'a str),
}

/// Fills in all places. Names that have no value are an error.
pub fn substitute(template: &str, values: &Values) -> Result<String> {
    let mut text = String::with_capacity(template.len());
    for piece in pieces(template)? {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Place(name) => {
                let value = values.get(name).ok_or_else(|| {
                    miette!(
                        help = "give it in [parameters] or in `with` of the case",
                        "the parameter ${{{name}}} has no value"
                    )
                })?;
                text.push_str(&value.to_string());
            }
        }
    }
    Ok(text)
}

/// The names of a template's places.
pub fn names(template: &str) -> Result<BTreeSet<&str>> {
    let names = pieces(template)?.into_iter().filter_map(|piece| match piece {
        Piece::Place(name) => Some(name),
        Piece::Text(_) => None,
    });
    Ok(names.collect())
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once("${") {
        let (name, after) =
            from.split_once('}').filter(|(name, _)| !name.contains('\n')).ok_or_else(|| {
                let line = template[..template.len() - from.len()].lines().count();
                miette!("line {line}: a place ${{ has no closing brace")
            })?;
        pieces.extend([Piece::Text(before), Piece::Place(name)]);
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        [("policy".to_owned(), Scalar::Text("spumone".into())), ("f".to_owned(), Scalar::Integer(30))].into()
    }

    #[test]
    fn every_place_is_filled_in() {
        let template = "policy = \"${policy}\"\nargs = \"burn_percent=${f} again=${f}\" # $f {f}";
        let text = substitute(template, &values()).unwrap();
        assert_eq!(text, "policy = \"spumone\"\nargs = \"burn_percent=30 again=30\" # $f {f}");
        assert_eq!(names(template).unwrap(), BTreeSet::from(["f", "policy"]));
    }

    #[test]
    fn what_can_not_be_filled_in_is_named() {
        let error = substitute("a ${harts} b", &values()).unwrap_err();
        assert_eq!(error.to_string(), "the parameter ${harts} has no value");
        let error = names("a\nb ${harts\n}").unwrap_err();
        assert_eq!(error.to_string(), "line 2: a place ${ has no closing brace");
    }
}
