//! Sources without anything outside: a collection, and a function of an index.
//!
//! ```
//! use flott_connector_spi::{Boundedness, Source};
//! use flott_datagen::{CollectionSource, GeneratorSource};
//!
//! let letters = CollectionSource::new(vec!["a".to_owned(), "b".to_owned()]);
//! assert_eq!(letters.boundedness(), Boundedness::Bounded);
//!
//! let squares = GeneratorSource::new(|index| index * index).rows_per_second(1000.0);
//! assert_eq!(squares.boundedness(), Boundedness::Unbounded);
//! ```
//!
//! - [`CollectionSource`]: given records, in order, read by one reader
//! - [`GeneratorSource`]: the values of a function at 0, 1, 2, …, read by all readers, at a limited rate if wanted
//! - [`RowsSource`]: the same, many rows at a time; [`Draws`]: random numbers for it that can be drawn again

mod batches;
mod collection;
mod generator;
mod pace;
mod random;
mod strides;

pub use batches::{MakeRows, RowsSource, RowsSplit};
pub use collection::{CollectionSource, CollectionSplit};
pub use generator::{GeneratorSource, GeneratorSplit};
pub use random::{DrawStream, Draws, below, unit};
