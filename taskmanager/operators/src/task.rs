//! A chain as the executor sees it: by its head, without its types.

use std::any::Any;
use std::sync::Arc;

use flott_connector_spi::ReadStatus;
use flott_core::{Batch, Data, Error, Result};
use flott_network::Payload;
use flott_state::columns::text_of_type;
use flott_telemetry::TaskCounters;

use crate::exchange::{decode_batch, encode_batch};
use crate::push::{Control, Push};

/// The head of a chain that receives from other subtasks.
pub trait Task: Send {
    /// Processes a batch from a channel.
    fn process(&mut self, payload: Payload) -> Result<()>;

    /// Passes `control` through the chain.
    fn control(&mut self, control: &mut Control<'_>) -> Result<()>;

    /// How to save batches of the type that it receives.
    fn codec(&self) -> PayloadCodec;
}

/// The rows of an encoded batch whose keys' hashes are wanted: how many there are, and their binary form.
type SelectRows = fn(&[u8], u32, &dyn Fn(u64) -> bool) -> Result<(u32, Vec<u8>)>;

/// Saves batches of one type that are on their way to a subtask, for whoever does not know the type.
#[derive(Clone, Copy, Debug)]
pub struct PayloadCodec {
    /// A text that is equal for types whose records look the same in their binary form.
    pub schema: fn() -> String,
    /// Appends the binary form of a batch.
    pub encode: fn(&Payload, &mut Vec<u8>) -> Result<()>,
    /// The rows of an encoded batch for whose keys' hashes the function is true: how many there are, and their binary
    /// form.
    pub select: SelectRows,
}

impl PayloadCodec {
    /// The codec for batches of `T`.
    pub fn of<T: Data>() -> Self {
        Self { schema: schema::<T>, encode: encode::<T>, select: select::<T> }
    }
}

/// The head of a chain that begins with a source.
pub trait SourceTask: Send {
    /// Lists the splits of the source, encoded, in the order in which to read them.
    fn discover(&mut self) -> Result<Vec<Vec<u8>>>;

    /// Gives it an encoded split.
    fn add_split(&mut self, split: &[u8]) -> Result<()>;

    /// Reads one batch and sends it through the chain.
    fn poll(&mut self) -> Result<ReadStatus>;

    /// Passes `control` through the chain.
    fn control(&mut self, control: &mut Control<'_>) -> Result<()>;
}

/// Receives batches of `T` and pushes them into a chain.
pub struct InputHead<T> {
    chain: Box<dyn Push<T>>,
    counters: Arc<TaskCounters>,
    buffer: Batch<T>,
}

impl<T: Data> InputHead<T> {
    /// The head in front of `chain`.
    pub fn new(chain: Box<dyn Push<T>>, counters: Arc<TaskCounters>) -> Self {
        Self { chain, counters, buffer: Batch::default() }
    }
}

impl<T: Data> Task for InputHead<T> {
    fn process(&mut self, payload: Payload) -> Result<()> {
        match payload {
            Payload::Local { batch, rows, bytes } => {
                let mut batch = batch.downcast::<Batch<T>>().map_err(|_| wrong_type())?;
                self.counters.records_in.add(u64::from(rows));
                self.counters.bytes_in.add(bytes);
                self.chain.push(&mut batch)
            }
            Payload::Encoded { data, rows } => {
                self.counters.records_in.add(u64::from(rows));
                self.counters.bytes_in.add(data.len() as u64);
                decode_batch(&data, rows, &mut self.buffer)?;
                self.chain.push(&mut self.buffer)
            }
        }
    }

    fn control(&mut self, control: &mut Control<'_>) -> Result<()> {
        self.chain.control(control)
    }

    fn codec(&self) -> PayloadCodec {
        PayloadCodec::of::<T>()
    }
}

fn wrong_type() -> Error {
    Error::system("a channel delivered records of another type")
}

fn schema<T: Data>() -> String {
    text_of_type::<T>()
}

fn encode<T: Data>(payload: &Payload, out: &mut Vec<u8>) -> Result<()> {
    match payload {
        Payload::Local { batch, .. } => {
            let batch: &(dyn Any + Send) = &**batch;
            encode_batch(batch.downcast_ref::<Batch<T>>().ok_or_else(wrong_type)?, out)
        }
        Payload::Encoded { data, .. } => {
            out.extend_from_slice(data);
            Ok(())
        }
    }
}

fn select<T: Data>(data: &[u8], rows: u32, is_wanted: &dyn Fn(u64) -> bool) -> Result<(u32, Vec<u8>)> {
    let mut batch = Batch::<T>::default();
    decode_batch(data, rows, &mut batch)?;
    if batch.hashes.len() != batch.rows.len() {
        return Err(Error::system("a batch that was sent by key has no hashes of its keys"));
    }
    let is_wanted: Vec<bool> = batch.hashes.iter().map(|hash| is_wanted(*hash)).collect();
    keep(&mut batch.rows, &is_wanted);
    keep(&mut batch.timestamps, &is_wanted);
    keep(&mut batch.hashes, &is_wanted);
    let mut out = Vec::new();
    encode_batch(&batch, &mut out)?;
    Ok((batch.len() as u32, out))
}

/// Keeps the values whose positions are wanted. A column that is not there has none.
fn keep<V>(column: &mut Vec<V>, is_wanted: &[bool]) {
    let mut is_wanted = is_wanted.iter();
    column.retain(|_| is_wanted.next().is_some_and(|is_wanted| *is_wanted));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_selected_with_all_that_belongs_to_them() {
        let codec = PayloadCodec::of::<String>();
        let rows = ["a", "b", "c"].map(str::to_owned).to_vec();
        let batch = Batch { rows, timestamps: vec![1, 2, 3], hashes: vec![10, 20, 30], split: 0 };
        let mut data = Vec::new();
        let payload = Payload::Local { batch: Box::new(batch), rows: 3, bytes: 0 };
        (codec.encode)(&payload, &mut data).unwrap();
        let (rows, selected) = (codec.select)(&data, 3, &|hash| hash != 20).unwrap();
        let mut arrived = Batch::<String>::default();
        decode_batch(&selected, rows, &mut arrived).unwrap();
        assert_eq!(arrived.rows, ["a", "c"]);
        assert_eq!((&arrived.timestamps[..], &arrived.hashes[..]), (&[1, 3][..], &[10, 30][..]));
        assert_eq!((codec.select)(&data, 3, &|_| false).unwrap().0, 0);
    }

    #[test]
    fn what_cannot_be_dealt_out_by_key_is_an_error() {
        let mut data = Vec::new();
        encode_batch(&Batch::from_rows(vec![1_u8, 2]), &mut data).unwrap();
        let error = (PayloadCodec::of::<u8>().select)(&data, 2, &|_| true).unwrap_err();
        assert!(error.message.contains("no hashes"), "{error}");
        let payload = Payload::Local { batch: Box::new(Batch::from_rows(vec![1_u8])), rows: 1, bytes: 1 };
        let error = (PayloadCodec::of::<u64>().encode)(&payload, &mut data).unwrap_err();
        assert!(error.message.contains("another type"), "{error}");
    }

    #[test]
    fn types_are_told_apart_by_what_they_look_like() {
        let schema = |codec: PayloadCodec| (codec.schema)();
        assert_eq!(schema(PayloadCodec::of::<(u8, String)>()), schema(PayloadCodec::of::<(u8, String)>()));
        assert_ne!(schema(PayloadCodec::of::<(u8, String)>()), schema(PayloadCodec::of::<(u16, String)>()));
    }
}
