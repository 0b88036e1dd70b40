//! One word of a shell text: what the program is given, and what runs while the word is put together.

use brush_parser::ParserOptions;
use brush_parser::word::{
    Parameter, ParameterExpr, ParameterTransformOp, WordPiece, WordPieceWithSource, parse, parse_heredoc,
};

use super::{Argument, not_understood};
use crate::facet::Floor;

/// A word as far as it can be told without running it.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// With quotes removed, unknown parts as they were written.
    pub text: String,
    /// Whether the text is what the program is given.
    pub known: bool,
    /// Whether it may become several words, or none.
    pub splits: bool,
    /// What stands before the first part that is not known.
    pub prefix: String,
    /// Whether what is not known of it are names of files that it stands for (`docs/*.md`).
    pub pattern: bool,
}

impl Word {
    /// A word that no shell reads.
    pub fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), known: true, prefix: text.to_owned(), ..Self::default() }
    }

    /// A word that something else puts in.
    pub fn unknown(text: &str) -> Self {
        Self { text: text.to_owned(), splits: true, ..Self::default() }
    }

    /// A word that something else puts in: the name of a file below this folder.
    pub fn below(text: &str, folder: &str) -> Self {
        Self { text: text.to_owned(), splits: true, prefix: format!("{folder}/"), pattern: true, ..Self::default() }
    }

    pub fn argument(&self) -> Argument {
        Argument { text: self.text.clone(), known: self.known }
    }

    /// The text, if the program is given just that.
    pub fn known(&self) -> Option<&str> {
        self.known.then_some(self.text.as_str())
    }

    /// The rest of the word after `at` bytes of what is known of it.
    pub fn after(&self, at: usize) -> Self {
        let cut = |text: &str| text.get(at..).unwrap_or_default().to_owned();
        Self { text: cut(&self.text), prefix: cut(&self.prefix), ..*self }
    }
}

/// Words as one text.
pub(super) fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Variables of loops over plain words; the last of a name counts, and none stands for what is not known.
pub(super) type Bindings = Vec<(String, Option<String>)>;

/// Whether no shell reads anything but itself into a text, wherever it stands.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_plain_byte)
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./:@%+,-".contains(&byte)
}

/// What was met in words.
#[derive(Debug, Default)]
pub(super) struct Met {
    pub bindings: Bindings,
    /// Texts that the shell runs to put words together.
    pub scripts: Vec<String>,
    pub floors: Vec<Floor>,
    /// Reads braces and `$'…'` as a shell does that knows neither (POSIX sh, dash): as themselves.
    pub posix: bool,
    /// Whether such a shell reads a word otherwise.
    pub differs: bool,
}

impl Met {
    fn floor(&mut self, why: &str) {
        self.floors.push(not_understood(why));
    }

    /// Reads a word as it stands in the text, which may be several: `a{b,c}`.
    pub fn words(&mut self, raw: &str, words: &mut Vec<Word>) {
        let braces = alternatives(raw);
        self.differs |= braces.is_some();
        match braces.filter(|_| !self.posix) {
            Some(all) => words.extend(all.iter().filter(|raw| !raw.is_empty()).map(|raw| self.word(raw))),
            None => words.push(self.word(raw)),
        }
    }

    /// Reads a word as it stands in the text.
    pub fn word(&mut self, raw: &str) -> Word {
        if is_plain(raw) {
            return Word::literal(raw);
        }
        // `{f}>file` sets a variable.
        if !self.bindings.is_empty() && raw.starts_with('{') && raw.ends_with('}') {
            self.floor("a redirect that may set a variable");
        }
        let mut reading = Reading {
            met: self,
            word: Word { known: true, ..Word::default() },
            plain: String::new(),
            adjacent: String::new(),
            unpatterned: false,
        };
        match parse(raw, &ParserOptions::default()) {
            Ok(pieces) => reading.pieces(&pieces, false),
            Err(_) => {
                reading.met.floor("a word cannot be read");
                reading.unknown(raw, true);
            }
        }
        reading.expanded_later();
        reading.word
    }

    /// Reads the body of a here-document that the shell expands.
    pub fn here_document(&mut self, raw: &str) {
        match parse_heredoc(raw, &ParserOptions::default()) {
            Ok(pieces) => {
                let word = Word::default();
                Reading { met: self, word, plain: String::new(), adjacent: String::new(), unpatterned: false }
                    .pieces(&pieces, true);
            }
            Err(_) => self.floor("a here-document cannot be read"),
        }
    }

