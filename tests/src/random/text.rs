//! The text that the guests `talk` print, computed: numbers of Park and Miller's generator, which a C program and a shell's awk
//! can compute as well (guests/probes/talk.c, guests/linux/jobs/talk).

/// Bytes of a line with its end.
pub const LINE: u64 = 62;
/// Seeds are below this.
pub const MODULUS: u64 = 2_147_483_647;

/// Lines of a text of at least so many bytes.
pub fn lines(bytes: u64) -> u64 {
    bytes.div_ceil(LINE)
}

/// The text of a seed (1 to [`MODULUS`] - 1), line by line, without line ends.
pub fn text(seed: u64, bytes: u64) -> impl Iterator<Item = String> {
    let mut state = seed;
    (0..lines(bytes)).map(move |number| {
        let mut line = format!("{number:06}");
        for _ in 0..5 {
            state = state * 16_807 % MODULUS;
            line += &format!(" {state:010}");
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_guests() {
        let first = text(1, 63).collect::<Vec<_>>();
        let wanted = [
            "000000 0000016807 0282475249 1622650073 0984943658 1144108930",
            "000001 0470211272 0101027544 1457850878 1458777923 2007237709",
        ];
        assert_eq!(first, wanted);
        assert!(first.iter().all(|line| line.len() as u64 == LINE - 1));
    }
}
