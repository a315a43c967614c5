//! `blackhole`: takes everything and keeps nothing.

use flott_chunk::Chunk;
use flott_connector_spi::{Sink, SinkContext, SinkWriter};
use flott_core::{Batch, Result};
use flott_sql_runtime::spec::SinkSpec;

/// See the module's documentation.
pub(super) struct Blackhole;

impl Blackhole {
    pub(super) fn new(spec: &SinkSpec) -> Result<Self> {
        let options = super::options(&spec.table, &spec.options);
        options.required("connector")?;
        options.finish()?;
        Ok(Self)
    }
}

impl Sink<Chunk> for Blackhole {
    fn writer(&self, _: SinkContext, _: Vec<Vec<u8>>) -> Result<Box<dyn SinkWriter<Chunk>>> {
        Ok(Box::new(Self))
    }
}

impl SinkWriter<Chunk> for Blackhole {
    fn write(&mut self, batch: &mut Batch<Chunk>) -> Result<()> {
        batch.clear();
        Ok(())
    }
}