    /// Reads an arithmetic expression: only literals are no code.
    pub fn arithmetic(&mut self, raw: &str) {
        self.here_document(raw);
        let literal = |c: char| c.is_ascii_digit() || " \t\n+-*/%<>=!&|^~?:,()".contains(c);
        if !raw.chars().all(literal) {
            self.floor("an arithmetic expression can evaluate data as code");
        }
    }
}

struct Reading<'a> {
    met: &'a mut Met,
    word: Word,
    /// The unquoted text, other pieces as a NUL.
    plain: String,
    /// Adjacent texts, for the parser parts what it does not understand.
    adjacent: String,
    /// Whether something is not known for another reason than a pattern.
    unpatterned: bool,
}

impl Reading<'_> {
    fn known(&mut self, text: &str) {
        if self.word.known {
            self.word.prefix.push_str(text);
        }
        self.word.text.push_str(text);
    }

    fn unknown(&mut self, shown: &str, splits: bool) {
        self.word.text.push_str(shown);
        self.word.known = false;
        self.word.splits |= splits;
        self.word.pattern = false;
        self.unpatterned = true;
    }

    /// The value of a variable that a loop sets.
    fn bound(&self, expression: &ParameterExpr) -> Option<String> {
        let ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } = expression else {
            return None;
        };
        self.met.bindings.iter().rev().find(|(known, _)| known == name)?.1.clone()
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool) {
        for piece in pieces {
            self.piece(&piece.piece, quoted);
        }
    }

    fn piece(&mut self, piece: &WordPiece, quoted: bool) {
        if !matches!(piece, WordPiece::Text(_)) {
            self.plain.push('\0');
            self.adjacent.clear();
        }
        match piece {
            WordPiece::Text(text) => self.text(text, quoted),
            WordPiece::SingleQuotedText(text) => self.known(text),
            WordPiece::EscapeSequence(escape) => match escape.strip_prefix('\\') {
                Some("\n") => {}
                Some(text) => self.known(text),
                None => self.known(escape),
            },
            WordPiece::DoubleQuotedSequence(pieces) => self.pieces(pieces, true),
            WordPiece::GettextDoubleQuotedSequence(pieces) => {
                self.met.floor("a text that is translated when it runs");
                self.pieces(pieces, true);
                self.unknown("", false);
            }
            WordPiece::AnsiCQuotedText(text) => {
                // Shells that do not know `$'…'` end it here, and run the rest.
                if text.contains("\\'") {
                    self.met.floor("a quote within `$'…'`, which not all shells read in one way");
                }
                self.met.differs = true;
                if self.met.posix {
                    self.known(&format!("${text}"));
                    return;
                }
                if let Some(text) = unescaped(text) {
                    self.known(&text);
                    return;
                }
                self.unknown(&format!("$'{text}'"), false);
            }
            WordPiece::TildeExpansion(_) => self.unknown("~", false),
            WordPiece::CommandSubstitution(script) => {
                self.unknown(&format!("$({script})"), !quoted);
                self.met.scripts.push(script.clone());
            }
            WordPiece::BackquotedCommandSubstitution(script) => {
                self.unknown(&format!("`{script}`"), !quoted);
                if script.contains('\\') {
                    self.met.floor("backslashes between backquotes");
                }
                self.met.scripts.push(script.clone());
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.unknown(&format!("$(({}))", expression.value), !quoted);
                self.met.arithmetic(&expression.value);
            }
            WordPiece::ParameterExpansion(parameter) => {
                if let Some(value) = self.bound(parameter) {
                    self.known(&value);
                    return;
                }
                self.parameter(parameter);
                self.unknown(&shown(parameter), !quoted);
            }
        }
    }

    fn text(&mut self, text: &str, quoted: bool) {
        self.adjacent.push_str(text);
        if misses_an_expansion(&self.adjacent) || (!quoted && text.contains(['\'', '"'])) {
            self.met.floor("a word cannot be read one way");
            self.unknown(text, true);
            return;
        }
        if quoted {
            self.plain.push('\0');
            self.known(text);
            return;
        }
        self.plain.push_str(text);
        if text != "[" && text.contains(['*', '?', '[']) {
            let at = text.find(['*', '?', '[']).unwrap_or_default();
            self.known(text.get(..at).unwrap_or_default());
            let patterned = !self.unpatterned;
            self.unknown(text.get(at..).unwrap_or_default(), true);
            self.unpatterned = !patterned;
            self.word.pattern = patterned;
        } else {
            self.known(text);
        }
    }

    /// What the shell does to the unquoted text as a whole.
    fn expanded_later(&mut self) {
        let plain = std::mem::take(&mut self.plain);
        let braces = plain.find('{').is_some_and(|at| {
            let inner = plain.get(at..).unwrap_or_default();
            inner.contains('}') && (inner.contains(',') || inner.contains(".."))
        });
        let braces = braces && !(self.met.posix && self.met.differs);
        let extended = plain.contains('(') || plain.contains(')');
        let tilde = plain.contains("=~") || plain.contains(":~");
        if braces || extended || tilde {
            self.word.pattern = false;
            self.word.known = false;
            self.word.splits = true;
            let at = self.word.text.find(['{', '(', '~']).unwrap_or_default();
            let prefix = self.word.text.get(..at).unwrap_or_default();
            if prefix.len() < self.word.prefix.len() {
                self.word.prefix = prefix.to_owned();
            }
        }
    }

    /// A text inside an expansion is a word of its own.
    fn inner(&mut self, text: Option<&String>) {
        if let Some(text) = text {
            if text.contains(['\'', '"', '\\']) {
                self.met.floor("quotes within an expansion, which not all shells read in one way");
            }
            self.met.word(text);
        }
    }

    fn parameter(&mut self, expression: &ParameterExpr) {
        use ParameterExpr as E;
        let (parameter, indirect) = match expression {
            E::Parameter { parameter, indirect } | E::ParameterLength { parameter, indirect } => (parameter, indirect),
            E::UseDefaultValues { parameter, indirect, default_value: inner, .. }
            | E::IndicateErrorIfNullOrUnset { parameter, indirect, error_message: inner, .. }
            | E::UseAlternativeValue { parameter, indirect, alternative_value: inner, .. }
            | E::RemoveSmallestSuffixPattern { parameter, indirect, pattern: inner }
            | E::RemoveLargestSuffixPattern { parameter, indirect, pattern: inner }
            | E::RemoveSmallestPrefixPattern { parameter, indirect, pattern: inner }
            | E::RemoveLargestPrefixPattern { parameter, indirect, pattern: inner }
            | E::UppercaseFirstChar { parameter, indirect, pattern: inner }
            | E::UppercasePattern { parameter, indirect, pattern: inner }
            | E::LowercaseFirstChar { parameter, indirect, pattern: inner }
            | E::LowercasePattern { parameter, indirect, pattern: inner } => {
                self.inner(inner.as_ref());
                (parameter, indirect)
            }
            E::AssignDefaultValues { parameter, indirect, default_value, .. } => {
                self.inner(default_value.as_ref());
                self.met.floor("an expansion that sets a variable");
                (parameter, indirect)
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, .. } => {
                self.inner(Some(pattern));
                self.inner(replacement.as_ref());
                (parameter, indirect)
            }
            E::Substring { parameter, indirect, offset, length } => {
                self.met.arithmetic(&offset.value);
                length.iter().for_each(|length| self.met.arithmetic(&length.value));
                (parameter, indirect)
            }
            E::Transform { parameter, indirect, op } => {
                if matches!(op, ParameterTransformOp::PromptExpand) {
                    self.met.floor("`@P` runs what a variable holds");
                }
                (parameter, indirect)
            }
            E::VariableNames { .. } | E::MemberKeys { .. } => return,
        };
        if *indirect {
            self.met.floor("an indirect expansion can evaluate data as code");
        }
        if let Parameter::NamedWithIndex { index, .. } = parameter {
            self.met.arithmetic(index);
        }
    }
}

