//! How a field holds: three-valued, exactly where it loosens and widely where it tightens (policy.md, "How a field
//! holds").

use super::args::ArgTest;
use super::claimed::Claim;
use super::commands::{self, Running, WordsPattern};
use super::hosts::{self, HostPattern};
use super::judge::Subject;
use super::model::TOOLS_CALL;
use super::outlook::Prospect;
use super::recorded::{self, Recorded, unless};
use super::statements::{self, TablePattern};
use crate::catalog::Catalogue;
use crate::facet::{Part, SqlFacet, StatementKind};
use crate::pattern::{Location, NamePattern, PathPattern, Side};
use crate::record::{Access, Depth, Source, Verdict};

/// Kleene's three values; "and" is the smaller, "or" the larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Truth {
    False,
    Unknown,
    True,
}

impl From<bool> for Truth {
    fn from(known: bool) -> Self {
        if known { Self::True } else { Self::False }
    }
}

/// Whose fields are read, which fixes how they compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// An allow's: names as they are, the physical path.
    Allow,
    /// A deny's or an ask's: widely, on either path.
    Tighten,
    /// An exception's to a deny or an ask: exactly, on both paths.
    ExceptTighten,
    /// An exception's to an allow: widely, on either path.
    ExceptAllow,
}

impl Reading {
    /// How a rule of that verdict reads its own fields.
    pub const fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::Allow,
            Verdict::Ask | Verdict::Deny => Self::Tighten,
        }
    }

    /// How the exceptions of a rule of that verdict are read.
    pub const fn of_exception(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::ExceptAllow,
            Verdict::Ask | Verdict::Deny => Self::ExceptTighten,
        }
    }

    /// How names and texts compare.
    pub const fn side(self) -> Side {
        match self {
            Self::Allow | Self::ExceptTighten => Side::Exact,
            Self::Tighten | Self::ExceptAllow => Side::Wide,
        }
    }

    /// Whether fields with this outcome take effect.
    pub fn holds(self, truth: Truth) -> bool {
        match self.side() {
            Side::Exact => truth == Truth::True,
            Side::Wide => truth != Truth::False,
        }
    }
}

/// What of a facet the fields look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub thing: Thing<'a>,
    /// Found by a name in a schema only: it satisfies no class of an allow.
    pub guessed: bool,
    /// The command that it is, or that names it.
    pub running: Option<Running<'a>>,
}

/// The facet itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Thing<'a> {
    Path {
        access: Option<Access>,
        lexical: &'a Location,
        /// Empty where the file system is not shared.
        physical: &'a [Location],
        /// What it is to the command that names it.
        part: Option<Part>,
    },
    /// A URL or an e-mail address.
    Remote {
        /// None where it has none, or where it is not known.
        host: Option<&'a str>,
        sure: Sure,
    },
    Command,
    Sql(&'a SqlFacet),
    Other,
}

/// How far the host of a facet is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sure {
    /// All readers find that host, or none.
    Yes,
    /// That is the host, if the argument is one at all: nobody has marked it.
    Unmarked,
    /// Another reader may go elsewhere.
    No,
}

impl Thing<'_> {
    /// Whether it is a path that really lies in the root.
    pub fn is_inside(self) -> bool {
        match self {
            Self::Path { lexical, physical: [], .. } => lexical.root.is_some(),
            Self::Path { physical, .. } => physical.iter().all(|at| at.root.is_some()),
            _ => false,
        }
    }
}

/// The matching fields of a rule or of an exception; an empty list is a field that is not there.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub tool: Vec<ToolTerm>,
    pub upstream: Vec<NamePattern>,
    pub category: Vec<NamePattern>,
    pub path: Paths,
    pub access: Vec<Access>,
    pub command: Vec<WordsPattern>,
    pub option: Vec<String>,
    pub host: Vec<HostPattern>,
    pub sql: Vec<StatementKind>,
    pub table: Vec<TablePattern>,
    pub method: Vec<NamePattern>,
    pub args: Vec<ArgTest>,
    pub agent: Vec<NamePattern>,
    pub depth: Vec<Depth>,
    pub source: Vec<Source>,
}

