//! Names and texts.

use std::sync::LazyLock;

use flott_datagen::{DrawStream, Draws, below};

/// The shortest text.
const LENGTH_MIN: u64 = 3;

/// The pool that long texts are cut from.
const POOL_BYTES: usize = 1 << 20;
static POOL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut stream = Draws::new(0, u64::MAX).stream(0);
    (0..POOL_BYTES).map(|_| b'a' + below(stream.draw(), 26) as u8).collect()
});

/// Appends a text of 3 to below `length_end` letters, one of 13 of them `special`, without blanks around it.
pub(crate) fn push_text(out: &mut Vec<u8>, stream: &mut DrawStream, length_end: u64, special: u8) {
    let start = out.len();
    let length = LENGTH_MIN + below(stream.draw(), length_end - LENGTH_MIN);
    let mut bits = 0;
    for index in 0..length {
        // Four letters of 16 bits each.
        bits = if index % 4 == 0 { stream.draw() } else { bits >> 16 };
        let drawn = ((bits & 0xffff) * (26 * 13)) >> 16;
        out.push(if drawn < 26 { special } else { b'a' + (drawn % 26) as u8 });
    }
    while out.len() > start && out.last() == Some(&b' ') {
        out.pop();
    }
    let blanks = out[start..].iter().take_while(|byte| **byte == b' ').count();
    out.drain(start..start + blanks);
}

/// Appends a text that makes an event of `bytes` bytes about `bytes_average` long: up to a fifth more or less.
#[inline]
pub(crate) fn push_extra(out: &mut Vec<u8>, bits: u64, bytes: usize, bytes_average: u32) {
    let missing = (bytes_average as usize).saturating_sub(bytes);
    let delta = (missing + 2) / 5;
    let length = missing - delta + below(bits << 32, 2 * delta as u64) as usize;
    let at = below(bits, (POOL_BYTES - length) as u64) as usize;
    out.extend_from_slice(&POOL[at..at + length]);
}

/// Where one bids: a channel, and the page in it.
pub(crate) struct Channels {
    /// The texts of all, one after the other, and where each ends.
    names: Vec<u8>,
    name_ends: Vec<u32>,
    urls: Vec<u8>,
    url_ends: Vec<u32>,
}

/// How many channels there are beside the hot ones, which come first.
pub(crate) const CHANNELS: u64 = 10_000;
/// Half of the bids come by one of these.
pub(crate) const HOT_CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];

/// The channels, the same in every process.
pub(crate) static CHANNEL_TABLE: LazyLock<Channels> = LazyLock::new(|| {
    let draws = Draws::new(0, u64::MAX - 1);
    let mut channels = Channels { names: Vec::new(), name_ends: vec![0], urls: Vec::new(), url_ends: vec![0] };
    for (index, name) in (0..).zip(HOT_CHANNELS) {
        channels.push(name, None, &mut draws.stream(index));
    }
    for index in 0..CHANNELS as u32 {
        let mut stream = draws.stream(u64::from(index) + HOT_CHANNELS.len() as u64);
        let has_id = below(stream.draw(), 10) > 0;
        let id = has_id.then(|| (index.reverse_bits() as i32).unsigned_abs());
        channels.push(&format!("channel-{index}"), id, &mut stream);
    }
    channels
});

impl Channels {
    fn push(&mut self, name: &str, id: Option<u32>, stream: &mut DrawStream) {
        self.names.extend_from_slice(name.as_bytes());
        self.name_ends.push(self.names.len() as u32);
        self.urls.extend_from_slice(b"https://www.nexmark.com/");
        for _ in 0..3 {
            push_text(&mut self.urls, stream, 5, b'_');
            self.urls.push(b'/');
        }
        self.urls.extend_from_slice(b"item.htm?query=1");
        if let Some(id) = id {
            self.urls.extend_from_slice(format!("&channel_id={id}").as_bytes());
        }
        self.url_ends.push(self.urls.len() as u32);
    }

    #[inline]
    pub(crate) fn name(&self, channel: usize) -> &[u8] {
        &self.names[self.name_ends[channel] as usize..self.name_ends[channel + 1] as usize]
    }

    #[inline]
    pub(crate) fn url(&self, channel: usize) -> &[u8] {
        &self.urls[self.url_ends[channel] as usize..self.url_ends[channel + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_long_as_they_should_be() {
        let draws = Draws::new(0, 0);
        let (mut specials, mut letters) = (0, 0);
        for index in 0..10_000 {
            let mut out = b"x".to_vec();
            push_text(&mut out, &mut draws.stream(index), 20, b'_');
            assert!((4..=20).contains(&out.len()), "{out:?}");
            specials += out.iter().filter(|byte| **byte == b'_').count();
            letters += out.len() - 1;
            out.clear();
            push_text(&mut out, &mut draws.stream(index), 5, b' ');
            assert_eq!(out.trim_ascii(), out);
            out.clear();
            push_extra(&mut out, draws.at(index), 32, 100);
            assert!((54..=81).contains(&out.len()), "{}", out.len());
        }
        let part = specials as f64 / letters as f64;
        assert!((0.07..0.083).contains(&part), "{part}");
        let mut out = Vec::new();
        push_extra(&mut out, 7, 200, 100);
        assert!(out.is_empty());
    }

    #[test]
    fn channels_have_pages() {
        let table = &*CHANNEL_TABLE;
        assert_eq!((table.name(0), table.name(3), table.name(4)), (&b"Google"[..], &b"Apple"[..], &b"channel-0"[..]));
        let with_id =
            (4..4 + CHANNELS as usize).filter(|&index| table.url(index).windows(12).any(|at| at == b"&channel_id="));
        let count = with_id.count();
        assert!((8_850..9_150).contains(&count), "{count}");
        assert!((0..4).all(|index| table.url(index).ends_with(b"query=1")));
    }
}