/// The words that braces stand for (`a{b,c}`), where nothing else in the word means more than itself, and they are few.
fn alternatives(raw: &str) -> Option<Vec<String>> {
    const MOST: usize = 64;
    let plain = raw.bytes().all(|byte| is_plain_byte(byte) || b"{}=*?".contains(&byte));
    if !plain || !raw.contains('{') || !raw.contains(',') {
        return None;
    }
    let mut done = vec![String::new()];
    let mut rest = raw;
    while let Some((before, braces)) = rest.split_once('{') {
        let (mut depth, mut parts, mut start, mut end) = (1, Vec::new(), 0, None);
        for (at, c) in braces.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || (depth == 1 && c == ',') {
                parts.push(braces.get(start..at)?);
                start = at + 1;
            }
            if depth == 0 {
                end = Some(at);
                break;
            }
        }
        let [_, _, ..] = parts.as_slice() else { return None };
        let mut inner = Vec::new();
        for part in parts {
            match part.contains('{') {
                true => inner.extend(alternatives(part)?),
                false => inner.push(part.to_owned()),
            }
        }
        done = done.iter().flat_map(|done| inner.iter().map(move |part| format!("{done}{before}{part}"))).collect();
        if done.len() > MOST {
            return None;
        }
        rest = braces.get(end? + 1..)?;
    }
    Some(done.into_iter().map(|word| word + rest).collect())
}

