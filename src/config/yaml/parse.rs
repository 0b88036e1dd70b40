//! Bytes → tree, refusing what two readers could take differently.

use std::collections::HashSet;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span, StrInput};

use super::{Core, Entry, Kind, Mark, Node, Report, Scalar};
use crate::pattern::is_invisible;

const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 32;

/// Reads one file. Without a node the text could not be read as YAML, and the report says why; with one, the report may
/// still hold errors.
pub fn read(file: &str, bytes: &[u8]) -> (Report, Option<Node>) {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err((at, message, help)) => {
            let mut report = Report::new(file, String::from_utf8_lossy(bytes));
            report.error(at, message).help(help);
            return (report, None);
        }
    };
    let mut report = Report::new(file, text);
    refuse_hidden(text, &mut report);
    let node = Builder::new(text, &mut report).document();
    (report, node)
}

/// UTF-8, with or without a byte-order mark, of a bearable size.
fn decode(bytes: &[u8]) -> Result<&str, (Mark, String, &'static str)> {
    if bytes.len() > MAX_BYTES {
        return Err((
            Mark::FILE,
            format!("the file is larger than {} KiB", MAX_BYTES >> 10),
            "split it into several files",
        ));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err((Mark::FILE, "the file begins with a UTF-16 byte-order mark".into(), "save it as UTF-8"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
        let mark = Mark {
            line: good.matches('\n').count() + 1,
            column: good.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1,
        };
        (mark, "the file is not UTF-8 here".into(), "save it as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Refuses characters that would let a file read otherwise than it looks (CVE-2021-42574), in comments too. Joiners and
/// emoji selectors are part of ordinary writing; a carriage return before a line feed is part of it. Alone it ends a line
/// for YAML, and shows none.
fn refuse_hidden(text: &str, report: &mut Report) {
    for (line, content) in (1..).zip(text.lines()) {
        let hidden = |c: char| is_invisible(c) && !matches!(c, '\t' | '\u{200c}' | '\u{200d}' | '\u{fe0f}');
        if let Some((column, c)) = (1..).zip(content.chars()).find(|(_, c)| hidden(*c)) {
            report
                .error(Mark { line, column }, format!("U+{:04X} stands here, which nobody can see", c as u32))
                .help("remove it, or write it as an escape in double quotes");
        }
    }
}

/// A syntax error; it is in the report.
struct Broken;

struct Builder<'s, 'r> {
    events: Parser<'s, StrInput<'s>>,
    report: &'r mut Report,
}

impl<'s, 'r> Builder<'s, 'r> {
    fn new(text: &'s str, report: &'r mut Report) -> Self {
        let options = granit_parser::options! {
            strict_indentation: true,
            disallow_directives: true,
            emit_unresolved_aliases: true,
            emit_comments: false,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        Self { events: Parser::new_from_str_with_options(text, options), report }
    }

    /// The one document of the stream.
    fn document(mut self) -> Option<Node> {
        let mut root = None;
        let mut documents = 0;
        loop {
            match self.next().ok()? {
                (Event::StreamEnd, _) => break,
                (Event::DocumentStart(..), at) => {
                    documents += 1;
                    if documents > 1 {
                        self.report.error(at, "a second document begins here").help("use one file for each");
                        return None;
                    }
                    let (event, at) = self.next().ok()?;
                    root = Some(self.node(event, at, None).ok()?);
                }
                _ => {}
            }
        }
        if root.is_none() {
            self.report.error(Mark::FILE, "the file is empty").help("write it, or remove it");
        }
        root
    }

    fn next(&mut self) -> Result<(Event<'s>, Mark), Broken> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, mark(span))),
            Some(Err(error)) => {
                let at = Mark { line: error.marker().line(), column: error.marker().col() + 1 };
                self.report.error(at, format!("not YAML: {}", error.info())).help(way_out(&error.info()));
                Err(Broken)
            }
            None => Ok((Event::StreamEnd, Mark::FILE)),
        }
    }

    /// The node that an event begins; `field` names the key it belongs to, for messages.
    fn node(&mut self, event: Event<'s>, at: Mark, field: Option<(&str, Mark)>) -> Result<Node, Broken> {
        let sound = self.check_properties(&event, at);
        let kind = match event {
            Event::Scalar(text, style, ..) => {
                let scalar = Scalar { text: text.into(), plain: style == ScalarStyle::Plain };
                if !sound {
                    Kind::Broken
                } else if scalar.core() == Core::Null {
                    match field {
                        Some((key, at)) => self.report.error(at, format!("`{key}` has no value")),
                        None => self.report.error(at, "there is no value here"),
                    };
                    self.report.help("write a value, or leave it out");
                    Kind::Broken
                } else {
                    Kind::Scalar(scalar)
                }
            }
            Event::SequenceStart(..) => Kind::Sequence(self.sequence()?),
            Event::MappingStart(..) => Kind::Mapping(self.mapping()?),
            _ => Kind::Broken,
        };
        Ok(Node { at, kind: if sound { kind } else { Kind::Broken } })
    }

    fn sequence(&mut self) -> Result<Vec<Node>, Broken> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(nodes),
                (event, at) => nodes.push(self.node(event, at, None)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Vec<Entry>, Broken> {
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(entries),
                (event, at) => self.key(event, at)?,
            };
            let (event, value_at) = self.next()?;
            let named = key.as_ref().map(|(key, at)| (&**key, *at));
            let value = self.node(event, value_at, named)?;
            let Some((key, at)) = key else { continue };
            if seen.insert(key.clone()) {
                entries.push(Entry { key, at, value });
            } else {
                self.report.error(at, format!("`{key}` is given twice")).help("keep one of them");
            }
        }
    }

    /// A key; none where it was refused.
    fn key(&mut self, event: Event<'s>, at: Mark) -> Result<Option<(Box<str>, Mark)>, Broken> {
        if let Event::Scalar(text, style, ..) = &event {
            let key = Scalar { text: (&**text).into(), plain: *style == ScalarStyle::Plain };
            if !self.check_properties(&event, at) {
                return Ok(None);
            }
            if key.plain && &*key.text == "<<" {
                self.report.error(at, "merge keys are not read: parsers differ on them").help("write the fields out");
                return Ok(None);
            }
            if key.core() == Core::Null {
                self.report.error(at, "a field without a name");
                return Ok(None);
            }
            return Ok(Some((key.text, at)));
        }
        let key = self.node(event, at, None)?;
        if key.kind != Kind::Broken {
            self.report.error(at, "a list or mapping cannot be the name of a field").help("write the name alone");
        }
        Ok(None)
    }

    /// Whether a node is free of what would make it mean more than it shows.
    fn check_properties(&mut self, event: &Event<'_>, at: Mark) -> bool {
        let found = match event {
            Event::Alias(_) => Some("aliases are not read".to_owned()),
            Event::UnresolvedAlias(name) => Some(format!("`*{name}` is an alias of nothing")),
            event if event.anchor_id().is_some_and(|id| id != 0) => Some("anchors are not read".to_owned()),
            _ => None,
        };
        if let Some(message) = &found {
            let help = match event {
                Event::UnresolvedAlias(name) => format!("if a text is meant, put it in quotes: \"*{name}\""),
                _ => "write the value out where it is needed, or put a text in quotes".into(),
            };
            self.report.error(at, message).help(&*help);
        }
        if let Some(tag) = event.tag() {
            let tag = tag.original();
            // An empty value stands behind its tag.
            let empty = matches!(event, Event::Scalar(text, ..) if text.is_empty());
            let before = if empty { tag.chars().count() } else { 0 };
            let at = Mark { column: at.column.saturating_sub(before).max(1), ..at };
            self.report
                .error(at, format!("tags such as `{tag}` are not read"))
                .help("remove the tag; a text that begins with `!` goes in quotes, and what a rule leaves out goes under `except`");
        }
        found.is_none() && event.tag().is_none()
    }
}

/// What to do about a syntax error, by the words of the parser.
fn way_out(info: &str) -> &'static str {
    const KNOWN: [(&str, &str); 9] = [
        ("simple key", "a blank is needed after the `:` of a field, as in `verdict: allow`"),
        ("tabs disallowed", "indent with spaces"),
        ("unexpected character", "a text that begins with a special character goes in quotes"),
        ("mapping values are not allowed", "a text with `: ` in it goes in quotes; else correct the indentation"),
        ("directives are disallowed", "remove the line"),
        ("unclosed bracket", "close it"),
        ("quoted scalar", "is a quote left open above? in double quotes, write `\\\\` for a backslash"),
        ("expected '-' indicator", "indent the fields of an entry alike, and begin each entry with `- `"),
        ("invalid indentation", "is a bracket or a quote left open above? else indent the line like its neighbours"),
    ];
    let known = KNOWN.iter().find(|(words, _)| info.contains(words));
    known.map_or("correct the indentation, and close quotes and brackets", |(_, help)| help)
}

fn mark(span: Span) -> Mark {
    Mark { line: span.start.line(), column: span.start.col() + 1 }
}