impl Fields {
    /// Whether all fields hold for a facet.
    pub fn hold(&self, subject: &Subject<'_>, target: Target<'_>, reading: Reading) -> Truth {
        if let (Thing::Command, Some(running)) = (target.thing, target.running)
            && reading != Reading::Tighten
            && !(self.path.is_empty() && self.access.is_empty() && self.host.is_empty())
        {
            return self.hold_on_command(subject, target, running, reading);
        }
        // A directory in the root to run in is covered where the command is.
        if let (Thing::Path { part: Some(Part::Base), .. }, Some(running)) = (target.thing, target.running)
            && reading == Reading::Allow
            && !self.command.is_empty()
            && target.thing.is_inside()
        {
            return self.hold_on_command(subject, target, running, reading);
        }
        match self.hold_but_path(subject, target, reading) {
            Truth::False => Truth::False,
            truth => truth.min(self.path.hold(target.thing, reading, subject.recorded)),
        }
    }

    /// What loosens a command and names places or hosts must hold on all of those that the command names, what tightens
    /// an allow on any.
    fn hold_on_command(
        &self,
        subject: &Subject<'_>,
        target: Target<'_>,
        running: Running<'_>,
        reading: Reading,
    ) -> Truth {
        let own = self.but_places(subject, target, reading.side());
        let of_hosts = !self.host.is_empty();
        let mut named = running.named(of_hosts).map(|named| self.hold(subject, named, reading)).peekable();
        let places = match (named.peek(), &running.command.cwd) {
            (Some(_), _) if reading == Reading::ExceptAllow => named.max().unwrap_or(Truth::False),
            (Some(_), _) => named.min().unwrap_or(Truth::False),
            (None, _) if of_hosts => Truth::False,
            (None, Some(cwd)) => {
                let physical = std::slice::from_ref(cwd);
                self.path.hold(
                    Thing::Path { access: None, lexical: cwd, physical, part: None },
                    reading,
                    subject.recorded,
                )
            }
            (None, None) => self.path.is_empty().into(),
        };
        own.min(places)
    }

    /// Whether all fields but `path` hold; walks try `path` on many places.
    pub fn hold_but_path(&self, subject: &Subject<'_>, target: Target<'_>, reading: Reading) -> Truth {
        let side = reading.side();
        let access = any(&self.access, |access| access_holds(*access, target.thing, side));
        let told = |is_hidden: bool, test: &dyn Fn() -> Truth| unless(subject.recorded, side, || is_hidden, test);
        let hides_host = !self.host.is_empty() && recorded::hides_host(target.thing);
        let hostless = matches!(target.thing, Thing::Remote { host: None, .. }) && !self.host.is_empty();
        let host = match reading {
            // Nobody knows where `data:` or `javascript:` leads: an allow but for some hosts does not cover it.
            Reading::ExceptAllow if hostless => Truth::Unknown,
            _ => told(hides_host, &|| hosts::hold(&self.host, target.thing, side)),
        };
        let hides_table = !self.table.is_empty() && recorded::hides_table(target.thing);
        let table = told(hides_table, &|| statements::name(&self.table, target.thing, side));
        let sql = statements::are(&self.sql, target.thing, side).min(table);
        let places = access.min(host).min(sql);
        if places == Truth::False { places } else { places.min(self.but_places(subject, target, side)) }
    }

    /// Whether all fields hold but those that only a path has.
    fn but_places(&self, subject: &Subject<'_>, target: Target<'_>, side: Side) -> Truth {
        let mut truth = Truth::True;
        self.try_but_places(subject, target, side, &mut |_, found| {
            truth = truth.min(found);
            truth != Truth::False
        });
        truth
    }

