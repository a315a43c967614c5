use arrow::array::{
    Array, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray, StringArray, StructArray,
};
use arrow::datatypes::{Field, Fields, Int32Type};
use proptest::prelude::*;

use super::*;

/// A number, a text, a float, a list, and whether the row in the row is there.
type Row = (Option<i64>, Option<String>, Option<f64>, Option<Vec<Option<i32>>>, bool);

fn columns(rows: &[Row]) -> Vec<ArrayRef> {
    let lists = rows.iter().map(|row| row.3.clone());
    let fields: Fields = vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int32, true)].into();
    let inner: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.clone()))),
        Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0.map(|n| n as i32)))),
    ];
    let valid: Vec<bool> = rows.iter().map(|row| row.4).collect();
    vec![
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.clone()))),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2))),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.4)))),
        Arc::new(
            Decimal128Array::from_iter(rows.iter().map(|row| row.0.map(i128::from)))
                .with_precision_and_scale(38, 3)
                .unwrap(),
        ),
        Arc::new(StructArray::new(fields, inner, Some(valid.into()))),
    ]
}

proptest! {
    #[test]
    fn rows_come_back(rows in prop::collection::vec(
        (any::<Option<i64>>(), any::<Option<String>>(), prop::option::of(-1e9..1e9_f64),
         prop::option::of(prop::collection::vec(any::<Option<i32>>(), 0..4)), any::<bool>()), 0..20,
    )) {
        let columns = columns(&rows);
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        let mut encoded = EncodedRows::default();
        RowEncoder::new(&types).unwrap().encode(&columns, rows.len(), &mut encoded).unwrap();
        prop_assert_eq!(encoded.len(), rows.len());
        let decoded = RowDecoder::new(&types).unwrap().decode(encoded.iter()).unwrap();
        prop_assert_eq!(&decoded, &columns);
    }

    #[test]
    fn rows_of_one_column_are_as_those_of_others(values in prop::collection::vec(any::<Option<String>>(), 0..600)) {
        let encode = |columns: Vec<ArrayRef>| {
            let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
            let mut encoded = EncodedRows::default();
            RowEncoder::new(&types).unwrap().encode(&columns, values.len(), &mut encoded).unwrap();
            encoded
        };
        for column in [
            StringArray::from_iter(values.iter().cloned()),
            StringArray::from_iter_values(values.iter().map(|value| value.as_deref().unwrap_or_default())),
        ] {
            let column: ArrayRef = Arc::new(column);
            let (one, two) = (encode(vec![column.clone()]), encode(vec![column.clone(), column.clone()]));
            for (one, two) in one.iter().zip(two.iter()) {
                prop_assert_eq!(&[one, one].concat(), two);
            }
            let decoded = RowDecoder::new(&[DataType::Utf8]).unwrap().decode(one.iter()).unwrap();
            prop_assert_eq!(&decoded, &[column]);
        }
    }

    #[test]
    fn damaged_rows_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let types = [DataType::Int64, DataType::Utf8, DataType::new_list(DataType::Boolean, true)];
        // Any bytes may come: what matters is that nothing panics.
        let _ = RowDecoder::new(&types).unwrap().decode([&bytes[..]]);
    }
}

#[test]
fn the_form_is_kept() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(258), None])),
        Arc::new(StringArray::from(vec![Some("é"), Some("")])),
        Arc::new(Float64Array::from(vec![f64::NAN, -0.0])),
    ];
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
    let mut encoder = KeyEncoder::new(&[0, 1, 2], &types).unwrap();
    let keys = encoder.encode(&columns, 2, None).unwrap();
    assert_eq!(keys.rows.get(0), [1, 2, 1, 0, 0, 1, 2, 0xc3, 0xa9, 1, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
    assert_eq!(keys.rows.get(1), [0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!(keys.hashes[0], RowBytes::new(keys.rows.get(0)).hash());
}

#[test]
fn what_has_no_form_is_refused() {
    assert!(RowEncoder::new(&[DataType::Float16]).unwrap_err().message.contains("Float16"));
}
