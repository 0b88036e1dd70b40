//! What definitions of tables touch beside the table itself. Only what is listed here stays within tables that are named;
//! anything else goes beyond them.

use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{
    AlterTable, AlterTableOperation as Operation, ColumnOption, CreateTable, CreateTableLikeKind, CreateTableOptions,
    DropBehavior, ForeignKeyConstraint, ObjectName, ReferentialAction, RenameTableNameKind, TableConstraint,
};

/// What a definition touches.
#[derive(Default)]
pub(super) struct Reach<'a> {
    /// Tables beside its own.
    pub tables: Vec<&'a ObjectName>,
    /// Whether it changes who may do what.
    pub rights: bool,
    /// Whether it goes beyond the tables that it names.
    pub beyond: bool,
}

impl<'a> Reach<'a> {
    /// `CREATE TABLE`.
    pub fn of_create(table: &'a CreateTable) -> Self {
        let plain = CreateTableBuilder::new(table.name.clone())
            .temporary(table.temporary)
            .unlogged(table.unlogged)
            .if_not_exists(table.if_not_exists)
            .columns(table.columns.clone())
            .constraints(table.constraints.clone())
            .query(table.query.clone())
            .on_commit(table.on_commit)
            .sqlite_table_options(table.sqlite_table_options.clone())
            .table_options(table.table_options.clone())
            .hive_formats(table.hive_formats.clone().filter(|formats| *formats == Default::default()))
            .build();
        let beyond = plain != *table || !is_harmless(&table.table_options);
        let mut reach = Self { beyond, ..Self::default() };
        reach.tables.extend(table.inherits.iter().flatten().chain(&table.partition_of).chain(&table.clone));
        if let Some(CreateTableLikeKind::Parenthesized(like) | CreateTableLikeKind::Plain(like)) = &table.like {
            reach.tables.push(&like.name);
        }
        for column in &table.columns {
            reach.options(column.options.iter().map(|option| &option.option));
        }
        table.constraints.iter().for_each(|constraint| reach.constraint(constraint));
        reach
    }

    /// `ALTER TABLE`.
    pub fn of_alter(alter: &'a AlterTable) -> Self {
        let beyond = alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some();
        let mut reach = Self { beyond, ..Self::default() };
        alter.operations.iter().for_each(|operation| reach.operation(operation));
        reach
    }

    fn operation(&mut self, operation: &'a Operation) {
        match operation {
            Operation::AddColumn { column_def, .. } => {
                self.options(column_def.options.iter().map(|option| &option.option));
            }
            Operation::ChangeColumn { options, .. } | Operation::ModifyColumn { options, .. } => self.options(options),
            Operation::AddConstraint { constraint, .. } => self.constraint(constraint),
            Operation::DropColumn { drop_behavior, .. }
            | Operation::DropConstraint { drop_behavior, .. }
            | Operation::DropPrimaryKey { drop_behavior }
            | Operation::DropForeignKey { drop_behavior, .. } => {
                self.beyond |= *drop_behavior == Some(DropBehavior::Cascade);
            }
            Operation::RenameTable { table_name: RenameTableNameKind::As(name) | RenameTableNameKind::To(name) } => {
                self.tables.push(name);
            }
            Operation::RenameColumn { .. }
            | Operation::RenameConstraint { .. }
            | Operation::AlterColumn { .. }
            | Operation::DropIndex { .. }
            | Operation::Algorithm { .. }
            | Operation::Lock { .. } => {}
            Operation::OwnerTo { .. }
            | Operation::EnableRowLevelSecurity
            | Operation::DisableRowLevelSecurity
            | Operation::ForceRowLevelSecurity
            | Operation::NoForceRowLevelSecurity => self.rights = true,
            _ => self.beyond = true,
        }
    }

    fn options(&mut self, options: impl IntoIterator<Item = &'a ColumnOption>) {
        for option in options {
            match option {
                ColumnOption::ForeignKey(key) => self.key(key),
                ColumnOption::Null
                | ColumnOption::NotNull
                | ColumnOption::Default(_)
                | ColumnOption::PrimaryKey(_)
                | ColumnOption::Unique(_)
                | ColumnOption::Check(_)
                | ColumnOption::DialectSpecific(_)
                | ColumnOption::CharacterSet(_)
                | ColumnOption::Collation(_)
                | ColumnOption::Comment(_)
                | ColumnOption::OnUpdate(_)
                | ColumnOption::Generated { .. }
                | ColumnOption::Identity(_) => {}
                _ => self.beyond = true,
            }
        }
    }

    fn constraint(&mut self, constraint: &'a TableConstraint) {
        match constraint {
            TableConstraint::ForeignKey(key) => self.key(key),
            TableConstraint::Unique(_)
            | TableConstraint::PrimaryKey(_)
            | TableConstraint::Check(_)
            | TableConstraint::Index(_) => {}
            _ => self.beyond = true,
        }
    }

    /// What is deleted there may be deleted here.
    fn key(&mut self, key: &'a ForeignKeyConstraint) {
        use ReferentialAction::{NoAction, Restrict};
        self.tables.push(&key.foreign_table);
        let acts = [&key.on_delete, &key.on_update].into_iter().flatten();
        self.beyond |= acts.into_iter().any(|action| !matches!(action, NoAction | Restrict));
    }
}

/// Whether the options leave the rows of the table in the table: a `UNION`, a `CONNECTION` or another engine does not.
fn is_harmless(options: &CreateTableOptions) -> bool {
    const HARMLESS: [&str; 8] = [
        "engine=innodb",
        "charset=",
        "defaultcharset=",
        "characterset=",
        "collate=",
        "auto_increment=",
        "comment=",
        "row_format=",
    ];
    match options {
        CreateTableOptions::None => true,
        CreateTableOptions::Plain(options) => options.iter().all(|option| {
            let text = option.to_string().replace(' ', "").to_ascii_lowercase();
            HARMLESS.iter().any(|harmless| text.starts_with(harmless))
        }),
        _ => false,
    }
}