    /// The fields that do not hold, by name.
    pub fn failing(&self, subject: &Subject<'_>, target: Target<'_>, reading: Reading) -> Vec<&'static str> {
        let mut failing = Vec::new();
        let side = reading.side();
        let mut note = |name, truth| {
            if !reading.holds(truth) {
                failing.push(name);
            }
            true
        };
        match (target.thing, target.running) {
            (Thing::Command, Some(_)) => {
                let named = if self.host.is_empty() { "path" } else { "host" };
                // What it names is looked at only where the rest holds.
                let all = self.hold(subject, target, reading);
                let own = self.but_places(subject, target, side);
                note(named, if reading.holds(own) { all } else { Truth::True });
            }
            (thing, _) => {
                note("access", any(&self.access, |access| access_holds(*access, thing, side)));
                note("host", hosts::hold(&self.host, thing, side));
                note("sql", statements::are(&self.sql, thing, side));
                note("table", statements::name(&self.table, thing, side));
                note("path", self.path.hold(thing, reading, subject.recorded));
            }
        }
        self.try_but_places(subject, target, side, &mut note);
        failing
    }

    /// Tries the fields that not only a path has, each by its name, until `go_on` has enough.
    fn try_but_places(
        &self,
        subject: &Subject<'_>,
        target: Target<'_>,
        side: Side,
        go_on: &mut dyn FnMut(&'static str, Truth) -> bool,
    ) {
        let running = target.running.map(|running| &**running.command);
        let told = |hidden: &dyn Fn() -> bool, test: &dyn Fn() -> Truth| unless(subject.recorded, side, hidden, test);
        let tests: [(&'static str, &dyn Fn() -> Truth); 10] = [
            ("tool", &|| any(&self.tool, |term| term.holds(subject, target, side))),
            ("upstream", &|| any(&self.upstream, |pattern| given(subject.upstream, |id| pattern.matches(id, side)))),
            ("method", &|| any(&self.method, |pattern| pattern.matches(subject.method, side).into())),
            ("agent", &|| any(&self.agent, |pattern| given(subject.agent, |name| pattern.matches(name, side)))),
            ("depth", &|| any(&self.depth, |depth| own_word(*depth, subject.depth, subject.claimed.depth, side))),
            ("source", &|| any(&self.source, |source| own_word(*source, subject.source, subject.claimed.source, side))),
            ("category", &|| any(&self.category, |pattern| category_holds(pattern, subject, side))),
            ("command", &|| {
                any(&self.command, |pattern| {
                    let hidden = || running.is_some_and(|command| recorded::hides_words(command, pattern));
                    told(&hidden, &|| commands::starts_with(pattern, target.running, side))
                })
            }),
            ("option", &|| {
                let hidden = || running.is_some_and(recorded::hides_option);
                any(&self.option, |option| told(&hidden, &|| commands::has_option(option, target.running, side)))
            }),
            ("args", &|| {
                let tests = self.args.iter().map(|test| test.holds(subject.arguments, side, subject.recorded));
                tests.min().unwrap_or(Truth::True)
            }),
        ];
        for (name, test) in tests {
            if !go_on(name, test()) {
                break;
            }
        }
    }
}

/// Whether something holds for calls of which only the tool is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Certainty {
    /// Whatever the arguments, it does not.
    Never,
    /// The arguments, or what else is not known, decide.
    Maybe,
    /// Whatever the arguments, it does.
    Always,
}

impl From<bool> for Certainty {
    fn from(known: bool) -> Self {
        if known { Self::Always } else { Self::Never }
    }
}

impl Fields {
    /// Whether the fields take effect for calls of a tool, whatever their arguments: each field by itself, since all
    /// must hold.
    pub fn certainty(&self, prospect: &Prospect<'_>, reading: Reading) -> Certainty {
        // Every field is named: a new one must not be taken to hold.
        #[rustfmt::skip]
        let Self {
            tool, upstream, category, path, access, command, option, host, sql, table, method, args, agent, depth, source,
        } = self;
        let (side, bare) = (reading.side(), prospect.is_bare());
        let category_of = |pattern: &NamePattern| match prospect.entry.category.as_deref() {
            Some(category) => pattern.matches(category, side),
            None => reading.holds(Truth::Unknown),
        };
        // What a client says of itself can make a deny or ask hold too.
        let caller = |known: Option<bool>| match (known, side) {
            (Some(true), _) => Certainty::Always,
            (Some(false), Side::Exact) => Certainty::Never,
            (Some(false), Side::Wide) | (None, _) => Certainty::Maybe,
        };
        let of_facets = |given: bool| match (given, bare) {
            (false, _) => Certainty::Always,
            (true, true) => Certainty::Never,
            (true, false) => Certainty::Maybe,
        };
        let all = [
            best(tool, |term| term.certainty(prospect.tool, side, bare)),
            best(upstream, |pattern| pattern.matches(prospect.upstream, side).into()),
            best(category, |pattern| category_of(pattern).into()),
            best(method, |pattern| pattern.matches(TOOLS_CALL, side).into()),
            best(agent, |pattern| caller(prospect.agent.map(|name| pattern.matches(name, side)))),
            best(depth, |depth| caller(prospect.depth.map(|given| given == *depth))),
            best(source, |source| caller(prospect.source.map(|given| given == *source))),
            best(args, |_| Certainty::Maybe),
            of_facets(!path.is_empty()),
            of_facets(!access.is_empty()),
            of_facets(!command.is_empty()),
            of_facets(!option.is_empty()),
            of_facets(!host.is_empty()),
            of_facets(!sql.is_empty()),
            of_facets(!table.is_empty()),
        ];
        all.into_iter().min().unwrap_or(Certainty::Always)
    }
}

