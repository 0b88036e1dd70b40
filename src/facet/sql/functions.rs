//! Functions that compute from their arguments, or tell what the session is: they change nothing, reach nothing outside
//! the database and run no text. What is missing counts as a call: in another database the same name may be anyone's.
//!
//! Sources: PostgreSQL 17, chapter 9; MySQL 8.4, chapter 14; SQLite, "Built-In Scalar SQL Functions", "Date And Time
//! Functions", "Built-in Aggregate Functions", "Built-in Mathematical SQL Functions", "JSON Functions And Operators".

use sqlparser::ast::{ObjectName, ObjectNamePart};

use crate::catalog::Dialect;

/// Every database has them. Each list is sorted.
#[rustfmt::skip]
const EVERYWHERE: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "avg", "cast", "ceil", "ceiling", "char", "coalesce", "concat", "concat_ws",
    "cos", "count", "cume_dist", "current_date", "current_time", "current_timestamp", "date", "degrees", "dense_rank",
    "exp", "first_value", "floor", "format", "json_object", "lag", "last_value", "lead", "length", "ln",
    "log", "log10", "lower", "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif", "octet_length",
    "percent_rank", "pi", "pow", "power", "radians", "rank", "replace", "round", "row_number", "rtrim", "sign", "sin",
    "sqrt", "substr", "substring", "sum", "tan", "time", "trim", "upper",
];
#[rustfmt::skip]
const OF_POSTGRES: &[&str] = &[
    "age", "any_value", "array_agg", "array_append", "array_cat", "array_length", "array_position", "array_positions",
    "array_remove", "array_replace", "array_to_json", "array_to_string", "array_upper", "ascii", "bit_and", "bit_count",
    "bit_length", "bit_or", "bool_and", "bool_or", "btrim", "cardinality", "cbrt", "char_length", "character_length",
    "chr", "clock_timestamp", "corr", "cot", "covar_pop", "covar_samp", "current_catalog", "current_database",
    "current_role", "current_schema", "current_user", "date_bin", "date_part", "date_trunc", "decode", "div", "encode", "every", "extract", "factorial", "gcd", "gen_random_uuid",
    "generate_series", "generate_subscripts", "get_bit", "get_byte", "greatest", "grouping", "initcap", "isfinite",
    "json_agg", "json_array_elements", "json_array_elements_text", "json_array_length", "json_build_array",
    "json_build_object", "json_each", "json_each_text", "json_extract_path", "json_extract_path_text",
    "json_object_agg", "json_object_keys", "json_strip_nulls", "json_typeof", "jsonb_agg", "jsonb_array_elements",
    "jsonb_array_elements_text", "jsonb_array_length", "jsonb_build_array", "jsonb_build_object", "jsonb_each",
    "jsonb_each_text", "jsonb_extract_path", "jsonb_extract_path_text", "jsonb_object_agg", "jsonb_object_keys",
    "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first",
    "jsonb_pretty", "jsonb_set", "jsonb_strip_nulls", "jsonb_typeof", "justify_days", "justify_hours",
    "justify_interval", "lcm", "least", "left", "localtime", "localtimestamp", "lpad", "make_date", "make_interval",
    "make_time", "make_timestamp", "make_timestamptz", "md5", "mode", "now", "num_nonnulls", "num_nulls", "overlay",
    "percentile_cont", "percentile_disc", "pg_typeof", "phraseto_tsquery", "plainto_tsquery", "position", "quote_ident",
    "quote_literal", "quote_nullable", "random", "regexp_count", "regexp_instr", "regexp_like", "regexp_match",
    "regexp_matches", "regexp_replace", "regexp_split_to_array", "regexp_split_to_table", "regexp_substr", "repeat",
    "reverse", "right", "row", "row_to_json", "rpad", "scale", "session_user", "sha224", "sha256", "sha384", "sha512",
    "split_part", "starts_with", "statement_timestamp", "stddev", "stddev_pop", "stddev_samp", "string_agg",
    "string_to_array", "string_to_table", "strpos", "timeofday", "timezone", "to_char", "to_date", "to_hex", "to_json",
    "to_jsonb", "to_number", "to_timestamp", "to_tsquery", "to_tsvector", "transaction_timestamp", "translate", "trunc",
    "ts_headline", "ts_rank", "ts_rank_cd", "unnest", "var_pop", "var_samp", "variance", "version",
    "websearch_to_tsquery", "width_bucket",
];
#[rustfmt::skip]
const OF_MYSQL: &[&str] = &[
    "adddate", "addtime", "any_value", "ascii", "bin", "bit_and", "bit_count", "bit_length", "bit_or", "bit_xor",
    "char_length", "character_length", "connection_id", "conv", "convert", "cot", "crc32", "curdate",
    "current_role", "current_user", "curtime", "database", "date_add", "date_format", "date_sub", "datediff", "day",
    "dayname", "dayofmonth", "dayofweek", "dayofyear", "elt", "extract", "field", "find_in_set", "from_base64",
    "from_days", "from_unixtime", "greatest", "group_concat", "grouping", "hex", "hour", "if", "ifnull", "inet6_aton",
    "inet6_ntoa", "inet_aton", "inet_ntoa", "insert", "instr", "isnull", "json_array", "json_arrayagg", "json_contains",
    "json_contains_path", "json_depth", "json_extract", "json_keys", "json_length", "json_objectagg", "json_overlaps",
    "json_quote", "json_search", "json_type", "json_unquote", "json_valid", "json_value", "last_day", "lcase", "least",
    "left", "localtime", "localtimestamp", "locate", "log2", "lpad", "makedate", "maketime", "md5", "mid", "minute",
    "month", "monthname", "now", "oct", "ord", "period_add", "period_diff", "position", "quarter", "quote", "rand",
    "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr", "repeat", "reverse", "right", "row", "rpad",
    "schema", "sec_to_time", "second", "session_user", "sha1", "sha2", "soundex", "space", "std", "stddev",
    "stddev_pop", "stddev_samp", "str_to_date", "strcmp", "subdate", "substring_index", "subtime", "sysdate",
    "time_format", "time_to_sec", "timediff", "timestamp", "timestampadd", "timestampdiff", "to_base64", "to_days",
    "to_seconds", "truncate", "ucase", "unhex", "unix_timestamp", "user", "utc_date", "utc_time", "utc_timestamp",
    "uuid", "values", "var_pop", "var_samp", "variance", "version", "week", "weekday", "weekofyear", "weight_string",
    "year", "yearweek",
];
#[rustfmt::skip]
const OF_SQLITE: &[&str] = &[
    "acosh", "asinh", "atanh", "changes", "cosh", "datetime", "generate_series", "glob", "group_concat", "hex", "if",
    "ifnull", "iif", "instr", "json", "json_array", "json_array_length", "json_each", "json_error_position", "json_extract",
    "json_group_array", "json_group_object", "json_insert", "json_patch", "json_pretty", "json_quote", "json_remove",
    "json_replace", "json_set", "json_tree", "json_type", "json_valid", "julianday", "last_insert_rowid", "like",
    "likelihood", "likely", "log2", "printf", "quote", "random", "randomblob", "sinh", "soundex", "sqlite_version",
    "strftime", "string_agg", "tanh", "timediff", "total", "total_changes", "trunc", "typeof", "unhex", "unicode",
    "unixepoch", "unlikely", "zeroblob",
];

