//! The walk through a parsed shell text: which commands it runs, and where.

use brush_parser::ast::{
    self, AndOr, CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect,
    Pipeline, SeparatorOperator, UnaryPredicate,
};
use brush_parser::{ParserOptions, Token, parse_tokens, uncached_tokenize_str};

use super::flow::{Bases, Flow};
use super::simple::{Given, Walk};
use super::words::{Word, is_plain};
use super::{Command, Place, check, not_understood};
use crate::record::Access;

/// Levels of scripts within scripts.
const MAX_DEPTH: usize = 32;
/// What parts commands (`;`, `&&`, a line's end, a bracket), in one text: four times the commands that are looked at.
const MAX_SEPARATORS: usize = 2_048;

/// Parses a text; `Err` says why it cannot be.
fn parse(text: &str) -> Result<ast::Program, String> {
    let tokens = uncached_tokenize_str(text, &ParserOptions::default().tokenizer_options())
        .map_err(|error| format!("the shell text cannot be parsed: {error}"))?;
    let separates = |token: &&Token| matches!(token, Token::Operator(sign, _) if !sign.contains(['<', '>']));
    if tokens.iter().filter(separates).count() > MAX_SEPARATORS {
        return Err("the shell text has more commands than are looked at".to_owned());
    }
    parse_tokens(&tokens, &ParserOptions::default()).map_err(|_| "the shell text cannot be parsed".to_owned())
}

impl Walk {
    /// A whole shell text: both parsers must see the same commands in it.
    pub fn script(&mut self, text: &str, bases: &Bases) -> Flow {
        if let Some(words) = plain_words(text) {
            return self.run(words, self.given(), bases);
        }
        let outer = std::mem::take(&mut self.names);
        let flow = self.part(text, bases);
        let seen = std::mem::replace(&mut self.names, outer);
        if flow.is_some() && !self.is_spent() && !check::agrees(text, seen) {
            self.push(Command::not_understood(text, "two readings of the shell text do not agree"));
        }
        flow.unwrap_or_else(|| Flow::same(&Bases::unknown()))
    }

    /// A text that runs inside another, in a shell of its own.
    pub fn substitution(&mut self, text: &str, bases: &Bases) {
        self.part(text, bases);
    }

    fn part(&mut self, text: &str, bases: &Bases) -> Option<Flow> {
        if self.depth >= MAX_DEPTH {
            self.push(Command::not_understood(text, "scripts within scripts, too deep"));
            return None;
        }
        let program = match parse(text) {
            Ok(program) => program,
            Err(why) => {
                self.push(Command::not_understood(text, &why));
                return None;
            }
        };
        self.walked += text.len();
        self.depth += 1;
        let mut flow = Flow::same(bases);
        for list in &program.complete_commands {
            flow = self.list(list, &flow.any());
        }
        self.depth -= 1;
        Some(flow)
    }

