//! The files of one state as a table.
//!
//! DataFusion's own table for files would list folders and ask for sizes; the manifest knows both, and its paths are
//! taken as they are, whatever characters they have.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Result as QueryResult;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::execution::SessionState;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use flott_checkpoint::{FileHandle, Store};
use flott_core::{Error, Result, ResultExt};

use super::query::explain;

/// The Parquet files of one state, which have the same columns.
#[derive(Debug)]
pub(super) struct StateTable {
    schema: SchemaRef,
    store: ObjectStoreUrl,
    files: Vec<PartitionedFile>,
}

impl StateTable {
    /// Reads the columns from the first file. All files have to lie in one file system or bucket.
    pub(super) async fn open(session: &SessionState, store: &Store, handles: &[FileHandle]) -> Result<Self> {
        let first = handles.first().ok_or_else(|| Error::input("the savepoint names no file of it"))?;
        let place = store_of(&first.path);
        let mut files = Vec::with_capacity(handles.len());
        for handle in handles {
            if store_of(&handle.path) != place {
                return Err(Error::input(format!("its files lie in {place} and {}: copy them to one", handle.path)));
            }
            let mut file = PartitionedFile::new("", handle.bytes);
            file.object_meta.location = store.open(&handle.path)?.1;
            files.push(file);
        }
        let url = ObjectStoreUrl::parse(place).map_err(|error| explain(&error))?;
        let (objects, _) = store.open(&first.path)?;
        let inferred = format().infer_schema(session, &objects, &[files[0].object_meta.clone()]).await;
        let schema = inferred.map_err(|error| explain(&error)).with_context(|| format!("reading {}", first.path))?;
        session.runtime_env().register_object_store(url.as_ref(), objects);
        Ok(Self { schema, store: url, files })
    }
}

/// Strings and bytes as they are in the file, not as views of it: results are only printed.
fn format() -> ParquetFormat {
    ParquetFormat::default().with_force_view_types(false)
}

/// The file system or bucket of a file: `file://` or `s3://bucket`.
fn store_of(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let end = url[authority..].find('/').map_or(url.len(), |slash| authority + slash);
    &url[..end]
}

#[async_trait]
impl TableProvider for StateTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let source = Arc::new(ParquetSource::new(Arc::clone(&self.schema)));
        let groups = FileGroup::new(self.files.clone()).split_files(session.config().target_partitions());
        let config = FileScanConfigBuilder::new(self.store.clone(), source)
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        format().create_physical_plan(session, config).await
    }

    /// Filters leave out row groups by their statistics; what is left is filtered again.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> QueryResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_in_a_file_system_or_a_bucket() {
        assert_eq!(store_of("file:///tmp/a b/x.parquet"), "file://");
        assert_eq!(store_of("s3://bucket/a/x.parquet"), "s3://bucket");
        assert_eq!(store_of("s3://bucket"), "s3://bucket");
    }
}
