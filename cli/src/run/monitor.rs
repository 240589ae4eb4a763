//! Collects what the serial line tells.
use crate::{
    report::{FIRMWARE, GuestReport, Outcome, RunReport},
    serial::{self, Lines, Meaning, Part, Source},
};
use ainori_manifest::config::System;
use ainori_report::{Board, CoreStats, End, MARK, Next, Record, StopReason};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};

/// Lines of each console that are kept for the report of a run that went wrong.
const TAIL: usize = 20;

/// Problems that are kept of each life of a guest: it can make any number.
const PROBLEMS: usize = 100;
/// Bytes of results that are kept of each life.
const RESULTS: usize = 16 << 20;

/// What is known of a guest's present life, and ends with it. What was wrong with a former one is forgiven, so it stays with that one.
#[derive(Default)]
struct Present {
    problems: Vec<String>,
    /// Problems that were not kept.
    more_problems: usize,
    /// Bytes of results.
    result_bytes: usize,
    /// The beginning of a result whose rest may follow, as the hypervisor may have broken its line to let others speak; and how it is damaged if not.
    begun: Option<(Vec<u8>, String)>,
}

impl Present {
    fn problem(&mut self, text: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(text);
        } else {
            self.more_problems += 1;
        }
    }

    fn into_problems(mut self) -> Vec<String> {
        if self.more_problems != 0 {
            self.problems.push(format!("and {} more problems", self.more_problems));
        }
        self.problems
    }
}

/// Everything that has been told so far.
pub struct Monitor {
    lines: Lines,
    /// Who the line is from that came last.
    speaking: Source,
    /// Who gets what is typed.
    listener: Source,
    names: Vec<String>,
    guests: Vec<GuestReport>,
    board: Option<Board>,
    cores: Vec<CoreStats>,
    end: Option<End>,
    panic: Option<String>,
    refusal: Option<String>,
    problems: Vec<String>,
    /// When something of each guest came last, be it a whole line or not.
    heard: Vec<Option<Instant>>,
    present: Vec<Present>,
    tails: BTreeMap<String, VecDeque<String>>,
}

impl Monitor {
    /// Nothing is known yet.
    pub fn new(system: &System) -> Self {
        Self {
            lines: Lines::default(),
            speaking: Source::Unmarked,
            listener: system.console_input.map_or(Source::Unmarked, |guest| Source::Guest(guest as usize)),
            names: system.guests.iter().map(|guest| guest.name.clone()).collect(),
            guests: system.guests.iter().map(GuestReport::new).collect(),
            board: None,
            cores: Vec::new(),
            end: None,
            panic: None,
            refusal: None,
            problems: Vec::new(),
            heard: vec![None; system.guests.len()],
            present: system.guests.iter().map(|_| Present::default()).collect(),
            tails: BTreeMap::new(),
        }
    }

