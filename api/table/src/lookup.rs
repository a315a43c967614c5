//! Connectors of a program, whose tables are asked for rows by key: those of a database, or of a service.
//!
//! A [`LookupConnector`] checks the options of a table and makes a [`LookUp`] for each subtask. That is asked for the rows of a
//! batch of keys at a time, and answers later. Order, time-outs, retries, the cache and what is under way at a checkpoint are the
//! engine's.
//!
//! ```
//! use std::sync::Arc;
//! use flott::prelude::*;
//! use flott_table::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array};
//! use flott_table::arrow::compute::take;
//! use flott_table::arrow::datatypes::{Int64Type, SchemaRef};
//! use flott_table::lookup::{Finding, Found, LookUp, LookupConnector, Options};
//! use flott_table::prelude::*;
//!
//! /// Customers of a service: `'connector' = 'customers', 'greeting' = '…'`.
//! struct Customers;
//!
//! impl LookupConnector for Customers {
//!     fn check(&self, options: &Options, columns: &SchemaRef) -> flott::Result<()> {
//!         options.required("greeting")?;
//!         match columns.fields().len() {
//!             2 => Ok(()),
//!             _ => Err(flott::Error::input(format!("table '{}': a customer has an id and a name", options.table()))),
//!         }
//!     }
//!
//!     fn open(&self, options: &Options, _: SchemaRef, columns: SchemaRef) -> flott::Result<Arc<dyn LookUp>> {
//!         Ok(Arc::new(Service { greeting: options.required("greeting")?.to_owned(), columns }))
//!     }
//! }
//!
//! struct Service {
//!     greeting: String,
//!     /// The columns that are wanted, some of the table's.
//!     columns: SchemaRef,
//! }
//!
//! impl LookUp for Service {
//!     fn look_up(&self, keys: RecordBatch) -> Finding<'_> {
//!         Box::pin(async move {
//!             // The service would be asked here, for all keys at a time.
//!             let ids = keys.column(0);
//!             let known = ids.as_primitive::<Int64Type>().values().iter().enumerate().filter(|(_, id)| **id < 3);
//!             let (keys, names): (Vec<u32>, Vec<String>) =
//!                 known.map(|(key, id)| (key as u32, format!("{} {id}", self.greeting))).unzip();
//!             let failed = |error: flott_table::arrow::error::ArrowError| flott::Error::system(error.to_string());
//!             let ids = take(ids, &UInt32Array::from(keys.clone()), None).map_err(failed)?;
//!             let names: ArrayRef = Arc::new(StringArray::from(names));
//!             let column = |name: &str| if name == "id" { Arc::clone(&ids) } else { Arc::clone(&names) };
//!             let columns = self.columns.fields().iter().map(|field| column(field.name())).collect();
//!             let rows = RecordBatch::try_new(Arc::clone(&self.columns), columns).map_err(failed)?;
//!             Ok(Found { rows, keys })
//!         })
//!     }
//! }
//!
//! # fn main() -> flott::Result<()> {
//! let env = StreamExecutionEnvironment::new();
//! let tables = StreamTableEnvironment::create(&env);
//! tables.create_temporary_lookup_connector("customers", Customers)?;
//! tables.execute_sql(
//!     "CREATE TABLE customers (id BIGINT, name STRING) WITH (
//!        'connector' = 'customers', 'greeting' = 'customer no.', 'lookup.cache' = 'PARTIAL')",
//! )?;
//! let schema = Schema::builder().column_by_expression("pt", "PROCTIME()").build();
//! let orders = tables.from_data_stream_with(env.from_collection([(1_i64, 250_i64), (7, 100), (1, 300)]), &schema)?;
//! let named = tables.sql_query(&format!(
//!     "SELECT c.name, o.f1 FROM {orders} AS o LEFT JOIN customers FOR SYSTEM_TIME AS OF o.pt AS c ON o.f0 = c.id"
//! ))?;
//! let mut named: Vec<(Option<String>, i64)> = named.execute()?.collect()?;
//! named.sort();
//! let name = Some("customer no. 1".to_owned());
//! assert_eq!(named, [(None, 100), (name.clone(), 250), (name, 300)]);
//! # Ok(()) }
//! ```

pub use flott_connector_spi::{Finding, Found, LookUp};
pub use flott_tables::lookup::LookupConnector;
pub use flott_tables::options::Options;
