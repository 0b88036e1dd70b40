//! SQL arguments.

use super::*;
use crate::facet::sql;

impl Call<'_> {
    pub(super) fn sql_argument(&mut self, pointer: &Pointer) -> Result<(), Malformed> {
        for (at, text) in self.texts(pointer, "an SQL text")? {
            // A reader in C stops there.
            if text.contains('\0') {
                return Err(Malformed { pointer: at, what: "a NUL in an SQL text".to_owned() });
            }
            let (facet, floors) = sql::read(text, self.tool.dialect);
            self.add(FacetKind::Sql(facet), floors);
            // Files that it may name: `ATTACH`, `COPY`, `LOAD DATA`, a function that reads.
            for quoted in text.split(['\'', '"']).skip(1).step_by(2) {
                self.hint(&at, quoted);
            }
        }
        Ok(())
    }
}