/// What `$'…'` stands for; none where shells do not agree on it.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let code = |digits: &mut std::str::Chars<'_>, count: usize| {
            let taken: String = digits.as_str().chars().take(count).take_while(char::is_ascii_hexdigit).collect();
            *digits = digits.as_str().get(taken.len()..)?.chars();
            u32::from_str_radix(&taken, 16).ok()
        };
        plain.push(match c {
            '\\' => match rest.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                same @ ('\\' | '"' | '?') => same,
                // Beyond ASCII it is a byte, which not every locale takes for the same character.
                'x' => char::from_u32(code(&mut rest, 2)?).filter(|c| c.is_ascii() && *c != '\0')?,
                'u' => char::from_u32(code(&mut rest, 4)?).filter(|c| *c != '\0')?,
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

/// Whether a text that is said to be plain holds what a shell might expand.
fn misses_an_expansion(text: &str) -> bool {
    text.contains('`')
        || text.match_indices('$').any(|(at, _)| {
            let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
            next.is_some_and(|c| c.is_ascii_alphanumeric() || "_({['\"@*#?-$!".contains(c))
        })
}

/// An expansion as a person would recognise it.
fn shown(expression: &ParameterExpr) -> String {
    match expression {
        ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } => format!("${name}"),
        ParameterExpr::Parameter { parameter, .. } => parameter.to_string(),
        _ => "${…}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(raw: &str) -> (Word, Met) {
        let mut met = Met::default();
        (met.word(raw), met)
    }

    #[test]
    fn quotes_are_removed() {
        for (raw, text) in
            [("r''m", "rm"), ("'rm'", "rm"), ("\"a b\"", "a b"), ("a\\ b", "a b"), ("'$x `y`'", "$x `y`"), ("{}", "{}")]
        {
            let (word, met) = word(raw);
            assert_eq!(word.known(), Some(text), "{raw}");
            assert!(met.scripts.is_empty() && met.floors.is_empty(), "{raw}: {met:?}");
        }
    }

    #[test]
    fn what_runs_inside_a_word_is_found() {
        for raw in [
            "$(rm)",
            "`rm`",
            "\"x $(rm) y\"",
            "${X:-$(rm)}",
            "\"${X:=`rm`}\"",
            "$((1 + $(rm)))",
            "${X#$(rm)}",
            "${X/$(rm)/y}",
            "${X:$(rm)}",
        ] {
            let (word, met) = word(raw);
            assert!(!word.known, "{raw}");
            assert!(met.scripts.iter().any(|script| script == "rm"), "{raw}: {met:?}");
        }
    }

    #[test]
    fn data_that_is_evaluated_is_a_floor() {
        for raw in ["$((x))", "$[x]", "${x@P}", "${!x}", "${a[$i]}", "${a[x]}", "${x:=1}", "${ rm; }", "${x:y}"] {
            assert!(!word(raw).1.floors.is_empty(), "{raw}");
        }
        assert!(word("$((1+2))").1.floors.is_empty());
    }

    #[test]
    fn what_only_a_shell_can_tell_is_not_known() {
        for raw in ["*.md", "a?", "[ab]", "{a,b}", "{1..3}", "$x", "~", "~/x", "$'\\xff'", "a=~/x", "@(a|b)"] {
            assert!(!word(raw).0.known, "{raw}");
        }
        assert!(!word("\"$x\"").0.splits && word("$x").0.splits);
        assert_eq!(word("docs/*.md").0.prefix, "docs/");
    }
}
