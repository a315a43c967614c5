//! Frames to and from a socket: many at a time, without copying what is large.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes, BytesMut};
use flott_core::{Error, Result};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::element::ChannelId;
use crate::framing::{self, EncodedFrame, Frame};

/// A payload of at least this length is written from where it is; a shorter one is copied next to
/// its header, which is cheaper than a slice of its own.
const GATHER_BYTES_MIN: usize = 4 << 10;

/// How many slices one system call writes.
const SLICES_MAX: usize = 64;

/// Frames on their way to the task that writes a connection. Slot threads put them in. Its length
/// is bounded by the credit of the connection's channels, and by what barriers made follow without credit.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    frames: Mutex<Frames>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Frames {
    waiting: Vec<EncodedFrame>,
    is_closed: bool,
}

impl Outbox {
    /// Queues a frame; does nothing once the connection is over.
    pub(crate) fn push(&self, frame: EncodedFrame) {
        let was_empty = {
            let mut frames = self.frames.lock();
            if frames.is_closed {
                return;
            }
            frames.waiting.push(frame);
            frames.waiting.len() == 1
        };
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Puts a barrier in front of all frames. `make` is told how many of them are elements of its channel.
    pub(crate) fn overtake(&self, channel: ChannelId, make: impl FnOnce(u32) -> Result<EncodedFrame>) -> Result<()> {
        {
            let mut frames = self.frames.lock();
            if frames.is_closed {
                return Ok(());
            }
            let overtaken = frames.waiting.iter().filter(|frame| frame.is_element_of(channel)).count();
            let frame = make(overtaken as u32)?;
            frames.waiting.insert(0, frame);
        }
        self.filled.notify_one();
        Ok(())
    }

    /// The connection is over: drops what was not written.
    pub(crate) fn close(&self) {
        let mut frames = self.frames.lock();
        frames.is_closed = true;
        frames.waiting = Vec::new();
    }

    /// Everything that waits.
    #[cfg(test)]
    pub(crate) fn take_waiting(&self) -> Vec<EncodedFrame> {
        std::mem::take(&mut self.frames.lock().waiting)
    }

    /// Writes frames as they come, until that fails.
    pub(crate) async fn write_to(&self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Error {
        let mut frames = Vec::new();
        let mut batch = WriteBatch::default();
        loop {
            self.take(&mut frames).await;
            frames.drain(..).for_each(|frame| batch.add(frame));
            if let Err(error) = batch.write_to(writer).await {
                return error;
            }
        }
    }

    /// Waits for frames and swaps them into the empty `frames`.
    async fn take(&self, frames: &mut Vec<EncodedFrame>) {
        loop {
            {
                let mut queued = self.frames.lock();
                if !queued.waiting.is_empty() {
                    std::mem::swap(&mut queued.waiting, frames);
                    return;
                }
            }
            self.filled.notified().await;
        }
    }
}

/// Frames as the slices that make them up.
#[derive(Default)]
struct WriteBatch {
    slices: VecDeque<Bytes>,
    /// Headers and small payloads since the last slice. Its memory is used again once they are written.
    small: BytesMut,
}

impl WriteBatch {
    fn add(&mut self, frame: EncodedFrame) {
        self.small.extend_from_slice(&frame.header);
        if frame.payload.len() < GATHER_BYTES_MIN {
            self.small.extend_from_slice(&frame.payload);
        } else {
            self.slices.push_back(self.small.split().freeze());
            self.slices.push_back(frame.payload);
        }
    }

    async fn write_to(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if !self.small.is_empty() {
            self.slices.push_back(self.small.split().freeze());
        }
        while !self.slices.is_empty() {
            let mut gathered = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.slices.len().min(SLICES_MAX);
            for (gathered, slice) in gathered.iter_mut().zip(&self.slices) {
                *gathered = IoSlice::new(slice);
            }
            let written = writer.write_vectored(&gathered[..count]).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(written);
        }
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(first) = self.slices.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.slices.pop_front();
        }
    }
}

/// Reads frames.
pub(crate) struct FrameReader<R> {
    reader: R,
    buffer: BytesMut,
    buffer_bytes: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads about `buffer_bytes` at a time.
    pub(crate) fn new(reader: R, buffer_bytes: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), buffer_bytes }
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) async fn read_frame(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some(frame) = framing::decode(&mut self.buffer)? {
                return Ok(Some(frame));
            }
            if self.buffer.capacity() - self.buffer.len() < self.buffer_bytes / 4 {
                self.buffer.reserve(self.buffer_bytes);
            }
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(1..) => continue,
                Ok(0) => {}
                // So a close looks if the other side had not read everything from us.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Err(error) => return Err(error.into()),
            }
            return match self.buffer.len() {
                0 => Ok(None),
                bytes => Err(Error::system(format!("the stream ends {bytes} bytes into a frame"))),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::element::{Element, Payload};

    fn frame(index: u32, length: usize) -> EncodedFrame {
        let data = vec![index as u8; length].into();
        let channel = ChannelId { edge: index, from: 0, to: 0 };
        framing::encode_element(channel, Element::Batch(Payload::Encoded { data, rows: 1 }), false).unwrap()
    }

    /// Small, large and empty frames, in any mixture, through a pipe that takes few bytes at once.
    #[tokio::test]
    async fn frames_pass_a_narrow_pipe_in_order() {
        let lengths = [0, 1, 5000, 4096, 4095, 100_000, 3, 70_000, 0];
        let (near, far) = tokio::io::duplex(777);
        let (_far_reader, mut writer) = tokio::io::split(near);
        let outbox = Arc::new(Outbox::default());
        const FRAMES: u32 = 300;
        let filler = {
            let outbox = outbox.clone();
            std::thread::spawn(move || {
                for index in 0..FRAMES {
                    outbox.push(frame(index, lengths[index as usize % lengths.len()]));
                }
            })
        };
        let read = async {
            let mut reader = FrameReader::new(far, 64 << 10);
            for index in 0..FRAMES {
                let got = reader.read_frame().await.unwrap().unwrap();
                assert_eq!(got.channel.edge, index);
                let framing::Body::Element(Element::Batch(Payload::Encoded { data, .. })) = got.body else {
                    panic!("{got:?}");
                };
                assert_eq!(data.len(), lengths[index as usize % lengths.len()]);
                assert!(data.iter().all(|byte| *byte == index as u8));
            }
        };
        tokio::select! {
            error = outbox.write_to(&mut writer) => panic!("{error}"),
            () = read => {}
        }
        filler.join().unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_ends_within_a_frame_is_an_error() {
        let frame = frame(0, 100);
        let bytes = [&frame.header[..], &frame.payload[..50]].concat();
        let error = FrameReader::new(&bytes[..], 1000).read_frame().await.unwrap_err();
        assert_eq!(error.to_string(), "the stream ends 90 bytes into a frame");
        assert!(FrameReader::new(&bytes[..0], 1000).read_frame().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_closed_outbox_keeps_nothing() {
        let outbox = Outbox::default();
        outbox.push(frame(0, 10));
        outbox.close();
        outbox.push(frame(1, 10));
        assert!(outbox.frames.lock().waiting.is_empty());
    }
}
