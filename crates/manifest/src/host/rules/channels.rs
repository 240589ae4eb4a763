//! Rules about channels between guests.
use super::find_guest;
use crate::config::Channel;
use crate::host::{
    findings::Finding,
    reader::{At, Size},
    schema::{ChannelDraft, GuestDraft},
    units::show_size,
};
use ainori_limits::{CHANNEL_SIZE, GUEST_CHANNELS, MAX_CHANNELS, PAGE};

/// Checks all channels. Returns them if there is no error in any.
pub fn check(
    drafts: &[ChannelDraft],
    guests: &[GuestDraft],
    findings: &mut Vec<Finding>,
) -> Option<Vec<Channel>> {
    let before = findings.len();
    if let Some(excess) = drafts.get(MAX_CHANNELS) {
        let message = format!("{} channels are too many", drafts.len());
        findings.push(Finding::at(excess.span.clone(), message).help(format!("at most {MAX_CHANNELS}")));
    }
    let channels: Option<Vec<Channel>> =
        drafts.iter().map(|draft| check_one(draft, guests, findings)).collect();
    check_counts(drafts, findings);
    channels.filter(|_| findings.len() == before)
}

fn check_one(draft: &ChannelDraft, guests: &[GuestDraft], findings: &mut Vec<Finding>) -> Option<Channel> {
    let size = draft.size.as_ref().and_then(|size| check_size(size, findings));
    let named = draft.guests.as_ref()?;
    let [first, second] = &named.value[..] else {
        let count = named.value.len();
        // One that can't be read has been reported, and is left out.
        if !draft.is_wrong {
            let message = format!("a channel is between two guests, but this one names {count}");
            findings.push(
                Finding::at(named.span.clone(), message).help("e.g. guests = [\"freertos\", \"linux\"]"),
            );
        }
        return None;
    };
    if first.value == second.value {
        let message = format!("both ends of this channel are {:?}", first.value);
        findings.push(
            Finding::at(second.span.clone(), message)
                .saying("the second")
                .and(first.span.clone(), "the first")
                .help("name two different guests: one has all of its own memory without a channel"),
        );
        return None;
    }
    let [first, second] = [first, second].map(|name| {
        let index = find_guest(name, guests, "for this end of the channel", findings);
        index.and_then(|index| u32::try_from(index).ok())
    });
    Some(Channel { ends: [first?, second?], size: size? })
}

fn check_size(size: &At<Size>, findings: &mut Vec<Finding>) -> Option<u64> {
    let bytes = size.value.0;
    if bytes != 0 && bytes.is_multiple_of(PAGE) && bytes <= CHANNEL_SIZE {
        return Some(bytes);
    }
    let next = bytes.max(1).checked_next_multiple_of(PAGE).filter(|next| *next <= CHANNEL_SIZE);
    let (message, help) = match next {
        Some(next) => (
            "a channel's memory must be whole pages, a multiple of 4KiB",
            format!("the next is {}", show_size(next)),
        ),
        None => ("a channel can't have so much memory", format!("at most {}", show_size(CHANNEL_SIZE))),
    };
    findings.push(Finding::at(size.span.clone(), message).help(help));
    None
}

/// No guest may be at the ends of more channels than its bus has slots.
fn check_counts(drafts: &[ChannelDraft], findings: &mut Vec<Finding>) {
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for name in drafts.iter().filter_map(|draft| draft.guests.as_ref()).flat_map(|named| &named.value) {
        let known = seen.iter().position(|(other, _)| *other == name.value);
        let index = known.unwrap_or_else(|| {
            seen.push((&name.value, 0));
            seen.len() - 1
        });
        seen[index].1 += 1;
        if seen[index].1 == GUEST_CHANNELS + 1 {
            let message = format!("{} has more than {GUEST_CHANNELS} channels", name.value);
            let help = "a channel's memory can be divided as its two guests like";
            findings.push(Finding::at(name.span.clone(), message).saying("one too many").help(help));
        }
    }
}