    pub fn list(&mut self, list: &CompoundList, bases: &Bases) -> Flow {
        let mut flow = Flow::same(bases);
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            let before = flow.any();
            let after = self.and_or(and_or, &before);
            self.unordered |= matches!(separator, SeparatorOperator::Async);
            flow = if matches!(separator, SeparatorOperator::Async) { Flow::same(&before) } else { after };
        }
        flow
    }

    fn and_or(&mut self, list: &ast::AndOrList, bases: &Bases) -> Flow {
        let mut flow = self.pipeline(&list.first, bases);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) => {
                    let then = self.pipeline(pipeline, &flow.ok);
                    flow = Flow { ok: then.ok, err: flow.err.or(&then.err) };
                }
                AndOr::Or(pipeline) => {
                    let then = self.pipeline(pipeline, &flow.err);
                    flow = Flow { ok: flow.ok.or(&then.ok), err: then.err };
                }
            }
        }
        flow
    }

    fn pipeline(&mut self, pipeline: &Pipeline, bases: &Bases) -> Flow {
        if pipeline.timed.is_some() {
            self.names.push("time".to_owned());
            // The other parser takes it for a program, and what it runs for an argument.
            self.told = true;
            self.push(Command {
                tabled: true,
                ..super::simple::command(&[Word::literal("time")], self.given(), bases)
            });
        }
        let flow = match pipeline.seq.as_slice() {
            [one] => self.command(one, bases),
            many => {
                self.unordered = true;
                for command in many {
                    self.command(command, bases);
                }
                Flow::same(bases)
            }
        };
        if pipeline.timed.is_some() {
            // Where it is a program, the shell itself stays as it was.
            let flow = Flow::same(&flow.any().or(bases));
            self.told = false;
            return flow;
        }
        if pipeline.bang { Flow { ok: flow.err, err: flow.ok } } else { flow }
    }

    fn command(&mut self, command: &ast::Command, bases: &Bases) -> Flow {
        if !self.spend(&[]) {
            return Flow::same(bases);
        }
        match command {
            ast::Command::Simple(simple) => self.simple(simple, bases),
            ast::Command::Compound(compound, redirects) => {
                self.redirected(redirects.as_ref(), bases);
                self.compound(compound, bases)
            }
            ast::Command::Function(function) => {
                self.floor("a function can take the place of a command");
                self.redirected(function.body.1.as_ref(), bases);
                self.compound(&function.body.0, bases);
                Flow::same(bases)
            }
            ast::Command::ExtendedTest(test, redirects) => {
                self.redirected(redirects.as_ref(), bases);
                self.extended_test(&test.expr, bases);
                Flow::same(bases)
            }
        }
    }

    /// The redirects of something that is no simple command.
    fn redirected(&mut self, redirects: Option<&ast::RedirectList>, bases: &Bases) {
        let mut given = self.given();
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, &mut given, bases);
        }
        self.finish(Vec::new(), given, bases);
    }

    fn compound(&mut self, compound: &CompoundCommand, bases: &Bases) -> Flow {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, bases),
            CompoundCommand::Subshell(subshell) => {
                self.list(&subshell.list, bases);
                Flow::same(bases)
            }
            CompoundCommand::IfClause(clause) => {
                let condition = self.list(&clause.condition, bases);
                let mut after = self.list(&clause.then, &condition.ok).any();
                let mut untaken = condition.err;
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        let condition = self.list(condition, &untaken);
                        after = after.or(&self.list(&other.body, &condition.ok).any());
                        untaken = condition.err;
                    } else {
                        untaken = self.list(&other.body, &untaken).any();
                    }
                }
                Flow::same(&after.or(&untaken))
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                let condition = self.list(&clause.0, bases);
                let after = self.list(&clause.1.list, &condition.any()).any();
                self.repeated(bases, &after.or(&condition.any()))
            }
            CompoundCommand::ForClause(clause) => {
                if let Some(values) = plain_values(clause) {
                    return self.unrolled(clause, &values, bases);
                }
                self.bind(&clause.variable_name, None);
                self.floor("a loop sets a variable");
                let values = clause.values.iter().flatten().map(|word| word.value.as_str());
                self.only_words(values, bases);
                let after = self.list(&clause.body.list, bases).any();
                self.repeated(bases, &after)
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let parts = [&clause.initializer, &clause.condition, &clause.updater];
                self.arithmetic(parts.into_iter().flatten().map(|part| part.value.as_str()), bases);
                let after = self.list(&clause.body.list, bases).any();
                self.repeated(bases, &after)
            }
            CompoundCommand::Arithmetic(command) => {
                self.arithmetic([command.expr.value.as_str()], bases);
                self.floor("`((`, which other shells read as commands");
                Flow::same(bases)
            }
            CompoundCommand::CaseClause(clause) => {
                let patterns = clause.cases.iter().flat_map(|case| &case.patterns);
                let words = std::iter::once(&clause.value).chain(patterns).map(|word| word.value.as_str());
                self.only_words(words, bases);
                let mut after = bases.clone();
                for case in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    // One case can fall through to the next.
                    after = after.or(&self.list(case, &after).any());
                }
                Flow::same(&after)
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.floor("a coprocess");
                self.command(&coprocess.body, bases);
                Flow::same(bases)
            }
        }
    }

    /// A loop over words that mean themselves: its body with each of them.
    fn unrolled(&mut self, clause: &ast::ForClauseCommand, values: &[String], bases: &Bases) -> Flow {
        let mut at = bases.clone();
        let name = &clause.variable_name;
        let mut after_first = None;
        for value in values {
            if self.is_spent() {
                break;
            }
            self.bind(name, Some(value.clone()));
            at = self.list(&clause.body.list, &at).any();
            // The text has the body once.
            self.names.truncate(*after_first.get_or_insert(self.names.len()));
        }
        if values.is_empty() {
            self.list(&clause.body.list, &at);
        }
        self.bind(name, None);
        let unordered = self.unordered;
        let flow = self.repeated(bases, &at);
        // Its rounds were looked at one after the other.
        self.unordered = unordered;
        flow
    }

    /// What runs again may run where it was left the first time.
    fn repeated(&mut self, before: &Bases, after: &Bases) -> Flow {
        self.unordered = true;
        if before.or(after) == *before {
            return Flow::same(before);
        }
        self.floor("a loop changes the directory");
        Flow::same(&Bases::unknown())
    }

    fn arithmetic<'a>(&mut self, expressions: impl IntoIterator<Item = &'a str>, bases: &Bases) {
        let mut given = self.given();
        for expression in expressions {
            given.met.arithmetic(expression);
        }
        self.finish(Vec::new(), given, bases);
    }

    /// Words that no command is given.
    fn only_words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>, bases: &Bases) {
        let mut given = self.given();
        for word in words {
            given.met.word(word);
        }
        self.finish(Vec::new(), given, bases);
    }

    fn extended_test(&mut self, expression: &ExtendedTestExpr, bases: &Bases) {
        let mut given = self.given();
        test(expression, &mut given);
        self.finish(vec![Word::literal("[[")], given, bases);
    }

    /// Adds what a redirect names.
    pub fn redirect(&mut self, redirect: &IoRedirect, given: &mut Given, bases: &Bases) {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                    self.list(&subshell.list, bases);
                }
                IoFileRedirectTarget::Filename(word) => given.redirected(&word.value, accesses(kind)),
                IoFileRedirectTarget::Duplicate(word) => {
                    let digits = word.value.trim_end_matches('-');
                    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                        given.redirected(&word.value, accesses(kind));
                    }
                }
            },
            IoRedirect::OutputAndError(word, _) => given.redirected(&word.value, &[Access::Write]),
            IoRedirect::HereString(_, word) => {
                given.met.word(&word.value);
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    given.met.here_document(&document.doc.value);
                }
            }
        }
    }
}

