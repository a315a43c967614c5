//! `DropUpdateBefore`: leaves out `-U`, for whoever knows rows by a key.

use arrow::array::BooleanArray;
use flott_core::Result;

use crate::operator::{Emit, TableOperator};
use flott_chunk::{Chunk, RowKind};

/// See the module's documentation.
pub struct DropUpdateBefore;

impl TableOperator for DropUpdateBefore {
    fn process(&mut self, chunk: Chunk, out: &mut Emit<'_>) -> Result<()> {
        let stays = |kind: &RowKind| *kind != RowKind::UpdateBefore;
        match chunk.kinds() {
            Some(kinds) if !kinds.iter().all(stays) => {
                let mask: BooleanArray = kinds.iter().map(|kind| Some(stays(kind))).collect();
                out.emit(chunk.filter(&mask)?)
            }
            _ => out.emit(chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::operators::testing::{Bed, Value, columns, int};
    use crate::spec::OperatorSpec;
    use flott_chunk::RowKind;

    #[test]
    fn only_rows_before_updates_go() {
        let schema = columns(&[("n", int())]);
        let mut bed = Bed::new(OperatorSpec::DropUpdateBefore, std::slice::from_ref(&schema), &schema);
        let kinds = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];
        let rows: Vec<_> = kinds.into_iter().enumerate().map(|(n, kind)| (kind, vec![Value::Int(n as i64)])).collect();
        bed.change(0, &rows);
        bed.change(0, &[(RowKind::UpdateBefore, vec![Value::Int(9)])]);
        assert_eq!(bed.take(), ["+I\t0", "+U\t2", "-D\t3"]);
    }
}