/// A list means any of them; no list is no condition.
fn best<T>(terms: &[T], test: impl Fn(&T) -> Certainty) -> Certainty {
    if terms.is_empty() { Certainty::Always } else { terms.iter().map(test).max().unwrap_or(Certainty::Never) }
}

/// One entry of `tool`.
#[derive(Clone, Debug)]
pub(super) enum ToolTerm {
    /// A name or a glob over names; covers tool calls only.
    Name(NamePattern),
    /// `@any`: every tool call.
    Any,
    /// `@fs_any`: any path facet.
    Path,
    /// `@fs_read`.
    PathRead,
    /// `@fs_write`: write or delete.
    PathWrite,
    /// `@shell`: command facets and theirs.
    Shell,
}

impl ToolTerm {
    /// The classes by name.
    pub const CLASSES: [(&'static str, Self); 5] = [
        ("@any", Self::Any),
        ("@fs_any", Self::Path),
        ("@fs_read", Self::PathRead),
        ("@fs_write", Self::PathWrite),
        ("@shell", Self::Shell),
    ];

    /// Whether it names tools, and is no class.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        let is_same = |class: &Self| std::mem::discriminant(class) == std::mem::discriminant(self);
        match self {
            Self::Name(pattern) => pattern.text(),
            _ => Self::CLASSES.iter().find(|(_, class)| is_same(class)).map_or("", |(name, _)| name),
        }
    }

    /// The one tool it names, if it is no glob and no class.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Name(pattern) => pattern.literal(),
            _ => None,
        }
    }

    fn certainty(&self, tool: &str, side: Side, bare: bool) -> Certainty {
        match self {
            Self::Any => Certainty::Always,
            Self::Name(pattern) => pattern.matches(tool, side).into(),
            Self::Path | Self::PathRead | Self::PathWrite | Self::Shell if bare => Certainty::Never,
            Self::Path | Self::PathRead | Self::PathWrite | Self::Shell => Certainty::Maybe,
        }
    }

    fn holds(&self, subject: &Subject<'_>, target: Target<'_>, side: Side) -> Truth {
        let called = subject.method == TOOLS_CALL;
        let class = match self {
            Self::Any => return called.into(),
            Self::Name(pattern) => {
                let holds = match subject.tool {
                    Some(name) => pattern.matches(name, side),
                    // An example or a test gave a shell text, or said nothing of the tool.
                    None => target.running.is_none() || may_run_commands(pattern),
                };
                return (called && holds).into();
            }
            Self::Path => matches!(target.thing, Thing::Path { .. }).into(),
            Self::PathRead => access_holds(Access::Read, target.thing, side),
            Self::PathWrite => {
                access_holds(Access::Write, target.thing, side).max(access_holds(Access::Delete, target.thing, side))
            }
            Self::Shell => target.running.is_some().into(),
        };
        if target.guessed && side == Side::Exact { class.min(Truth::Unknown) } else { class }
    }
}

/// The entries of `path`. Those that name everything are kept apart: they guard nothing in particular, and so reach
/// path arguments only.
#[derive(Debug, Default)]
pub(super) struct Paths {
    named: Vec<PathPattern>,
    everything: Vec<PathPattern>,
}

impl Paths {
    pub fn push(&mut self, pattern: PathPattern) {
        if pattern.is_everything() { self.everything.push(pattern) } else { self.named.push(pattern) }
    }