fn accesses(kind: &IoFileRedirectKind) -> &'static [Access] {
    match kind {
        IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => &[Access::Read],
        IoFileRedirectKind::Write
        | IoFileRedirectKind::Append
        | IoFileRedirectKind::Clobber
        | IoFileRedirectKind::DuplicateOutput => &[Access::Write],
        IoFileRedirectKind::ReadAndWrite => &[Access::Read, Access::Write],
    }
}

/// The words of a text that has no character which any shell reads as anything but itself.
pub(super) fn plain_words(text: &str) -> Option<Vec<Word>> {
    const RESERVED: [&str; 17] = [
        "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select",
        "function", "time", "coproc", "in",
    ];
    let parts = || text.split([' ', '\t']).filter(|word| !word.is_empty());
    let first = parts().next()?;
    // `=` sets a variable in the first word, and names a program at the start of any (zsh).
    let is_plain_later =
        |word: &str| !word.starts_with('=') && word.split('=').all(|part| part.is_empty() || is_plain(part));
    if RESERVED.contains(&first) || !is_plain(first) || !parts().skip(1).all(is_plain_later) {
        return None;
    }
    Some(parts().map(Word::literal).collect())
}

/// The values of a loop, if they and its variable are nothing but plain words.
fn plain_values(clause: &ast::ForClauseCommand) -> Option<Vec<String>> {
    const MOST: usize = 32;
    // Shells tie some names to what they do (zsh: `path`), and programs read others (`http_proxy`).
    const TIED: [&str; 8] = ["path", "fpath", "cdpath", "argv", "status", "prompt", "options", "aliases"];
    let name = clause.variable_name.as_str();
    let harmless = name.len() <= 8 && name.bytes().all(|byte| byte.is_ascii_lowercase()) && !TIED.contains(&name);
    let values = clause.values.as_ref().filter(|values| harmless && values.len() <= MOST)?;
    values.iter().map(|value| is_plain(&value.value).then(|| value.value.clone())).collect()
}

/// `[[ … ]]`: files are looked at, numbers and variable names can be code.
fn test(expression: &ExtendedTestExpr, given: &mut Given) {
    match expression {
        ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
            // Shells that do not know `[[` run what follows; no program begins with `-`. The tree does not tell `-n x`
            // from `x`.
            let begins_with_option = |test: &ExtendedTestExpr| match test {
                ExtendedTestExpr::UnaryTest(predicate, _) => {
                    !matches!(predicate, UnaryPredicate::StringHasNonZeroLength)
                }
                _ => false,
            };
            if !begins_with_option(b) {
                given.floors.push(not_understood("a test that other shells read as commands"));
            }
            test(a, given);
            test(b, given);
        }
        ExtendedTestExpr::Not(inner) => test(inner, given),
        ExtendedTestExpr::Parenthesized(inner) => {
            given.floors.push(not_understood("a test that other shells read as commands"));
            test(inner, given);
        }
        ExtendedTestExpr::UnaryTest(predicate, word) => match predicate {
            UnaryPredicate::StringHasZeroLength | UnaryPredicate::StringHasNonZeroLength => {
                given.met.word(&word.value);
            }
            UnaryPredicate::ShellVariableIsSetAndAssigned
            | UnaryPredicate::ShellVariableIsSetAndNameRef
            | UnaryPredicate::ShellOptionEnabled
            | UnaryPredicate::FdIsOpenTerminal => {
                given.met.word(&word.value);
                given.floors.push(not_understood("a test can evaluate data as code"));
            }
            _ => given.redirected(&word.value, &[Access::Read]),
        },
        ExtendedTestExpr::BinaryTest(predicate, a, b) => {
            let words = [given.met.word(&a.value), given.met.word(&b.value)];
            if [a, b].iter().any(|word| word.value.contains(['|', '&', ';', '<', '>', '('])) {
                given.floors.push(not_understood("a test that other shells read as commands"));
            }
            let kind = format!("{predicate:?}");
            if kind.contains("Sorts") {
                given.floors.push(not_understood("a test that other shells read as a redirect"));
            }
            if kind.starts_with("Arithmetic") {
                let number = |word: &Word| word.known().is_some_and(|text| text.parse::<i64>().is_ok());
                if !words.iter().all(number) {
                    given.floors.push(not_understood("a comparison can evaluate data as code"));
                }
            } else if kind.contains("File") {
                for word in words {
                    match word.known() {
                        Some(text) => given.places.push(Place::read(text)),
                        None => given.floors.push(not_understood("a path that only a running shell knows")),
                    }
                }
            }
        }
    }
}
