//! How a line of a chart looks: a policy has the same colour and marker in every chart, and shapes tell lines apart without colours too.
use plotters::style::RGBColor;

/// What stands at the points of a line. Pixels around the point, y downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The corners.
    pub corners: &'static [(i32, i32)],
    /// Filled with the line's colour, or with white.
    pub is_filled: bool,
}

/// Colour and marker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The colour.
    pub colour: RGBColor,
    /// The marker.
    pub marker: Marker,
}

const CIRCLE: &[(i32, i32)] = &[
    (4, 0),
    (3, 2),
    (2, 3),
    (0, 4),
    (-2, 3),
    (-3, 2),
    (-4, 0),
    (-3, -2),
    (-2, -3),
    (0, -4),
    (2, -3),
    (3, -2),
];
const SQUARE: &[(i32, i32)] = &[(-4, -4), (4, -4), (4, 4), (-4, 4)];
const UP: &[(i32, i32)] = &[(0, -5), (5, 4), (-5, 4)];
const DOWN: &[(i32, i32)] = &[(0, 5), (5, -4), (-5, -4)];
const DIAMOND: &[(i32, i32)] = &[(0, -6), (5, 0), (0, 6), (-5, 0)];
const CROSS: &[(i32, i32)] = &[
    (-5, -3),
    (-3, -5),
    (0, -2),
    (3, -5),
    (5, -3),
    (2, 0),
    (5, 3),
    (3, 5),
    (0, 2),
    (-3, 5),
    (-5, 3),
    (-2, 0),
];
const FLAT: &[(i32, i32)] = &[(-5, -2), (5, -2), (5, 2), (-5, 2)];
const TALL: &[(i32, i32)] = &[(-2, -5), (2, -5), (2, 5), (-2, 5)];
const SHAPES: [&[(i32, i32)]; 8] = [CIRCLE, SQUARE, UP, DIAMOND, DOWN, CROSS, FLAT, TALL];

/// Colours of policies, with the number of the shape and whether it is filled. The first eight can be told apart with any kind of
/// sight (Okabe and Ito).
const POLICIES: [(&str, RGBColor, usize, bool); 16] = [
    ("ainori", RGBColor(0, 114, 178), 0, true),
    ("spumone", RGBColor(213, 94, 0), 1, true),
    ("spumone-on-demand", RGBColor(0, 158, 115), 2, true),
    ("spumone-trap-based", RGBColor(204, 121, 167), 3, true),
    ("spumone-trap-based-uncured", RGBColor(230, 159, 0), 5, true),
    ("spumone-trap-based-strict", RGBColor(86, 180, 233), 4, true),
    ("delayed", RGBColor(0, 0, 0), 2, false),
    ("safe-unsafe", RGBColor(150, 140, 30), 1, false),
    ("round-robin", RGBColor(110, 60, 20), 0, false),
    ("partition", RGBColor(90, 90, 90), 3, false),
    ("balance", RGBColor(150, 40, 60), 4, false),
    ("co-schedule", RGBColor(40, 110, 60), 6, true),
    ("spumone-without-split", RGBColor(90, 60, 150), 5, false),
    ("listee-rt", RGBColor(0, 140, 150), 6, false),
    ("listee", RGBColor(190, 90, 90), 7, true),
    ("time-window", RGBColor(70, 130, 40), 7, false),
];

/// Colours of what is no policy: an ideal, a machine.
const OTHERS: [RGBColor; 4] =
    [RGBColor(60, 60, 60), RGBColor(140, 140, 140), RGBColor(100, 80, 50), RGBColor(50, 90, 100)];

/// Is this the name of a policy?
pub fn is_policy(name: &str) -> bool {
    POLICIES.iter().any(|(known, ..)| *known == name)
}

/// The look of a line. `policy` is the name of its policy, if it has one; `number` counts the lines of the chart that have the same policy, or that
/// have none, from 0.
pub fn look(policy: Option<&str>, number: usize) -> Look {
    let known = POLICIES.iter().find(|(name, ..)| Some(*name) == policy);
    let (colour, shape, is_filled) = match known {
        Some((_, colour, shape, is_filled)) => (*colour, *shape, *is_filled),
        None => (OTHERS[number % OTHERS.len()], 0, true),
    };
    Look { colour, marker: Marker { corners: SHAPES[(shape + number) % SHAPES.len()], is_filled } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_policies_look_the_same() {
        for (index, (name, ..)) in POLICIES.iter().enumerate() {
            for (other, ..) in &POLICIES[..index] {
                let (one, two) = (look(Some(name), 0), look(Some(other), 0));
                assert!(one.colour != two.colour && one.marker != two.marker, "{name} and {other}");
            }
        }
    }

    #[test]
    fn every_policy_has_a_look() {
        for preset in ainori_sched::presets() {
            assert!(is_policy(preset.name), "{}", preset.name);
        }
    }

    #[test]
    fn lines_of_one_policy_differ_by_their_shapes() {
        assert_ne!(look(Some("ainori"), 0).marker, look(Some("ainori"), 1).marker);
        assert_eq!(look(Some("ainori"), 0).colour, look(Some("ainori"), 1).colour);
    }
}