    /// Takes bytes of the serial line; `show` gets each whole line as source, text, and meaning. Returns what the guest that has the
    /// console's input said last in these bytes and in its present life, and whether that is a whole line.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut show: impl FnMut(Source, Part, &[u8], &Meaning),
    ) -> Option<(Vec<u8>, bool)> {
        let mut heard = None;
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line, part| {
            let (source, part, text) = match part {
                Part::Line => serial::split(line, &self.names),
                Part::More => (self.speaking, part, line),
            };
            self.speaking = source;
            let meaning = serial::meaning(source, part, text);
            show(source, part, text, &meaning);
            if source == self.listener {
                heard = Some((text.to_owned(), true));
            }
            let life = self.life_of_listener();
            self.take(source, part, text, meaning);
            if self.life_of_listener() != life {
                heard = None;
            }
        });
        let (source, _, text) = serial::split(lines.partial(), &self.names);
        if let Source::Guest(index) = source
            && !text.is_empty()
        {
            // A guest that ends no line isn't silent.
            self.heard[index] = Some(Instant::now());
        }
        if source == self.listener && !text.is_empty() && !bytes.ends_with(b"\n") {
            heard = Some((text.to_owned(), false));
        }
        self.lines = lines;
        heard
    }

    /// The life, from 0, of the guest that gets what is typed; `None` while it is in none.
    pub fn life_of_listener(&self) -> Option<usize> {
        match self.listener {
            Source::Guest(index) => {
                let guest = &self.guests[index];
                guest.stopped.is_none().then_some(guest.former_lives.len())
            }
            Source::Hypervisor | Source::Unmarked => Some(0),
        }
    }

    /// Has this guest stopped, and is not about to be started again?
    pub fn has_stopped(&self, guest: usize) -> bool {
        let stopped = self.guests[guest].stopped.as_ref();
        stopped.is_some_and(|stopped| stopped.next != Next::Restart)
    }

    /// A guest's name.
    pub fn name(&self, guest: usize) -> &str {
        &self.names[guest]
    }

    /// The beginning of a line that is not complete.
    pub fn partial(&self) -> &[u8] {
        self.lines.partial()
    }

    /// True if the hypervisor will say nothing more of interest.
    pub fn is_over(&self) -> bool {
        self.end.is_some() || self.panic.is_some() || self.refusal.is_some()
    }

    fn take(&mut self, source: Source, part: Part, text: &[u8], meaning: Meaning) {
        if let Source::Guest(index) = source {
            self.heard[index] = Some(Instant::now());
            if part == Part::More && self.go_on(index, text) {
                return;
            }
            self.give_up_result(index);
        }
        match (meaning, source) {
            (Meaning::Incomplete(why), Source::Guest(index)) => {
                self.present[index].begun = Some((text.to_owned(), why));
            }
            (Meaning::Record(record), _) => self.take_record(*record),
            (Meaning::Result(result), Source::Guest(index)) => {
                let present = &mut self.present[index];
                present.result_bytes += text.len();
                if present.result_bytes <= RESULTS {
                    self.guests[index].results.push(result);
                } else {
                    let name = &self.names[index];
                    present.problem(format!(
                        "{name} printed more than {RESULTS} bytes of results: one was left out"
                    ));
                }
            }
            (Meaning::Damaged(why) | Meaning::Incomplete(why), _) => {
                let problem = format!("a line of {} can't be read: {why}", self.mark(source));
                match source {
                    Source::Guest(index) => self.present[index].problem(problem),
                    Source::Hypervisor | Source::Unmarked => self.problems.push(problem),
                }
                self.keep(source, text);
            }
            (Meaning::Panic(why), _) => {
                self.panic.get_or_insert(why);
                self.keep(source, text);
            }
            (Meaning::Refusal(why), _) => {
                self.refusal.get_or_insert(why);
                self.keep(source, text);
            }
            (Meaning::Text | Meaning::Result(_), _) => self.keep(source, text),
        }
    }

    /// Adds more of a line to the result that a guest has begun. False if it has begun none.
    fn go_on(&mut self, index: usize, more: &[u8]) -> bool {
        let Some((mut text, how)) = self.present[index].begun.take() else { return false };
        if text.len() + more.len() > serial::LONGEST {
            self.take(Source::Guest(index), Part::Line, &text, Meaning::Damaged(how));
            return false;
        }
        text.extend_from_slice(more);
        let meaning = serial::meaning(Source::Guest(index), Part::Line, &text);
        self.take(Source::Guest(index), Part::Line, &text, meaning);
        true
    }

    /// The rest of the result that a guest has begun doesn't come any more.
    fn give_up_result(&mut self, index: usize) {
        if let Some((text, how)) = self.present[index].begun.take() {
            self.take(Source::Guest(index), Part::Line, &text, Meaning::Damaged(how));
        }
    }

    /// A guest says nothing more in this life. Who had stopped has said all that it wanted to, so a result that breaks off is damaged. Who still runs
    /// when the machine ends was interrupted, and its beginning of a result is only text.
    fn end_of_life(&mut self, index: usize) {
        if self.guests[index].stopped.is_some() {
            self.give_up_result(index);
        } else if let Some((text, _)) = self.present[index].begun.take() {
            self.keep(Source::Guest(index), &text);
        }
    }

    fn take_record(&mut self, record: Record) {
        match record {
            // The hypervisor tells of the board before it starts a guest.
            Record::Board(board) => {
                self.board = Some(board);
                self.guests.iter_mut().for_each(GuestReport::start);
            }
            Record::Stopped(stopped) => match self.guest(&stopped.guest) {
                Some(guest) => guest.stopped = Some(stopped),
                None => {
                    self.problems.push(format!("a record speaks of an unknown guest {:?}", stopped.guest))
                }
            },
            Record::Restarted(restarted) => match self.index(&restarted.guest) {
                Some(index) => {
                    self.end_of_life(index);
                    let former = std::mem::take(&mut self.present[index]);
                    self.guests[index].restart(restarted.time, former.into_problems());
                }
                None => {
                    self.problems.push(format!("a record speaks of an unknown guest {:?}", restarted.guest))
                }
            },
            Record::Vcpu(stats) => match self.guest(&stats.guest) {
                Some(guest) => guest.vcpus.push(stats),
                None => self.problems.push(format!("a record speaks of an unknown guest {:?}", stats.guest)),
            },
            Record::Core(stats) => self.cores.push(stats),
            Record::End(end) => {
                if end.console_bytes_lost != 0 {
                    let lost = end.console_bytes_lost;
                    self.problems
                        .push(format!("{lost} bytes of console output were lost: guests wrote too fast"));
                }
                self.end = Some(end);
            }
        }
    }

    fn guest(&mut self, name: &str) -> Option<&mut GuestReport> {
        self.guests.iter_mut().find(|guest| guest.name == name)
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|guest| guest == name)
    }

    fn mark(&self, source: Source) -> &str {
        match source {
            Source::Unmarked => FIRMWARE,
            Source::Hypervisor => MARK,
            Source::Guest(index) => &self.names[index],
        }
    }

    fn keep(&mut self, source: Source, text: &[u8]) {
        let mark = self.mark(source).to_owned();
        let tail = self.tails.entry(mark).or_default();
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(serial::quoted(text));
    }

    /// Fills in a report. The outcome is set only if the hypervisor panicked or refused to start; guests are judged.
    pub fn into_report(mut self, report: &mut RunReport) {
        // A last line without an end: perhaps what was printed when the machine stopped.
        let (source, _, text) = serial::split(self.lines.partial(), &self.names);
        if !text.is_empty() {
            let text = text.to_owned();
            self.keep(source, &text);
        }
        (0..self.present.len()).for_each(|index| self.end_of_life(index));
        let present = std::mem::take(&mut self.present);
        self.problems.extend(present.into_iter().flat_map(Present::into_problems));
        let silent = self.guests.iter().zip(&self.heard).filter(|(guest, _)| guest.stopped.is_none());
        let silent = silent
            .filter_map(|(guest, heard)| Some((guest.name.clone(), heard.as_ref()?.elapsed().as_secs_f64())));
        report.host.silent = silent.collect();
        for guest in &mut self.guests {
            if self.refusal.is_some() {
                guest.started = None;
            }
            guest.judge();
            guest.vcpus.sort_by_key(|stats| stats.vcpu);
            match guest.stopped.as_ref().map(|stopped| (stopped.next, stopped.reason)) {
                Some((Next::End, StopReason::Reboot)) => self.problems.push(format!(
                    "{} asked for a reboot (so does a Linux that panics); it gets one if the manifest says \
                     restart = \"on-failure\"",
                    guest.name
                )),
                Some((Next::GiveUp, _)) => self.problems.push(format!(
                    "{} was started {} times in all, then it was given up: one more restart would be above its restart_limit",
                    guest.name,
                    guest.former_lives.len() + 1
                )),
                _ => {}
            }
            if guest.outcome.is_unfinished() && !guest.background && self.end.is_some() {
                let state =
                    if guest.stopped.is_some() { "waited for its restart" } else { "had not stopped" };
                self.problems.push(format!("{} {state} when the hypervisor ended", guest.name));
            }
        }
        self.cores.sort_by_key(|stats| stats.core);
        if let Some(why) = self.panic {
            report.outcome = Outcome::Panic;
            self.problems.push(format!("the hypervisor panicked: {why}"));
        }
        if let Some(why) = self.refusal.filter(|_| report.outcome != Outcome::Panic) {
            report.outcome = Outcome::Refused;
            self.problems.push(format!("the hypervisor doesn't start on this machine: {why}"));
        }
        report.board = self.board;
        report.guests = self.guests;
        report.cores = self.cores;
        report.end = self.end;
        report.problems.append(&mut self.problems);
        report.console = self.tails.into_iter().map(|(mark, tail)| (mark, tail.into())).collect();
    }
}
