use arrow::array::{Int64Array, StringArray};
use proptest::prelude::*;

use super::*;

fn chunk(numbers: &[Option<i64>], kinds: Vec<RowKind>) -> Chunk {
    let texts: Vec<Option<String>> = numbers.iter().map(|n| n.map(|n| format!("é{n}"))).collect();
    let columns: [(&str, ArrayRef); 2] =
        [("n", Arc::new(Int64Array::from(numbers.to_vec()))), ("t", Arc::new(StringArray::from(texts)))];
    let fields = arrow::datatypes::Schema::new(vec![
        arrow::datatypes::Field::new("n", arrow::datatypes::DataType::Int64, true),
        arrow::datatypes::Field::new("t", arrow::datatypes::DataType::Utf8, true),
    ]);
    Chunk::of_columns(&Arc::new(fields), columns.map(|(_, c)| c).to_vec(), numbers.len(), kinds).unwrap()
}

fn rows() -> impl Strategy<Value = Vec<(Option<i64>, u8)>> {
    prop::collection::vec((any::<Option<i64>>(), 0..4_u8), 0..40)
}

proptest! {
    #[test]
    fn a_chunk_survives_its_binary_form(rows in rows(), with_hashes in any::<bool>(), input in 0..3_u8) {
        let (numbers, kinds): (Vec<_>, Vec<_>) =
            rows.into_iter().map(|(n, kind)| (n, RowKind::from_number(kind).unwrap())).unzip();
        let mut chunk = chunk(&numbers, kinds);
        chunk.input = input;
        chunk.hashes = with_hashes.then(|| (0..chunk.len() as u64).map(|row| row << 9).collect());
        let mut data = Vec::new();
        chunk.encode(&mut data).unwrap();
        prop_assert_eq!(Chunk::decode(&data).unwrap(), chunk);
        for length in [0, 1, 5, data.len() / 2] {
            // What is cut is an error, or at least no panic.
            let _ = Chunk::decode(&data[..length.min(data.len().saturating_sub(1))]);
        }
    }

    #[test]
    fn parts_put_together_are_the_whole(rows in rows(), cut in 0..40_usize) {
        let (numbers, kinds): (Vec<_>, Vec<_>) =
            rows.into_iter().map(|(n, kind)| (n, RowKind::from_number(kind).unwrap())).unzip();
        let chunk = chunk(&numbers, kinds);
        let cut = cut.min(chunk.len());
        let parts = [chunk.slice(0, cut), chunk.slice(cut, chunk.len() - cut)];
        let whole = Chunk::concat(&parts).unwrap();
        prop_assert_eq!(&whole.batch, &chunk.batch);
        prop_assert!((0..chunk.len()).all(|row| whole.kind(row) == chunk.kind(row)));
    }
}

#[test]
fn rows_keep_their_kinds_when_filtered_and_taken() {
    use RowKind::{Delete, Insert, UpdateAfter};
    let chunk = chunk(&[Some(1), None, Some(3)], vec![Insert, Delete, UpdateAfter]);
    let kept = chunk.filter(&BooleanArray::from(vec![Some(false), Some(true), None])).unwrap();
    assert_eq!((kept.len(), kept.kind(0)), (1, Delete));
    let taken = chunk.take(&[2, 0, 2]).unwrap();
    assert_eq!([0, 1, 2].map(|row| taken.kind(row)), [UpdateAfter, Insert, UpdateAfter]);
    assert!(Chunk::new(chunk.batch, vec![Insert; 3]).is_insert_only());
}
