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
            let stays_in_tables = !facet.kinds.is_empty() && facet.kinds.iter().all(|kind| kind.names_its_tables());
            self.add(FacetKind::Sql(facet), floors);
            if stays_in_tables {
                continue;
            }
            // Files that it may name: `ATTACH`, `COPY`, `LOAD DATA`, a function that reads.
            for quoted in text.split(['\'', '"']).skip(1).step_by(2) {
                self.hint(&at, quoted);
            }
        }
        Ok(())
    }
}
