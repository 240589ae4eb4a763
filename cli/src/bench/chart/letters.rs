//! Letters of charts, and what they take. A chart is read on a telephone as well, where it is 360 px wide: letters have 10 px there.
use super::Area;
use miette::Result;
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

/// The font. Which one that is, the reader's machine says.
pub const FONT: &str = "sans-serif";
/// Size of all letters, as plotters counts it: its SVG has 1.24 times less, in pixels of a chart.
pub const SIZE: f64 = 23.0;
/// Height of a line of text.
pub const LINE: u32 = 25;
/// What a letter takes of a line at most, in the mean over a text.
const WIDTH: f64 = 10.5;

/// Breaks a text into lines that are no wider than so many pixels, as far as its words let it.
pub fn lines(text: &str, width: u32) -> Vec<String> {
    let most = (f64::from(width) / WIDTH) as usize;
    let mut lines = Vec::<String>::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Height of these lines.
pub fn height(lines: &[String]) -> u32 {
    LINE * lines.len() as u32
}

/// Writes lines one below the other, the first one's upper edge at a place.
pub fn write(area: &Area<'_>, lines: &[String], (x, y): (i32, i32), anchor: HPos) -> Result<()> {
    let style = (FONT, SIZE).into_text_style(area).pos(Pos::new(anchor, VPos::Top));
    for (index, line) in lines.iter().enumerate() {
        area.draw_text(line, &style, (x, y + (LINE * index as u32) as i32)).map_err(super::failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(lines("one two three", 105), ["one two", "three"]);
        assert_eq!(lines("one two three", 640), ["one two three"]);
        assert_eq!(
            lines("incomprehensibilities of it", 105),
            ["incomprehensibilities", "of it"],
            "a word stays whole"
        );
        assert!(lines("", 105).is_empty());
    }
}
