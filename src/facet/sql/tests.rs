#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use super::*;
use Dialect::{MySql, Postgres, Sqlite};

/// `kinds on tables`, or `unread`.
fn says(text: &str, dialect: Option<Dialect>) -> String {
    let (facet, floors) = read(text, dialect);
    assert_eq!(facet.kinds.is_empty(), !floors.is_empty(), "{text}: {floors:?}");
    if facet.kinds.is_empty() {
        return "unread".to_owned();
    }
    let kinds: Vec<&str> = facet.kinds.iter().map(|kind| kind.as_str()).collect();
    let tables: Vec<&str> = facet.tables.iter().map(String::as_str).collect();
    if tables.is_empty() { kinds.join(" ") } else { format!("{} on {}", kinds.join(" "), tables.join(" ")) }
}

fn all_say(cases: &[(&str, &str)], dialects: &[Option<Dialect>]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        for dialect in dialects {
            let said = says(text, *dialect);
            if said != *expected {
                wrong.push(format!("{dialect:?} {text}: {said}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn statements_are_told_apart_in_every_dialect() {
    all_say(
        &[
            ("SELECT 1", "select"),
            ("select id, name from users where id = 7 order by name limit 3;", "select on users"),
            ("select count(*), max(a.x), coalesce(b.y, 'it''s') from s.a join b on a.id = b.id", "select on b s.a"),
            ("select * from a where id in (select id from b) union all select * from c", "select on a b c"),
            ("select case when x > 1 then 'delete' else 'drop' end from t -- the end", "select on t"),
            ("select /* plain */ x from t", "select on t"),
            ("with x as (select * from a) select * from x", "select on a"),
            ("insert into t (a) values (1)", "insert on t"),
            ("insert into t select * from s", "select insert on s t"),
            ("update t set a = 1 where b = 2", "update on t"),
            ("delete from t where a = 1", "delete on t"),
            ("create table t (a int)", "ddl on t"),
            ("alter table t add column b int", "ddl on t"),
            ("drop table t", "ddl on t"),
            ("create view v as select * from t", "select ddl on t v"),
            ("select 1; delete from t", "select delete on t"),
            ("begin; update t set a = 1; commit", "update tx on t"),
            ("select lower(name), sleep(5) from t", "select call on t"),
            ("select a from t where b = evil(a)", "select call on t"),
            ("insert into t (a) values (nextval('s'))", "insert call on t"),
            ("select s.lower(name) from t", "select call on t"),
            ("explain select * from t", "select on t"),
        ],
        &[None, Some(Postgres), Some(MySql), Some(Sqlite)],
    );
}

#[test]
fn what_looks_like_a_select_and_does_more_is_none() {
    all_say(
        &[
            ("select * into n from t", "select ddl other on t"),
            ("select * from t for update", "select update on t"),
            ("with x as (delete from t returning *) select * from x", "select delete on t"),
            ("with x as (select 1) insert into t select * from x", "select insert on t"),
            ("with x as (update t set a = 1 returning a) select * from x", "select update on t"),
            ("explain analyze delete from t", "delete on t"),
            ("explain (analyze) update t set a = 1", "update on t"),
            ("select pg_read_file('/etc/passwd')", "select call"),
            ("select * from pg_ls_dir('/')", "select call on pg_ls_dir"),
            ("select lo_import('/etc/passwd')", "select call"),
            ("select dblink('host=x', 'drop table t')", "select call"),
            ("select query_to_xml('delete from t', true, true, '')", "select call"),
            ("select set_config('role', 'admin', false)", "select call"),
            ("select pg_catalog.lower('A'), pg_catalog.pg_sleep(1)", "select call"),
            ("select pg_catalog.lower('A')", "select"),
            ("select 1 operator(pg_catalog.+) 2", "select call"),
            ("values (pg_sleep(9))", "select call"),
            ("copy t from program 'id'", "copy"),
            ("copy t to '/tmp/x'", "copy"),
            ("copy (select * from t) to '/tmp/x'", "select copy on t"),
            ("do $$ begin execute 'drop table t'; end $$", "unread"),
            ("call p()", "call"),
            ("prepare p as delete from t", "delete call on t"),
            ("execute p", "call"),
            ("set role admin", "dcl set"),
            ("set session authorization admin", "dcl set"),
            ("grant select on t to eve", "dcl"),
            ("truncate t", "delete on t"),
            ("merge into t using s on t.a = s.a when matched then delete", "insert update delete on s t"),
            ("create function f() returns int as $$ select 1 $$ language sql", "ddl other"),
            ("create extension plpython3u", "ddl other"),
            ("insert into t values (1) on conflict (a) do update set b = 2", "insert update on t"),
            ("listen x", "other"),
            ("select 1 end; drop table t", "unread"),
            ("select $$a; drop table t$$", "select"),
            ("select e'a\\n\\tb', E'\\\\' from t", "select on t"),
            ("select e'a\\'; drop table t -- '", "unread"),
            ("select ee'a\\n'", "unread"),
            ("select $a$ $$ $a$", "select"),
            ("select 'a\\' from t", "unread"),
            ("select 'a\\''; drop table t -- '", "unread"),
            ("select '^\\d+\\.' , '{\"a\":\"\\\"b\\\"\"}' from t", "select on t"),
            (
                "select \"T\", x::int, '{\"a\":1}'::jsonb #> '{a}' from \"My.Table\", Users",
                "select on \"My.Table\" users",
            ),
        ],
        &[Some(Postgres)],
    );
    all_say(
        &[
            ("attach database 'x.db' as y", "other"),
            ("pragma writable_schema = 1", "set other"),
            ("vacuum into 'x.db'", "unread"),
            ("select * from 'file.csv'", "select other"),
            ("select load_extension('x')", "select call"),
            ("select writefile('x', 'y')", "select call"),
            ("replace into t values (1)", "insert delete on t"),
            ("insert or replace into t values (1)", "insert delete on t"),
            ("select * from `t`, [u], \"V\"", "select on t u v"),
        ],
        &[Some(Sqlite)],
    );
    all_say(
        &[
            ("select load_file('/etc/passwd')", "select call"),
            ("select benchmark(1, 2), get_lock('a', 1)", "select call"),
            ("load data infile '/etc/passwd' into table t", "unread"),
            ("set global general_log = 1", "set other"),
            ("set @@persist.init_connect = 'drop table t'", "set other"),
            ("set @x = 1", "set"),
            ("select @@global.version, @x", "select"),
            ("select * from t # the end", "select on t"),
            ("select `a` from `T`", "select on T"),
            ("delete a from a join b on a.id = b.id", "delete on a b"),
        ],
        &[Some(MySql)],
    );
}

#[test]
fn a_name_given_by_with_hides_no_table() {
    all_say(
        &[
            ("with secrets as (select * from secrets) select * from secrets", "select on secrets"),
            (
                "with x as (select 1) select * from (with secrets as (select 1) select * from secrets) y, secrets",
                "select on secrets",
            ),
            ("with recursive x as (select 1 as n union all select n + 1 from x) select * from x", "select"),
            ("with x as (select * from y), y as (select 1) select * from x", "select on y"),
            ("with x as (select 1), y as (select * from x) select * from y", "select"),
            ("with x as (select 1) select * from public.x", "select on public.x"),
            ("with t as (select 1) delete from t", "select delete on t"),
            ("with \"X\" as (select 1) select * from x", "select on x"),
        ],
        &[Some(Postgres)],
    );
}

#[test]
fn what_databases_read_differently_is_not_read_without_a_dialect() {
    for text in [
        "",
        ";",
        "-- nothing",
        "selec 1",
        "select 1 /*! ; drop table t */",
        "select 1 /*!50000 union select 2 */",
        "select 1 /*M! ; drop table t */",
        "select /*+ SET_VAR(sql_mode='') */ 1",
        "select 1 /* /* */ ; drop table t -- */",
        "select 1 /*/*/ ; drop table t /*/*/",
        "select 1 /* open",
        "select 1 --1",
        "select 1 --\u{a0}x",
        "select 1 -- x\r; drop table t",
        "select 1 # x\n; drop table t",
        "select '\\'; drop table t -- '",
        "select \"\\\"; drop table t -- \"",
        "select $$ $$; drop table t; select $$ $$",
        "select 1 as a$$; drop table t; select 1 as b$$",
        "select E'\\'; drop table t --'",
        "select U&'\\0027; drop table t --'",
        "select _utf8'\\'; drop table t --'",
        "select N'\\'; drop table t --'",
        "select `a'` from t where x = '`'; drop table t --'",
        "select [a'] from t where x = ']'; drop table t --'",
        "select 1\u{a0}; drop table t",
        "select 1\u{2028}from t",
        "ѕelect 1",
        "select '\u{202e}'",
        "select @x := 1",
        "select 1 \\! id",
        "\\! id",
        ".shell id",
        "select 1 into outfile '/tmp/x'",
        "select 1 into dumpfile '/tmp/x'",
        "select 1union select 2",
        "select 1e from t",
        "copy t from stdin;\n1\n\\.\ndrop table t;",
        "select '",
    ] {
        assert_eq!(says(text, None), "unread", "{text}");
    }
    // A dialect settles what is another database's alone, and no more.
    for dialect in [Postgres, MySql, Sqlite] {
        for text in ["select 1 /*! ; drop table t */", "select 1 /* /* */ ; drop table t -- */", "select 1 \\! id"] {
            assert_eq!(says(text, Some(dialect)), "unread", "{dialect:?} {text}");
        }
    }
    assert_eq!(says("select 1 --1", Some(MySql)), "unread");
    for text in ["select '\\'; drop table t -- '", "select $$ $$; drop table t; select $$ $$"] {
        assert_eq!(says(text, Some(MySql)), "unread", "{text}");
    }
    assert_eq!(says("select '\\'; drop table t -- '", Some(Sqlite)), "select ddl on t");
    assert_eq!(says("select a$$; drop table t; select b$$", Some(Sqlite)), "unread");
    assert_eq!(says("select '\\\\'; drop table t -- '", None), "select ddl on t", "it ends there for all");
}

#[test]
fn too_much_is_not_parsed() {
    for (open, middle, close) in
        [("(", "1", ")"), ("(select ", "1", ")"), ("abs(", "1", ")"), ("case when 1 then ", "1", " end")]
    {
        let nested = |n: usize| format!("select {}{middle}{}", open.repeat(n), close.repeat(n));
        let start = std::time::Instant::now();
        for n in [8, MAX_NESTING, MAX_NESTING + 1, 5_000] {
            for dialect in [None, Some(Postgres), Some(MySql), Some(Sqlite)] {
                let said = says(&nested(n), dialect);
                assert!(n <= MAX_NESTING || said == "unread", "{open} {n}: {said}");
            }
        }
        assert!(start.elapsed().as_secs() < 20, "{open}: {:?}", start.elapsed());
    }
    for open in [
        "select * from ((((((((((((((((((((((((((((((((",
        "select not not not ",
        "select - - - -",
        "select [[[[[[[[[[[[[[[[",
    ] {
        let start = std::time::Instant::now();
        let _ = says(open, None);
        assert!(start.elapsed().as_secs() < 4, "{open}: {:?}", start.elapsed());
    }
    let chain = |n: usize| format!("select 1{}", "+1".repeat(n));
    assert_eq!(says(&chain(MAX_TOKENS / 2 - 2), Some(Postgres)), "select");
    assert_eq!(says(&chain(MAX_TOKENS), Some(Postgres)), "unread");
    assert_eq!(says(&format!("select '{}'", "a".repeat(MAX_BYTES)), Some(Postgres)), "unread");
    let unions = format!("select 1{}", " union select 1".repeat(1_300));
    assert_eq!(says(&unions, Some(Postgres)), "select");
    let nots = format!("select {}1", "not ".repeat(3_000));
    assert_eq!(says(&nots, Some(Postgres)), "unread");
    let selects = "select 1; ".repeat(1_000);
    assert_eq!(says(&selects, None), "select");
}

#[test]
fn an_operator_ends_where_the_database_ends_it() {
    for text in [
        "select int4range(1,2) &>-- '\n int4range(1,3); drop table t -- '",
        "select a ?-- '\n 'a'; drop table t -- '",
        "select a ->/* '\n */ 'a'; drop table t -- '",
        "select a *-- '\n b; drop table t -- '",
        "select a @@@ b",
        "select a ||-1",
        "select {a}",
    ] {
        for dialect in [None, Some(Postgres), Some(MySql), Some(Sqlite)] {
            assert_eq!(says(text, dialect), "unread", "{dialect:?} {text}");
        }
    }
    // One word to the parser each, or no text is read with it.
    for operator in plain::OPERATORS.iter().chain(plain::OF_POSTGRES) {
        let text = format!("select a {operator} b, c {operator} -d from t");
        let said = says(&text, Some(Postgres));
        let unary = ["~", "!", "@", "|/", "||/", "#", "=>", "<=>"].contains(operator);
        assert!(said != "unread" || unary, "{operator}");
    }
    all_say(
        &[
            ("select a+1, b*-2, -c, a<-1, d>=e, f||g, h%2, (a)-(b), 2.5e-3*.5 from t", "select on t"),
            ("select data->'a'->>'b', t.*, count(*) from t where x!=1 and y<> -2", "select on t"),
            ("select a from t -- '\n where b = 1 /* ' */ and c = 2", "select on t"),
            ("select a from t where b = 1\r\n -- the end\r\n and c = 2", "select on t"),
        ],
        &[None, Some(Postgres), Some(MySql), Some(Sqlite)],
    );
    all_say(
        &[
            (
                "select a::text, b[1], c[1:2], $1::int, d ~ '^x', e !~* 'y', f @> '{}', g #>> '{a}' from t",
                "select on t",
            ),
            ("select b ? 'k', c ?| array['a'], d && e --no blank", "select"),
        ],
        &[Some(Postgres)],
    );
}

#[test]
fn a_variable_ends_where_the_database_ends_it() {
    for text in [
        "select :a::enum('); drop table t -- ')",
        "select :a(') , load_file('); drop table t -- ')",
        "select @a('); drop table t -- ')",
        "select $1('); drop table t -- ')",
        "select $a::b('); drop table t -- ')",
        "select #a('); drop table t -- ')",
        "select a::int",
    ] {
        for dialect in [None, Some(MySql), Some(Sqlite)] {
            assert_eq!(says(text, dialect), "unread", "{dialect:?} {text}");
        }
    }
    all_say(&[("select a from t where b = :b and c = ? limit :n", "select on t")], &[Some(MySql), Some(Sqlite)]);
    all_say(&[("select @@version, @x, a from t where b = ?", "select on t")], &[Some(MySql)]);
}

#[test]
fn nothing_that_is_repeated_brings_the_parser_down() {
    for text in [
        format!("select * from t {}", "join t ".repeat(1_300)),
        format!("select * from t {}{}", "left join t ".repeat(600), "on true ".repeat(600)),
        format!("select * from t {}", "natural join t ".repeat(1_300)),
        format!("select {}]", "[".repeat(60_000)),
        format!("select {}", "'".repeat(60_001)),
        format!("select {}", "$a".repeat(30_000)),
        format!("select {}", "/*".repeat(30_000)),
    ] {
        let start = std::time::Instant::now();
        for dialect in [None, Some(Postgres), Some(MySql), Some(Sqlite)] {
            assert_eq!(says(&text, dialect), "unread", "{dialect:?} {:.40}", text);
        }
        assert!(start.elapsed().as_secs() < 4, "{:.40}: {:?}", text, start.elapsed());
    }
    let joins = format!("select * from t {}", "join u on a = b ".repeat(MAX_JOINS));
    assert_eq!(says(&joins, None), "select on t u");
}

#[test]
fn a_definition_names_every_table_that_it_touches_or_is_more() {
    all_say(
        &[
            ("create table t (a int primary key, b text not null default 'x', c int references u (id))", "ddl on t u"),
            ("create table t (a int, foreign key (a) references u (id) on delete cascade)", "ddl other on t u"),
            ("alter table t add constraint k foreign key (a) references u (id)", "ddl on t u"),
            ("alter table t add column b int references u (id)", "ddl on t u"),
            ("alter table t rename to u", "ddl on t u"),
            ("alter table t rename column a to b", "ddl on t"),
            ("alter table t drop column a", "ddl on t"),
        ],
        &[Some(Postgres), Some(MySql), Some(Sqlite)],
    );
    all_say(
        &[
            ("create table t as select * from u", "select ddl on t u"),
            ("alter table t owner to eve", "ddl dcl on t"),
            ("alter table t disable row level security", "ddl dcl on t"),
            ("drop table t cascade", "ddl other on t"),
            ("truncate t cascade", "delete other on t"),
            ("set session_authorization = 'eve'", "dcl set"),
            ("reset role", "dcl set"),
            ("set search_path = x", "set"),
        ],
        &[Some(Postgres)],
    );
    all_say(
        &[
            ("create table t (a int) engine=innodb default charset=utf8mb4", "ddl on t"),
            ("create table t (a int) engine=federated connection='mysql://x/d/u'", "ddl other on t"),
            ("set password = 'x'", "dcl set"),
            ("update ignore users set a = 1", "update other on ignore"),
            ("update low_priority users set a = 1", "update other on low_priority"),
            ("update `ignore` set a = 1", "update on ignore"),
        ],
        &[Some(MySql)],
    );
    for (text, dialect) in [
        ("create table t () inherits (u)", Postgres),
        ("create table t (like u)", Postgres),
        ("create table t partition of u for values in (1)", Postgres),
        ("alter table t inherit u", Postgres),
        ("alter table t attach partition u for values in (1)", Postgres),
        ("alter table t disable trigger all", Postgres),
        ("set role = admin", Postgres),
        ("create table t like u", MySql),
        ("create table t (a int) engine=merge union=(u,v)", MySql),
    ] {
        let said = says(text, Some(dialect));
        assert!(said == "unread" || said.contains("other") || said.contains("dcl"), "{text}: {said}");
    }
}

#[test]
fn a_later_name_hides_a_table_only_where_the_database_lets_it() {
    let text = "with recursive x as (select * from users), users as (select 1) select * from x";
    for (dialect, said) in [(Some(MySql), "select on users"), (None, "unread"), (Some(Postgres), "select")] {
        assert_eq!(says(text, dialect), said, "{dialect:?}");
    }
    let own = "with recursive x as (select 1 as n union all select n + 1 from x where n < 9) select * from x";
    all_say(&[(own, "select")], &[None, Some(Postgres), Some(MySql), Some(Sqlite)]);
}

#[test]
fn a_function_is_pure_only_where_the_database_has_it() {
    all_say(
        &[
            (
                "select now(), date_trunc('day', a), strpos(a, 'b'), random(), replace(a, 'b', 'c') from t",
                "select on t",
            ),
            ("select total(a), hex(a) from t", "select call on t"),
            ("select * from fsdir", "select on fsdir"),
        ],
        &[Some(Postgres)],
    );
    all_say(
        &[("select now(), rand(), hex(a), mid(a, 1) from t", "select on t"), ("select strpos(a, 'b')", "select call")],
        &[Some(MySql)],
    );
    all_say(
        &[
            ("select total(a), strftime('%s', 'now'), sqlite_version() from t", "select on t"),
            ("select now()", "select call"),
            ("select * from fsdir", "select call on fsdir"),
            ("select * from pragma_database_list", "select call on pragma_database_list"),
            ("select * from sqlite_master", "select on sqlite_master"),
            ("select * from main.fsdir where path = '/etc/passwd'", "select call on main.fsdir"),
            ("select * from temp.fsdir", "select call on temp.fsdir"),
            ("select * from \"main\".\"fsdir\"", "select call on main.fsdir"),
            ("select * from main.sqlite_dbpage", "select call on main.sqlite_dbpage"),
            ("select * from main.pragma_database_list", "select call on main.pragma_database_list"),
            ("select * from main.sqlite_master", "select on main.sqlite_master"),
        ],
        &[Some(Sqlite)],
    );
    assert_eq!(says("select total(a) from t", None), "unread");
    assert_eq!(says("select * from fsdir", None), "unread");
}

/// Each of the first list was run by PostgreSQL 15.
#[test]
fn a_dot_may_call_a_function() {
    all_say(
        &[
            ("select ('PG_VERSION'::text).pg_read_file", "select call"),
            ("select (1.5::float8).pg_sleep", "select call"),
            ("select ('s'::regclass).nextval", "select call"),
            ("select a[1].pg_read_file from t", "select call on t"),
            ("select (select u from users u).wipe", "select call on users"),
            ("select f.pg_read_file from upper('PG_VERSION') f", "select call on upper"),
            ("select upper.pg_read_file from upper('PG_VERSION')", "select call on upper"),
            ("select f.pg_read_file from upper('PG_VERSION') as f(x)", "select call on upper"),
            ("select f.pg_read_file from lateral upper('PG_VERSION') f", "select call"),
            ("select f.lo_import from unnest(array['/etc/hostname']) f", "select call"),
            ("update t set a = f.pg_sleep from abs(9) f", "update call on abs t"),
            ("update t set a = 1 where ('s'::regclass).nextval > 1", "update call on t"),
            ("delete from t using upper('x') f where f.pg_read_file = ''", "delete call on t upper"),
            ("insert into t select f.pg_read_file from upper('x') f", "select insert call on t upper"),
            ("select t.a from t union select t.pg_read_file from upper('x') t", "select call on t upper"),
            ("select f.x, f.\"X\" from upper('a') as f(x)", "select call on upper"),
            ("select nobody.pg_read_file from t", "select call on t"),
        ],
        &[Some(Postgres)],
    );
    all_say(
        &[
            (
                "select u.id, u.name, o.total from users u join sales.orders as o on o.user_id = u.id",
                "select on sales.orders users",
            ),
            ("select users.id, public.users.name from public.users", "select on public.users"),
            ("select x.a from (select 1 as a) x", "select"),
            ("with w as (select 1 as a) select w.a from w", "select"),
            ("select t.list[1], list[1] from t", "select on t"),
            ("select g.n from generate_series(1, 9) as g(n)", "select on generate_series"),
            ("select e.key, e.value from t, jsonb_each(t.data) e", "select on jsonb_each t"),
            ("select e.a, e.nr from unnest(array[1]) with ordinality as e(a, nr)", "select"),
            (
                "insert into t as x (a) values (1) on conflict (a) do update set b = x.b + excluded.b",
                "insert update on t",
            ),
            ("update t set a = s.a from s where s.id = t.id", "update on s t"),
            ("select t.* from t where exists (select 1 from s where s.id = t.id)", "select on s t"),
        ],
        &[Some(Postgres)],
    );
    for text in ["select (a).b from t", "select f.b from json_each('{}') f"] {
        assert_eq!(says(text, None), "unread", "{text}");
    }
    assert_eq!(says("select f.key from json_each('{}') f", Some(Sqlite)), "select on json_each");
    all_say(&[("select u.id from users u where u.a = 1", "select on users")], &[None, Some(MySql), Some(Sqlite)]);
}

#[test]
fn looking_at_what_there_is_is_a_kind_of_its_own() {
    all_say(
        &[
            ("pragma table_info(users)", "show on users"),
            ("PRAGMA main.table_info('users');", "show on users"),
            ("pragma database_list", "show"),
            ("pragma user_version", "show"),
            ("pragma user_version = 1", "set other"),
            ("pragma database_list; drop table t", "ddl set other on t"),
        ],
        &[Some(Sqlite)],
    );
    all_say(
        &[
            ("show databases", "show"),
            ("show tables", "show"),
            ("show create table users", "show on users"),
            ("describe users", "show on users"),
            ("show columns from users", "show on users"),
        ],
        &[Some(MySql)],
    );
    all_say(&[("show search_path", "show"), ("set role x", "dcl set")], &[Some(Postgres)]);
    for writes in ["pragma journal_mode(off)", "pragma wal_checkpoint", "pragma table_info(load_extension('x'))"] {
        assert!(!says(writes, Some(Sqlite)).contains("show"), "{writes}");
    }
}