/// Tables of SQLite that are functions: they read files, or tell of the database's inside, whatever table is meant.
const TABLES_THAT_CALL: &[&str] = &[
    "bytecode",
    "carray",
    "completion",
    "csv",
    "dbstat",
    "fsdir",
    "sqlite_dbdata",
    "sqlite_dbpage",
    "sqlite_dbptr",
    "sqlite_memstat",
    "sqlite_stmt",
    "tables_used",
    "zipfile",
];

/// Whether a function is known to be pure. One of a schema is not, but for PostgreSQL's own.
pub(super) fn is_pure(name: &ObjectName, dialect: Option<Dialect>) -> bool {
    let parts: Option<Vec<&str>> = name
        .0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) if ident.quote_style.is_none() => Some(ident.value.as_str()),
            _ => None,
        })
        .collect();
    let own = match parts.as_deref() {
        Some([name]) => *name,
        Some([schema, name]) if dialect == Some(Dialect::Postgres) && schema.eq_ignore_ascii_case("pg_catalog") => {
            *name
        }
        _ => return false,
    };
    let own = own.to_ascii_lowercase();
    let known = |list: &[&str]| list.binary_search(&own.as_str()).is_ok();
    let special: &[&str] = match dialect {
        None => &[],
        Some(Dialect::Postgres) => OF_POSTGRES,
        Some(Dialect::MySql) => OF_MYSQL,
        Some(Dialect::Sqlite) => OF_SQLITE,
    };
    known(EVERYWHERE) || known(special)
}

/// Whether a table of that name is a function.
pub(super) fn is_called(table: &str, dialect: Option<Dialect>) -> bool {
    let table = table.to_ascii_lowercase();
    matches!(dialect, None | Some(Dialect::Sqlite))
        && (table.starts_with("pragma_") || TABLES_THAT_CALL.contains(&table.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_hold_nothing_that_acts() {
        for list in [EVERYWHERE, OF_POSTGRES, OF_MYSQL, OF_SQLITE] {
            let wrong = list.windows(2).find(|pair| pair.is_sorted_by(|a, b| a >= b));
            assert_eq!(wrong, None);
            for acts in [
                "pg_read_file",
                "lo_import",
                "lo_export",
                "dblink",
                "load_file",
                "load_extension",
                "writefile",
                "readfile",
                "nextval",
                "setval",
                "set_config",
                "setseed",
                "pg_sleep",
                "sleep",
                "benchmark",
                "query_to_xml",
                "ts_stat",
                "ts_rewrite",
                "pg_terminate_backend",
                "get_lock",
                "last_insert_id",
                "xp_cmdshell",
                "sys_exec",
                "edit",
                "eval",
                "fts3_tokenizer",
                "pg_ls_dir",
                "current_setting",
                "json_populate_record",
            ] {
                assert!(!list.contains(&acts), "{acts}");
            }
        }
    }
}
