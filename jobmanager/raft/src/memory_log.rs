//! A log that lives as long as its process.

use flott_control::Fact;
use flott_core::Result;

use crate::FactLog;

/// The log of an embedded cluster.
#[derive(Debug, Default)]
pub struct MemoryLog {
    facts: Vec<Fact>,
}

impl FactLog for MemoryLog {
    fn append(&mut self, fact: &Fact) -> Result<()> {
        self.facts.push(fact.clone());
        Ok(())
    }

    fn replay(&mut self) -> Result<Vec<Fact>> {
        Ok(self.facts.clone())
    }
}