    /// The entries as they were written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.named.iter().chain(&self.everything).map(PathPattern::text)
    }

    /// Whether there is an entry other than `/`.
    pub fn names_any(&self) -> bool {
        !self.named.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.everything.is_empty()
    }

    /// Names of which a path must contain one to match, folded; none if a path without any might.
    pub fn landmarks(&self) -> Option<Vec<&str>> {
        if self.named.is_empty() || !self.everything.is_empty() {
            return None;
        }
        let all: Option<Vec<Vec<&str>>> = self.named.iter().map(PathPattern::landmarks).collect();
        all.map(|all| all.concat())
    }

    /// Whether a place lies under a named entry, lexically and widely: for strays and walks.
    pub fn guards(&self, at: &Location, recorded: Option<&Recorded>) -> bool {
        self.named.iter().any(|pattern| covers(pattern, at, Side::Wide, recorded))
    }

    fn hold(&self, thing: Thing<'_>, reading: Reading, recorded: Option<&Recorded>) -> Truth {
        if self.is_empty() {
            return Truth::True;
        }
        let Thing::Path { lexical, physical, .. } = thing else { return Truth::False };
        let side = reading.side();
        let covers = |at: &Location| {
            let all = self.named.iter().chain(&self.everything);
            all.into_iter().any(|pattern| covers(pattern, at, side, recorded))
        };
        match reading {
            Reading::Tighten | Reading::ExceptAllow => covers(lexical) || physical.iter().any(covers),
            Reading::Allow if physical.is_empty() => covers(lexical),
            Reading::Allow => physical.iter().all(covers),
            Reading::ExceptTighten => covers(lexical) && physical.iter().all(covers),
        }
        .into()
    }
}

/// Whether an entry names a place.
fn covers(pattern: &PathPattern, at: &Location, side: Side, recorded: Option<&Recorded>) -> bool {
    match recorded {
        Some(recorded) if recorded::hides_place(at) => recorded.covers(pattern, at, side),
        _ => pattern.matches(at, side),
    }
}

/// A list means any of them; no list is no condition.
fn any<T>(terms: &[T], test: impl Fn(&T) -> Truth) -> Truth {
    let mut best = if terms.is_empty() { Truth::True } else { Truth::False };
    for term in terms {
        best = best.max(test(term));
        if best == Truth::True {
            break;
        }
    }
    best
}

/// What is left out (by an example) is taken to hold.
fn given<T>(value: Option<T>, test: impl FnOnce(T) -> bool) -> Truth {
    value.is_none_or(test).into()
}

/// What the settings say; for what tightens, what the client says of itself counts too.
fn own_word<T: Copy + PartialEq>(wanted: T, settings: Option<T>, claimed: Claim<T>, side: Side) -> Truth {
    let known = given(settings, |given| given == wanted);
    match claimed {
        Claim::Said(claimed) if side == Side::Wide => known.max((claimed == wanted).into()),
        Claim::Unreadable if side == Side::Wide => known.max(Truth::Unknown),
        _ => known,
    }
}

/// Whether a shell text may be given to a tool of that name: not if all tools known by it run nothing.
fn may_run_commands(pattern: &NamePattern) -> bool {
    let catalogues = Catalogue::builtin_names().into_iter().filter_map(Catalogue::builtin);
    let mut known =
        catalogues.flat_map(|catalogue| &catalogue.tools).filter(|(name, _)| pattern.matches(name, Side::Wide));
    let first = known.next();
    first.is_none() || first.into_iter().chain(known).any(|(_, tool)| tool.runs_commands())
}

/// Unknown access is every one for what tightens, and not known to be any for what loosens.
fn access_holds(wanted: Access, thing: Thing<'_>, side: Side) -> Truth {
    match thing {
        Thing::Path { access: Some(access), .. } => (access == wanted).into(),
        Thing::Path { access: None, .. } => match side {
            Side::Wide => Truth::True,
            Side::Exact => Truth::Unknown,
        },
        Thing::Remote { .. } | Thing::Command | Thing::Sql(_) | Thing::Other => Truth::False,
    }
}

/// A tool that no catalogue describes may be of any category; what is no tool call has none.
fn category_holds(pattern: &NamePattern, subject: &Subject<'_>, side: Side) -> Truth {
    match subject.category {
        Some(category) => pattern.matches(category, side).into(),
        None if subject.method != TOOLS_CALL => Truth::False,
        None if subject.tool.is_none() => Truth::True,
        None => Truth::Unknown,
    }
}
