//! Functions that compute from their arguments, or tell what the session is: they change nothing, reach nothing outside
//! the database and run no text. What is missing counts as a call.

use sqlparser::ast::{ObjectName, ObjectNamePart};

use crate::catalog::Dialect;

/// Sorted. A name is here only if it is harmless in every database that has a function of that name.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "abs", "acos", "age", "any_value", "array_agg", "array_append", "array_length", "array_position",
    "array_remove", "array_to_string", "array_upper", "ascii", "asin", "atan", "atan2", "avg", "bit_and",
    "bit_length", "bit_or", "bool_and", "bool_or", "btrim", "cardinality", "cast", "cbrt", "ceil", "ceiling",
    "char", "char_length", "character_length", "chr", "coalesce", "concat", "concat_ws", "corr", "cos", "cot",
    "count", "covar_pop", "covar_samp", "cume_dist", "curdate", "current_catalog", "current_database",
    "current_date", "current_role", "current_schema", "current_time", "current_timestamp", "current_user",
    "curtime", "database", "date", "date_add", "date_bin", "date_format", "date_part", "date_sub", "date_trunc",
    "datediff", "datetime", "day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "degrees", "dense_rank",
    "div", "every", "exp", "extract", "field", "find_in_set", "first_value", "floor", "format", "from_unixtime",
    "gen_random_uuid", "generate_series", "generate_subscripts", "glob", "greatest", "group_concat", "grouping",
    "hex", "hour", "if", "ifnull", "iif", "initcap", "instr", "isfinite", "isnull", "json", "json_agg",
    "json_array", "json_array_elements", "json_array_elements_text", "json_array_length", "json_build_array",
    "json_build_object", "json_contains", "json_each", "json_each_text", "json_extract", "json_extract_path",
    "json_extract_path_text", "json_group_array", "json_group_object", "json_keys", "json_length", "json_object",
    "json_object_agg", "json_object_keys", "json_quote", "json_tree", "json_type", "json_typeof", "json_unquote",
    "json_valid", "jsonb_agg", "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_array_length",
    "jsonb_build_array", "jsonb_build_object", "jsonb_each", "jsonb_each_text", "jsonb_extract_path",
    "jsonb_extract_path_text", "jsonb_object_agg", "jsonb_object_keys", "jsonb_pretty", "jsonb_set",
    "jsonb_typeof", "julianday", "justify_days", "justify_hours", "lag", "last_day", "last_value", "lcase",
    "lead", "least", "left", "length", "like", "likely", "ln", "localtime", "localtimestamp", "locate", "log",
    "log10", "log2", "lower", "lpad", "ltrim", "make_date", "make_interval", "make_time", "make_timestamp", "max",
    "md5", "mid", "min", "minute", "mod", "mode", "month", "monthname", "now", "nth_value", "ntile", "nullif",
    "octet_length", "ord", "percent_rank", "percentile_cont", "percentile_disc", "period_add", "period_diff",
    "pi", "position", "pow", "power", "printf", "quarter", "quote", "quote_ident", "quote_literal", "radians",
    "rank", "regexp_count", "regexp_like", "regexp_match", "regexp_matches", "regexp_replace",
    "regexp_split_to_array", "regexp_split_to_table", "regexp_substr", "reverse", "right", "round", "row",
    "row_number", "row_to_json", "rpad", "rtrim", "schema", "second", "session_user", "sha1", "sha2", "sha256",
    "sign", "sin", "split_part", "sqrt", "starts_with", "statement_timestamp", "std", "stddev", "stddev_pop",
    "stddev_samp", "str_to_date", "strftime", "string_agg", "string_to_array", "strpos", "substr", "substring",
    "substring_index", "sum", "tan", "time", "timediff", "timestamp", "timestampadd", "timestampdiff", "to_char",
    "to_date", "to_json", "to_jsonb", "to_number", "to_timestamp", "total", "transaction_timestamp", "translate",
    "trim", "trunc", "truncate", "typeof", "ucase", "unicode", "unix_timestamp", "unixepoch", "unlikely",
    "unnest", "upper", "utc_date", "utc_time", "utc_timestamp", "uuid", "var_pop", "var_samp", "variance",
    "version", "week", "weekday", "weekofyear", "width_bucket", "year",
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
    PURE.binary_search(&own.to_ascii_lowercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_holds_nothing_that_acts() {
        assert!(PURE.is_sorted_by(|a, b| a < b), "{:?}", PURE.windows(2).find(|pair| pair.is_sorted_by(|a, b| a >= b)));
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
            "pg_sleep",
            "sleep",
            "benchmark",
            "query_to_xml",
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
        ] {
            assert!(!PURE.contains(&acts), "{acts}");
        }
    }
}
