//! Marks in a page, and what stands between them.
use miette::{Result, miette};

const BEGIN: &str = "<!-- quote ";
const CLOSE: &str = "-->";
const END: &str = "<!-- /quote -->";

/// A page with what stands between each pair of marks replaced. Marks in blocks of code are shown to readers, and left alone. An error: a
/// mark without its end, or one in a line's text that begins the line: it would end the paragraph.
pub fn replaced(text: &str, quote: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut result = String::with_capacity(text.len());
    for (index, part) in text.split("```").enumerate() {
        if index > 0 {
            result += "```";
        }
        if index % 2 == 1 {
            result += part;
            continue;
        }
        let mut rest = part;
        while let Some((before, from)) = rest.split_once(BEGIN) {
            let no_end = || miette!("a mark has no end: {BEGIN}{}", from.lines().next().unwrap_or_default());
            let (mark, from) = from.split_once(CLOSE).ok_or_else(no_end)?;
            let (between, after) = from.split_once(END).ok_or_else(no_end)?;
            if between.contains(BEGIN) {
                return Err(no_end());
            }
            let begins_line = before.is_empty() && result.is_empty()
                || before.ends_with('\n')
                || before.is_empty() && result.ends_with('\n');
            let is_in_line = after.chars().next().is_some_and(|next| next != '\n');
            if begins_line && is_in_line {
                return Err(miette!("in Markdown a comment at the beginning of a line ends the paragraph"));
            }
            result += &format!("{before}{BEGIN}{mark}{CLOSE}{}{END}", quote(mark.trim())?);
            rest = after;
        }
        result += rest;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_marks_is_replaced_and_nothing_else() {
        let text = "a <!-- quote x y -->old<!-- /quote --> b\n```\n<!-- quote z -->\n```\n<!-- quote w --><!-- /quote -->";
        let new = replaced(text, |mark| Ok(format!("[{mark}]"))).unwrap();
        let wanted = "a <!-- quote x y -->[x y]<!-- /quote --> b\n```\n<!-- quote z -->\n```\n<!-- quote w -->[w]<!-- /quote -->";
        assert_eq!(new, wanted);
        assert_eq!(replaced(&new, |mark| Ok(format!("[{mark}]"))).unwrap(), wanted, "again");
    }

    #[test]
    fn a_mark_without_an_end_is_refused() {
        for text in ["<!-- quote a", "<!-- quote a -->", "<!-- quote a --><!-- quote b --><!-- /quote -->"] {
            assert!(replaced(text, |_| Ok(String::new())).is_err(), "{text}");
        }
        assert!(replaced("a\n<!-- quote a --><!-- /quote --> b", |_| Ok(String::new())).is_err());
    }
}
