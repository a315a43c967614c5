//! How tables are read by a plan: each once, for all queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use flott_core::hash::stable_hash;
use flott_core::time::parse_duration;
use flott_core::{Error, Result};
use flott_sql_runtime::spec::{OperatorSpec, SourceSpec, WatermarkSpec};

use super::emit::{Emitter, Port, Wish, parallelism_of};
use super::expr::{as_column, column, columns_of, is_volatile, replace, spec};
use super::reading::Reading;
use super::rel::{Id, Op, Rel, fields_of};
use super::table::{Changelog, ColumnKind, TableInfo};

impl Emitter<'_, '_> {
    /// Reads a table, for all that is wanted of it: the last operator of that, and which declared columns it has.
    pub(super) fn table(&mut self, group: usize) -> Result<(usize, Vec<usize>)> {
        if let Some(done) = &self.groups[group].node {
            return Ok(done.clone());
        }
        let planner = self.planner;
        let table = Arc::clone(&self.groups[group].table);
        if !table.is_scan {
            return Err(Error::input(format!(
                "'{}' cannot be read as a whole, its connector looks rows up by key: JOIN it FOR SYSTEM_TIME AS OF a processing time of another table",
                table.name
            )));
        }
        let scans = self.groups[group].scans.clone();
        let mut wanted = BTreeSet::new();
        for &id in &scans {
            if let Op::Scan(scan) = &planner.rels[id].op {
                wanted.extend(scan.columns.iter().copied());
            }
        }
        let is_batch = planner.settings.is_batch;
        let with_watermark = !is_batch;
        let wanted: Vec<usize> = match with_watermark {
            true => {
                let reading = Reading::of(&table, &wanted.into_iter().collect::<Vec<_>>(), true)?;
                reading.declared.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
            }
            false => wanted.into_iter().collect(),
        };
        let reading = Reading::of(&table, &wanted, with_watermark)?;
        let mut source = SourceSpec { is_batch, ..reading.source(&table) };
        if let [scan] = scans[..] {
            self.hints(scan, &reading, &mut source)?;
        }
        let is_needed = scans.iter().any(|&id| self.changes.needed[id]);
        let fields: Vec<_> = reading.fields.clone();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let parallelism = parallelism_of(&table.options, "scan.parallelism", &table.name)?;
        let as_rel = |what: &str, op: Op| Rel {
            op,
            inputs: Vec::new(),
            schema: Arc::clone(&schema),
            props: planner.props(scans[0]).clone(),
            digest: stable_hash(&(what, &table.name, table.options.get("connector"))),
        };
        let mut rel = as_rel("Source", Op::Union);
        // Keys of the scan are not where the source has them.
        rel.props.keys = Vec::new();
        let tells = table.changelog == Changelog::All;
        let mut node = self.node(OperatorSpec::Source(source), Arc::clone(&schema), &[], &rel, parallelism, tells)?;
        self.infos[node].is_own = parallelism.is_some();
        self.infos[node].keys = keys_among(&table, &reading);
        if tells && !is_needed {
            rel.digest = stable_hash(&("DropUpdateBefore", &table.name));
            let ports = vec![self.port(node, scans[0])];
            node = self.chained(OperatorSpec::DropUpdateBefore, Arc::clone(&schema), ports, &rel, false)?;
        }
        let told = tells && is_needed;
        let is_plain = reading.columns.len() == schema.fields().len()
            && reading.columns.iter().enumerate().all(|(index, expr)| as_column(expr) == Some(index));
        let declared = Schema::new(fields_of(reading.declared.iter().map(|&index| &table.columns[index].field)));
        if !is_plain && !reading.columns.is_empty() {
            let projection = reading.columns.iter().map(|expr| spec(expr, &schema)).collect::<Result<_>>()?;
            rel.digest = stable_hash(&("Calc", &table.name));
            let ports = vec![self.port(node, scans[0])];
            let calc = OperatorSpec::Calc { condition: None, projection };
            node = self.chained(calc, Arc::new(declared), ports, &rel, told)?;
        }
        if let Some((column, watermark)) = &reading.watermark {
            let schema = Arc::clone(&self.planned.plan.nodes[node].schema);
            let idle_timeout_ms = match table.options.get("scan.watermark.idle-timeout") {
                Some(text) => {
                    let time = parse_duration(text)
                        .map_err(|error| error.context(format!("'scan.watermark.idle-timeout' of '{}'", table.name)))?;
                    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
                }
                None => planner.settings.idle_timeout_ms,
            };
            let op = OperatorSpec::Watermark(WatermarkSpec {
                column: *column,
                watermark: spec(watermark, &schema)?,
                idle_timeout_ms,
            });
            rel.digest = stable_hash(&("Watermark", &table.name));
            let ports = vec![self.port(node, scans[0])];
            node = self.chained(op, schema, ports, &rel, told)?;
        }
        let done = (node, reading.declared);
        self.groups[group].node = Some(done.clone());
        Ok(done)
    }

    /// An operator right behind another, with as many subtasks.
    fn chained(
        &mut self,
        op: OperatorSpec,
        schema: SchemaRef,
        ports: Vec<Port>,
        rel: &Rel,
        told: bool,
    ) -> Result<usize> {
        let before = ports[0].node;
        let (parallelism, is_own) = (self.infos[before].parallelism, self.infos[before].is_own);
        let node = self.node(op, schema, &[(ports, Wish::Any)], rel, parallelism, told)?;
        self.infos[node].is_own = is_own;
        self.infos[node].keys = self.infos[before].keys.clone();
        Ok(node)
    }

    /// What the connector may use to read less, where nobody else reads the table.
    fn hints(&self, scan: Id, reading: &Reading, source: &mut SourceSpec) -> Result<()> {
        let planner = self.planner;
        let Op::Scan(of) = &planner.rels[scan].op else { return Ok(()) };
        source.limit = of.limit;
        // What the connector leaves out moves no watermark, and then other rows are late.
        let moves_watermark = of.table.watermark.is_some() && !planner.settings.is_batch;
        let [user] = self.users[scan][..] else { return Ok(()) };
        let Op::Calc(calc) = &planner.rels[user].op else { return Ok(()) };
        if moves_watermark || of.limit.is_some() || of.table.changelog != Changelog::InsertOnly {
            return Ok(());
        }
        let schema = Schema::new(reading.fields.clone());
        for condition in &calc.condition {
            let place = |index: usize| {
                let declared = reading.declared.iter().position(|column| *column == of.columns[index])?;
                as_column(&reading.columns[declared])
            };
            let used = columns_of(condition);
            if !used.is_empty() && used.iter().all(|&index| place(index).is_some()) {
                let moved = replace(condition, &|index| column(place(index).unwrap_or(0)))?;
                if !is_volatile(&moved) {
                    source.filters.push(spec(&moved, &schema)?);
                }
            }
        }
        Ok(())
    }
}

/// The table's key, if it is among what is read.
fn keys_among(table: &TableInfo, reading: &Reading) -> Vec<Vec<usize>> {
    let read = table.read();
    let place = |key: &usize| {
        let position = read.iter().position(|column| column == key)?;
        reading.projection.iter().position(|column| *column == position)
    };
    let is_read = |key: &usize| !matches!(table.columns[*key].kind, ColumnKind::Computed(_));
    match table.primary_key.iter().all(is_read) && !table.primary_key.is_empty() {
        true => table.primary_key.iter().map(place).collect::<Option<Vec<_>>>().into_iter().collect(),
        false => Vec::new(),
    }
}
