//! Whose bytes are sent next.
use crate::Source;

/// Bytes of a line after which it must make room for those of others.
pub const LONGEST: usize = if cfg!(loom) { 8 } else { 4096 };

/// If more sources than this have been looked at for a piece, that was enough: it has no bytes.
const FEW: usize = if cfg!(any(test, loom)) { 1 } else { 6 };

/// What is left to do after a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Nothing, until a source says that there is more.
    Nothing,
    /// Perhaps more, at once.
    Now,
    /// An incomplete line, which will be shown at this time.
    Later(u64),
}

/// Makes one stream of the lines of at most `N` sources.
pub struct Multiplexer<const N: usize> {
    /// The source whose line is under way, or was the last.
    current: usize,
    /// That line is under way.
    is_open: bool,
    /// What has been sent of it in this turn is not its beginning: it was broken before.
    is_rest: bool,
    /// Bytes of the prefix (mark and separator) of that line that have been sent.
    marked: usize,
    /// Bytes of its text that have been sent in this turn; [`LONGEST`] if that is over.
    sent: usize,
    sources: [State; N],
}

/// What is known of a source.
#[derive(Clone, Copy)]
struct State {
    /// Line ends that have been sent.
    lines: usize,
    /// What was sent last is not the end of a line.
    mid_line: bool,
    /// Since when it is seen to have nothing but an incomplete line.
    incomplete_since: Option<u64>,
}

/// Has a source something that may be sent?
enum Readiness {
    No,
    Yes,
    At(u64),
}

impl<const N: usize> Multiplexer<N> {
    /// Nothing has been sent.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            current: 0,
            is_open: false,
            is_rest: false,
            marked: 0,
            sent: 0,
            sources: [State { lines: 0, mid_line: false, incomplete_since: None }; N],
        }
    }

    /// The source whose line is under way, or was the last.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// Is what was sent last not the end of a line?
    #[must_use]
    pub fn is_mid_line(&self) -> bool {
        self.is_open
    }

    /// Fills `piece` (a byte at least) with what is to be sent next; returns how much, and what is left to do. The sources are
    /// always the same, `N` at most.
    ///
    /// An incomplete line is sent when it is `patience` old, in the unit of `now`. None: everything is sent, as nobody
    /// writes any more.
    ///
    /// Takes time for one look at all sources, and for the bytes.
    pub fn fill(
        &mut self,
        sources: &[&Source],
        now: u64,
        patience: Option<u64>,
        piece: &mut [u8],
    ) -> (usize, Rest) {
        let open = sources.get(self.current).copied().filter(|_| self.is_open);
        if let Some(open) = open
            && self.sent < LONGEST
            && open.waiting() > 0
        {
            return (self.go_on(open, piece), Rest::Now);
        }
        match (self.choose(sources, now, patience), open) {
            // Its line goes on behind those of others.
            (Ok(_), Some(_)) => {
                self.is_open = false;
                let Some(end) = piece.first_mut() else { return (0, Rest::Now) };
                *end = b'\n';
                (1, Rest::Now)
            }
            (Ok((index, chosen)), None) => {
                let looked = index + if index <= self.current { sources.len() } else { 0 } - self.current;
                self.current = index;
                self.is_open = true;
                self.marked = 0;
                self.sent = 0;
                if let Some(state) = self.sources.get_mut(index) {
                    state.incomplete_since = None;
                    self.is_rest = state.mid_line;
                }
                // The look at the sources has taken time already: none, or half as many bytes.
                if looked > FEW {
                    return (0, Rest::Now);
                }
                let half = piece.len().div_ceil(2);
                (self.go_on(chosen, piece.get_mut(..half).unwrap_or_default()), Rest::Now)
            }
            (Err(_), Some(open)) if open.waiting() > 0 => {
                // Nobody else has anything: another turn.
                self.sent = 0;
                let room = if sources.len() > FEW { piece.len().div_ceil(4) } else { piece.len() };
                (self.go_on(open, piece.get_mut(..room).unwrap_or_default()), Rest::Now)
            }
            (Err(rest), _) => (0, rest),
        }
    }

    /// Goes on with the line of the current source.
    fn go_on(&mut self, source: &Source, piece: &mut [u8]) -> usize {
        let prefix = source.prefix(self.is_rest).get(self.marked..).unwrap_or_default();
        let length = prefix.len().min(piece.len());
        let (mark, text) = piece.split_at_mut(length);
        // BOUND: a mark and the separator, of 18 bytes at most.
        mark.iter_mut().zip(prefix).for_each(|(place, byte)| *place = *byte);
        self.marked += length;
        if text.is_empty() {
            return length;
        }
        let (taken, line_ended) = source.take(text);
        // Who has no more has had its turn, although more may have come when the next piece is: there may be a piece only now and then.
        self.sent = if source.waiting() == 0 { LONGEST } else { self.sent + taken };
        if let Some(state) = self.sources.get_mut(self.current) {
            state.lines += usize::from(line_ended);
            state.mid_line = !line_ended;
        }
        self.is_open = !line_ended;
        length + taken
    }

    /// The source whose turn it is: the first that has something, behind the current one. If only that has something, its line goes
    /// on, so it isn't chosen while that is open. If there is none: what is left to do.
    fn choose<'a>(
        &mut self,
        sources: &[&'a Source],
        now: u64,
        patience: Option<u64>,
    ) -> Result<(usize, &'a Source), Rest> {
        let mut rest = Rest::Nothing;
        let mut index = self.current;
        let candidates = sources.len().saturating_sub(usize::from(self.is_open));
        // BOUND: the sources, some 20 instructions for each that has nothing, 40 for one with the beginning of a line.
        for _ in 0..candidates {
            index = if index + 1 < sources.len() { index + 1 } else { 0 };
            let (Some(candidate), Some(state)) = (sources.get(index), self.sources.get_mut(index)) else {
                break;
            };
            match state.readiness(candidate, now, patience) {
                Readiness::Yes => return Ok((index, candidate)),
                Readiness::No => {}
                Readiness::At(time) => {
                    rest = Rest::Later(if let Rest::Later(other) = rest { time.min(other) } else { time });
                }
            }
        }
        Err(rest)
    }
}

impl<const N: usize> Default for Multiplexer<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn readiness(&mut self, source: &Source, now: u64, patience: Option<u64>) -> Readiness {
        let waiting = source.waiting();
        if waiting == 0 {
            self.incomplete_since = None;
            return Readiness::No;
        }
        // A line's end is counted when it is there: if it has come only now, so have the bytes before it.
        // One that has been taken may not have been counted yet.
        let has_line = source.lines().wrapping_sub(self.lines).cast_signed() > 0;
        let Some(patience) = patience else { return Readiness::Yes };
        if has_line || waiting >= LONGEST {
            return Readiness::Yes;
        }
        if !self.mid_line && source.first() == b'@' {
            return Readiness::No;
        }
        let due = *self.incomplete_since.get_or_insert(now) + patience;
        if due <= now { Readiness::Yes } else { Readiness::At(due) }
    }
}
