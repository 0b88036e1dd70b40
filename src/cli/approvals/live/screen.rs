//! What the live list shows and what its keys mean. Pure: no terminal, no gateway.

use std::collections::{HashMap, HashSet};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::cli::approvals::text::{left, span};
use crate::clock::Timestamp;
use crate::pattern::visible;
use crate::record::{ApprovalState, ApprovalView, ClientState, GrantBound, GrantOption, Severity, word};

/// Characters of a note that can be typed.
const NOTE: usize = 500;

/// What is to be done, outside of here.
#[derive(Clone, PartialEq, Debug)]
pub enum Act {
    /// Fetch an approval and show all of it.
    Open(String),
    /// Approve exactly what was shown.
    Approve {
        /// The approval.
        id: String,
        /// The digest of what was shown.
        digest: String,
        /// What is to pass without a question from then on.
        remember: Option<GrantOption>,
    },
    /// Show the others that somebody looks at it, or that nobody does any more.
    Claim {
        /// The approval.
        id: String,
        /// Whether it is given up.
        release: bool,
    },
    /// Refuse it.
    Reject {
        /// The approval.
        id: String,
        /// Why.
        note: Option<String>,
    },
    /// Leave.
    Quit,
}

/// A whole held call on the screen.
#[derive(Clone, PartialEq, Debug)]
pub struct Card {
    id: String,
    digest: String,
    severity: Severity,
    text: Vec<String>,
    /// The text as wide as the screen.
    lines: Vec<String>,
    top: usize,
    /// How far down it was on the screen.
    seen: usize,
}

/// What is asked at the bottom of a card.
#[derive(Clone, PartialEq, Debug)]
enum Question {
    /// `y`, or the word where it is severe; and what is to be remembered.
    Approve(String, Option<Box<GrantOption>>),
    /// Which of the options is to be remembered: its number.
    Remember(Vec<GrantOption>),
    /// A note.
    Reject(String),
}

/// Everything on the screen.
#[derive(Default)]
pub struct Screen {
    waiting: HashMap<String, ApprovalView>,
    selected: Option<String>,
    card: Option<Card>,
    question: Option<Question>,
    /// The last thing that happened, in one line.
    message: String,
    /// Why there is no news, while there is none.
    lost: Option<String>,
    size: (usize, usize),
    /// Who looks at it.
    me: String,
}

impl Screen {
    /// Of so many columns and rows, for an approver.
    pub fn new(columns: u16, rows: u16, me: &str) -> Self {
        let mut screen = Self { me: me.to_owned(), ..Self::default() };
        screen.resize(columns, rows);
        screen
    }

    /// Another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (usize::from(columns).max(20), usize::from(rows).max(6));
        if let Some(card) = &mut self.card {
            card.lines = card.text.iter().flat_map(|line| wrapped(line, self.size.0)).collect();
            (card.top, card.seen) = (0, 0);
        }
        self.scroll(0);
    }

    /// All that waits, anew.
    pub fn all(&mut self, waiting: Vec<ApprovalView>) {
        self.lost = None;
        self.waiting = waiting.into_iter().map(|view| (view.approval.id.clone(), view)).collect();
        self.settle();
    }

    /// One approval as it is now.
    pub fn changed(&mut self, view: ApprovalView) {
        let (id, state) = (view.approval.id.clone(), view.approval.state);
        if let Some(card) = self.card.as_ref().filter(|card| card.id == id) {
            if state != ApprovalState::Waiting {
                self.message = format!("it is {} now", word(state));
                self.question = None;
            } else if view.approval.call.digest.as_deref() != Some(&card.digest) {
                self.message = "it has changed: Enter shows it as it is now".to_owned();
                self.question = None;
            }
        }
        if state == ApprovalState::Waiting {
            self.waiting.insert(id, view);
        } else {
            let rows = self.rows();
            let at = rows.iter().position(|row| row.approval.id == id);
            let next = at.and_then(|at| rows.get(at + 1).or_else(|| rows.get(at.checked_sub(1)?)));
            let next = next.map(|row| row.approval.id.clone());
            if self.selected.as_deref() == Some(&id) {
                self.selected = next;
            }
            self.waiting.remove(&id);
        }
        self.settle();
    }

    /// There is no news for now.
    pub fn lost(&mut self, why: &str) {
        self.lost = Some(visible(why));
    }

    /// Something happened.
    pub fn say(&mut self, what: &str) {
        self.message = visible(what.lines().next().unwrap_or_default());
    }

    /// Shows a whole call: `text` is what an approver is to see of it.
    pub fn open(&mut self, view: &ApprovalView, text: &str) {
        let text: Vec<String> = text.lines().map(visible).collect();
        let lines = text.iter().flat_map(|line| wrapped(line, self.size.0)).collect();
        let approval = &view.approval;
        let digest = approval.call.digest.clone().unwrap_or_default();
        let (id, severity) = (approval.id.clone(), approval.severity);
        self.selected = Some(id.clone());
        self.question = None;
        self.message.clear();
        self.card = Some(Card { id, digest, severity, text, lines, top: 0, seen: 0 });
        self.scroll(0);
    }

    /// Back to the list, where what was open was decided.
    pub fn close(&mut self) {
        (self.card, self.question) = (None, None);
    }

    /// What a key means.
    pub fn key(&mut self, key: KeyEvent) -> Option<Act> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Some(Act::Quit);
        }
        if control || key.modifiers.contains(KeyModifiers::ALT) {
            return None;
        }
        match (self.question.take(), self.card.is_some()) {
            (Some(question), _) => self.answered(question, key.code),
            (None, true) => self.on_card(key.code),
            (None, false) => self.on_list(key.code),
        }
    }

    fn on_list(&mut self, key: KeyCode) -> Option<Act> {
        match key {
            KeyCode::Char('q') => Some(Act::Quit),
            KeyCode::Char('j') | KeyCode::Down => self.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.step(-1),
            // Nothing is decided that was not shown whole.
            KeyCode::Enter | KeyCode::Char('a' | 'r') => self.selected.clone().map(Act::Open),
            _ => None,
        }
    }

    fn on_card(&mut self, key: KeyCode) -> Option<Act> {
        let page = isize::try_from(self.room()).unwrap_or(1);
        match key {
            KeyCode::Char('q') => return Some(Act::Quit),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.close(),
            KeyCode::Char('j') | KeyCode::Down => self.scroll(1),
            KeyCode::Char('k') | KeyCode::Up => self.scroll(-1),
            KeyCode::Char(' ') | KeyCode::PageDown => self.scroll(page),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::Enter => return self.card.as_ref().map(|card| Act::Open(card.id.clone())),
            KeyCode::Char('a') => self.ask_to_approve(None),
            KeyCode::Char('m') => self.ask_what_to_remember(),
            KeyCode::Char('c') => return self.claimed(),
            KeyCode::Char('r') if self.is_decidable() => {
                self.message.clear();
                self.question = Some(Question::Reject(String::new()));
            }
            _ => {}
        }
        None
    }

    fn ask_to_approve(&mut self, remember: Option<GrantOption>) {
        if self.is_approvable() {
            self.message.clear();
            self.question = Some(Question::Approve(String::new(), remember.map(Box::new)));
        }
    }

    fn ask_what_to_remember(&mut self) {
        if !self.is_approvable() {
            return;
        }
        let view = self.card.as_ref().and_then(|card| self.waiting.get(&card.id));
        let options = view.map(|view| view.approval.grant_options.clone()).unwrap_or_default();
        self.message = match options.is_empty() {
            true => "nothing of it can be remembered".to_owned(),
            // Nobody chooses what they cannot read.
            false if self.drawn_options(&options).len() > self.room() => {
                "the window is too small for what can be remembered".to_owned()
            }
            false => {
                self.question = Some(Question::Remember(options));
                String::new()
            }
        };
    }

    /// Whether what is shown may be approved now: it waits so, and what is severe was looked at.
    fn is_approvable(&mut self) -> bool {
        if !self.is_decidable() {
            return false;
        }
        let is_seen =
            self.card.as_ref().is_some_and(|card| card.seen >= card.lines.len() || card.severity < Severity::High);
        if !is_seen {
            self.message = "look at all of it first: space goes on".to_owned();
        }
        is_seen
    }

    fn claimed(&self) -> Option<Act> {
        let view = self.waiting.get(&self.card.as_ref()?.id)?;
        let is_mine = view.approval.claimed.as_ref().is_some_and(|claim| claim.by == self.me);
        Some(Act::Claim { id: view.approval.id.clone(), release: is_mine })
    }

    /// Whether what is shown still waits, as it is shown.
    fn is_decidable(&mut self) -> bool {
        let Some(card) = &self.card else { return false };
        let now = self.waiting.get(&card.id);
        if now.and_then(|view| view.approval.call.digest.as_deref()) == Some(&card.digest) {
            return true;
        }
        self.message = match now {
            Some(_) => "it has changed: Enter shows it as it is now".to_owned(),
            None => "it does not wait any more".to_owned(),
        };
        false
    }

    fn answered(&mut self, question: Question, key: KeyCode) -> Option<Act> {
        let card = self.card.clone()?;
        match (question, key) {
            (_, KeyCode::Esc) => {
                self.message = "nothing was decided".to_owned();
                None
            }
            (Question::Remember(options), key) => {
                let number = if let KeyCode::Char(c) = key { c.to_digit(10) } else { None };
                let chosen = number.and_then(|number| options.into_iter().nth((number as usize).checked_sub(1)?));
                match chosen {
                    Some(option) => self.ask_to_approve(Some(option)),
                    None => self.message = "nothing was decided".to_owned(),
                }
                None
            }
            (Question::Approve(typed, remember), key) => {
                let severe = card.severity >= Severity::High;
                let typed = match (key, severe) {
                    (KeyCode::Char('y'), false) => return self.approved(card, remember),
                    (KeyCode::Enter, true) if typed == "yes" => return self.approved(card, remember),
                    (KeyCode::Char(c), true) if "yes".starts_with(&format!("{typed}{c}")) => format!("{typed}{c}"),
                    _ => {
                        self.message = "nothing was decided".to_owned();
                        return None;
                    }
                };
                self.question = Some(Question::Approve(typed, remember));
                None
            }
            (Question::Reject(note), KeyCode::Enter) => {
                let note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
                Some(Act::Reject { id: card.id, note })
            }
            (Question::Reject(mut note), key) => {
                match key {
                    KeyCode::Char(c) if note.chars().count() < NOTE => note.push(c),
                    KeyCode::Backspace => drop(note.pop()),
                    _ => {}
                }
                self.question = Some(Question::Reject(note));
                None
            }
        }
    }

    fn approved(&mut self, card: Card, remember: Option<Box<GrantOption>>) -> Option<Act> {
        let remember = remember.map(|option| *option);
        self.is_decidable().then_some(Act::Approve { id: card.id, digest: card.digest, remember })
    }

    fn step(&mut self, by: isize) -> Option<Act> {
        let rows = self.rows();
        let at = rows.iter().position(|row| Some(&row.approval.id) == self.selected.as_ref()).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.selected = rows.get(to).map(|row| row.approval.id.clone());
        None
    }

    fn scroll(&mut self, by: isize) {
        let room = self.room();
        let Some(card) = &mut self.card else { return };
        card.top = card.top.saturating_add_signed(by).min(card.lines.len().saturating_sub(room));
        card.seen = card.seen.max(card.top + room);
    }

    /// Lines between the title and what stands at the bottom.
    fn room(&self) -> usize {
        self.size.1.saturating_sub(4)
    }

    /// Keeps something selected.
    fn settle(&mut self) {
        if self.selected.as_ref().is_none_or(|id| !self.waiting.contains_key(id)) && self.card.is_none() {
            self.selected = self.rows().first().map(|row| row.approval.id.clone());
        }
    }

    /// What waits, the most urgent first.
    fn rows(&self) -> Vec<&ApprovalView> {
        let mut rows: Vec<&ApprovalView> = self.waiting.values().collect();
        rows.sort_by(|a, b| {
            let key = |view: &ApprovalView| (std::cmp::Reverse(view.approval.severity), view.approval.expires_at);
            key(a).cmp(&key(b)).then_with(|| a.approval.id.cmp(&b.approval.id))
        });
        rows
    }

    /// The screen, one text a row, each at most as wide as it is; and which row stands out.
    pub fn drawn(&self, now: Timestamp) -> (Vec<String>, Option<usize>) {
        let (columns, rows) = self.size;
        let (mut lines, marked) = match &self.card {
            Some(card) => self.drawn_card(card, now),
            None => self.drawn_list(now),
        };
        lines.truncate(rows.saturating_sub(2));
        lines.resize(rows.saturating_sub(2), String::new());
        lines.push(match &self.lost {
            Some(why) => format!("no news from the gateway: {why}; trying again"),
            None => self.message.clone(),
        });
        lines.push(self.prompt());
        (lines.into_iter().map(|line| cut(&line, columns)).collect(), marked)
    }

    fn drawn_list(&self, now: Timestamp) -> (Vec<String>, Option<usize>) {
        let rows = self.rows();
        let title = match rows.len() {
            0 => "nothing waits for a decision".to_owned(),
            1 => "1 call waits for a decision".to_owned(),
            many => format!("{many} calls wait for a decision"),
        };
        let mut lines = vec![title, String::new()];
        let selected = rows.iter().position(|row| Some(&row.approval.id) == self.selected.as_ref()).unwrap_or(0);
        // The selected row stays on the screen.
        let top = selected.saturating_sub(self.room().saturating_sub(1));
        let agents: HashSet<usize> = rows.iter().map(|row| visible(&row.approval.call.agent).chars().count()).collect();
        let wide = agents.into_iter().max().unwrap_or(0).min(20);
        let mut marked = None;
        for (at, row) in rows.iter().enumerate().skip(top).take(self.room()) {
            let approval = &row.approval;
            let severity = if approval.severity == Severity::Normal { String::new() } else { word(approval.severity) };
            let client = if approval.client.state == ClientState::Gone { "gone" } else { "" };
            let looks = looked_at(row, now).map_or_else(String::new, |by| format!("[{by}] "));
            let agent = cut(&visible(&approval.call.agent), wide);
            let label = visible(&approval.call.label);
            if at == selected {
                marked = Some(lines.len());
            }
            lines.push(format!(
                "{:>7}  {severity:8}  {agent:wide$}  {client:4}  {looks}{label}",
                left(approval.expires_at, now)
            ));
        }
        (lines, marked)
    }

    fn drawn_card(&self, card: &Card, now: Timestamp) -> (Vec<String>, Option<usize>) {
        let left = self.waiting.get(&card.id).map(|view| format!("{} left", left(view.approval.expires_at, now)));
        let title = left.unwrap_or_else(|| "it does not wait any more".to_owned());
        let below = card.lines.len().saturating_sub(card.top + self.room());
        let more = if below > 0 { format!(" · {below} more lines below") } else { String::new() };
        let looks = self.waiting.get(&card.id).and_then(|view| looked_at(view, now));
        let looks = looks.map_or_else(String::new, |by| match by == visible(&self.me) {
            true => " · you are looking".to_owned(),
            false => format!(" · {by} is looking"),
        });
        let mut lines = vec![format!("{title}{looks}{more}"), String::new()];
        match &self.question {
            Some(Question::Remember(options)) => lines.extend(self.drawn_options(options)),
            Some(Question::Approve(_, Some(option))) => {
                lines.extend(self.drawn_options(std::slice::from_ref(option)));
            }
            _ => lines.extend(card.lines.iter().skip(card.top).take(self.room()).cloned()),
        }
        (lines, None)
    }

    /// What would pass without a question, and for how long.
    fn drawn_options(&self, options: &[GrantOption]) -> Vec<String> {
        let told = options.iter().enumerate().flat_map(|(at, option)| {
            let whose = match option.bound.first() {
                Some(GrantBound::Session) => "in this session",
                Some(GrantBound::Agent) | None => "of this agent",
            };
            let bounds = format!("for {}, {} calls, {whose}", span(option.ttl_ms / 1000), option.uses);
            let number = if options.len() > 1 { format!("{}  ", at + 1) } else { String::new() };
            wrapped(&format!("{number}{} ({bounds})", visible(&option.sentence)), self.size.0)
        });
        std::iter::once("until it ends, without a question:".to_owned()).chain(told).collect()
    }

    fn prompt(&self) -> String {
        match (&self.question, &self.card) {
            (Some(Question::Approve(typed, remember)), Some(card)) if card.severity >= Severity::High => {
                let and = if remember.is_some() { " and remember" } else { "" };
                format!("severity {}: type yes and Enter to approve{and}; Esc: not now > {typed}", word(card.severity))
            }
            (Some(Question::Approve(_, Some(_))), _) => {
                "approve the call, and remember this? y: yes; any other key: not now".to_owned()
            }
            (Some(Question::Approve(..)), _) => "approve exactly this? y: yes; any other key: not now".to_owned(),
            (Some(Question::Remember(options)), _) => {
                format!("approve and remember: 1 to {}; any other key: not now", options.len().min(9))
            }
            (Some(Question::Reject(note)), _) => {
                let note = visible(note);
                let shown: String = note.chars().skip(note.chars().count().saturating_sub(40)).collect();
                format!("reject; a note for the agent, Enter sends, Esc: not now > {shown}")
            }
            (None, Some(_)) => {
                "a approve · m and remember · r reject · c look · j k space scroll · Esc back · q quit".to_owned()
            }
            (None, None) => "j k move · Enter open · q quit".to_owned(),
        }
    }
}

/// Who says that they look at it.
fn looked_at(view: &ApprovalView, now: Timestamp) -> Option<String> {
    view.approval.claimed.as_ref().filter(|claim| claim.until > now).map(|claim| visible(&claim.by))
}

/// At most so many columns.
fn cut(text: &str, most: usize) -> String {
    if text.chars().map(width).sum::<usize>() <= most {
        return text.to_owned();
    }
    let fits = text.chars().scan(0, |used, c| {
        *used += width(c);
        (*used < most).then_some(c)
    });
    fits.chain(['…']).collect()
}

/// A line in pieces that fit.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        if used + width(c) > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += width(c);
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

/// Columns that a character may take: what is wide begins there (UAX 11). Too much rather than too little, since what does
/// not fit would not be seen.
fn width(c: char) -> usize {
    if c < '\u{1100}' { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use std::time::Duration;

    fn view(id: &str, severity: Severity, label: &str) -> ApprovalView {
        let mut view: ApprovalView =
            serde_json::from_str(include_str!("../../../admin/api/approval.example.json")).unwrap();
        view.approval.id = id.to_owned();
        view.approval.severity = severity;
        view.approval.call.label = label.to_owned();
        view
    }

    fn press(screen: &mut Screen, keys: &str) -> Option<Act> {
        let mut last = None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            last = screen.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        last
    }

    fn now() -> Timestamp {
        view("x", Severity::Low, "").approval.call.created_at
    }

    fn opened(severity: Severity, lines: usize) -> Screen {
        let mut screen = Screen::new(80, 24, "ana");
        let view = view("apr_1", severity, "write a");
        screen.all(vec![view.clone()]);
        assert_eq!(press(&mut screen, "\n"), Some(Act::Open("apr_1".into())));
        screen.open(&view, &"a line\n".repeat(lines));
        screen
    }

    fn approve() -> Option<Act> {
        Some(Act::Approve { id: "apr_1".into(), digest: "sha256:d".into(), remember: None })
    }

    #[test]
    fn the_most_urgent_is_first_and_no_key_decides_what_was_not_opened() {
        let mut screen = Screen::new(80, 24, "ana");
        let evil = "write \u{1b}[2J\u{202e}x\nlast line";
        screen.all(vec![view("apr_1", Severity::Normal, "read b"), view("apr_2", Severity::Critical, evil)]);
        let (lines, marked) = screen.drawn(now());
        assert_eq!((lines.len(), marked), (24, Some(2)));
        assert_eq!(lines[0], "2 calls wait for a decision");
        assert!(lines[2].contains("critical") && lines[2].contains(r"\u{1b}[2J\u{202e}x\nlast"), "{}", lines[2]);
        assert!(lines.iter().all(|line| line.chars().count() <= 80 && visible(line) == *line));
        for key in ["a", "r", "\n"] {
            assert_eq!(press(&mut screen, key), Some(Act::Open("apr_2".into())), "{key}");
        }
        assert_eq!(press(&mut screen, "j\n"), Some(Act::Open("apr_1".into())));
        assert_eq!(press(&mut screen, "jjkk\n"), Some(Act::Open("apr_2".into())));
        assert_eq!(press(&mut screen, "q"), Some(Act::Quit));
    }

    #[test]
    fn what_is_selected_stays_so_when_others_come_and_go() {
        let mut screen = Screen::new(80, 24, "ana");
        screen.all(vec![view("apr_1", Severity::Normal, "a"), view("apr_2", Severity::Normal, "b")]);
        press(&mut screen, "j");
        screen.changed(view("apr_0", Severity::Critical, "c"));
        assert_eq!(press(&mut screen, "\n"), Some(Act::Open("apr_2".into())));
        let mut ended = view("apr_2", Severity::Normal, "b");
        ended.approval.state = ApprovalState::Expired;
        screen.changed(ended);
        assert_eq!(press(&mut screen, "\n"), Some(Act::Open("apr_1".into())));
    }

    #[test]
    fn an_approval_is_confirmed_and_takes_the_digest_that_was_shown() {
        let mut screen = opened(Severity::Normal, 3);
        assert_eq!(press(&mut screen, "an"), None);
        assert_eq!(press(&mut screen, "y"), None, "it was not asked any more");
        assert_eq!(press(&mut screen, "ay"), approve());

        let mut screen = opened(Severity::Normal, 3);
        press(&mut screen, "a");
        let mut other = view("apr_1", Severity::Normal, "write b");
        other.approval.call.digest = Some("sha256:other".into());
        screen.changed(other);
        assert_eq!(press(&mut screen, "y"), None);
        assert_eq!(press(&mut screen, "ay"), None, "what was shown is not what waits");
        assert!(screen.drawn(now()).0[22].contains("it has changed"));
        assert_eq!(press(&mut screen, "\n"), Some(Act::Open("apr_1".into())));
    }

    #[test]
    fn what_is_severe_is_looked_at_whole_and_takes_the_word() {
        let mut screen = opened(Severity::High, 50);
        assert_eq!(press(&mut screen, "ayes\n"), Some(Act::Open("apr_1".into())), "no question, so Enter opens again");
        press(&mut screen, "  ");
        assert_eq!(press(&mut screen, "ay"), None);
        assert!(screen.drawn(now()).0[23].contains("type yes"));
        assert_eq!(press(&mut screen, "x"), None);
        assert_eq!(press(&mut screen, "aye\n"), None);
        assert_eq!(press(&mut screen, "ayes"), None);
        assert_eq!(press(&mut screen, "\n"), approve());
    }

    #[test]
    fn a_rejection_takes_a_note_and_esc_takes_it_back() {
        let mut screen = opened(Severity::Normal, 3);
        assert_eq!(press(&mut screen, "rno, q\u{1b}"), None);
        let note = |note: &str| Some(Act::Reject { id: "apr_1".into(), note: Some(note.to_owned()) });
        assert_eq!(press(&mut screen, "rq and a\n"), note("q and a"));
        assert_eq!(press(&mut screen, "r  \n"), Some(Act::Reject { id: "apr_1".into(), note: None }));
        let mut ended = view("apr_1", Severity::Normal, "a");
        ended.approval.state = ApprovalState::Rejected;
        screen.changed(ended);
        assert_eq!(press(&mut screen, "rx\n"), Some(Act::Open("apr_1".into())), "nothing to decide");
        assert!(screen.drawn(now().after(Duration::from_secs(1))).0[0].contains("does not wait"));
    }

    #[test]
    fn every_character_is_on_the_screen_whatever_its_width() {
        let mut screen = Screen::new(20, 24, "ana");
        let view = view("apr_1", Severity::High, "a");
        screen.all(vec![view.clone()]);
        screen.open(&view, &format!("{}end", "字".repeat(25)));
        let lines = screen.drawn(now()).0;
        assert_eq!((lines[2].chars().count(), lines[3].chars().count(), lines[4].as_str()), (10, 10, "字字字字字end"));
        assert_eq!(cut(&"字".repeat(25), 20).chars().count(), 10);
        screen.resize(40, 24);
        assert!(screen.drawn(now()).0[3].ends_with("字end"));
        screen.resize(40, 6);
        press(&mut screen, "a");
        assert!(screen.question.is_none() || screen.drawn(now()).0[2].starts_with('字'));
    }

    #[test]
    fn a_paste_or_a_chord_is_no_decision() {
        let mut screen = opened(Severity::Normal, 3);
        for code in ['a', 'y', 'r'] {
            assert_eq!(screen.key(KeyEvent::new(KeyCode::Char(code), KeyModifiers::ALT)), None);
        }
        assert!(screen.question.is_none());
        let quit = screen.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(quit, Some(Act::Quit));
    }

    fn option(sentence: &str) -> GrantOption {
        let option = serde_json::json!({"scope": "exact", "path": null, "command": null, "sentence": sentence,
            "ttl_ms": 900_000, "max_ttl_ms": 900_000, "uses": 10, "bound": ["session", "agent"]});
        serde_json::from_value(option).unwrap()
    }

    #[test]
    fn what_is_remembered_is_chosen_read_and_confirmed() {
        let mut screen = opened(Severity::Normal, 3);
        assert_eq!(press(&mut screen, "m"), None);
        assert!(screen.drawn(now()).0[22].contains("nothing of it can be remembered"));
        let mut view = view("apr_1", Severity::Normal, "write a");
        view.approval.grant_options = vec![option("this very call"), option("write_file below \u{202e}docs/")];
        screen.changed(view.clone());
        press(&mut screen, "m");
        let lines = screen.drawn(now()).0;
        assert_eq!(lines[3], "1  this very call (for 15m00s, 10 calls, in this session)");
        assert!(lines[4].starts_with(r"2  write_file below \u{202e}docs/ (for"), "{}", lines[4]);
        assert_eq!(press(&mut screen, "3y"), None, "there is no third");
        assert_eq!(press(&mut screen, "m2"), None);
        assert!(screen.drawn(now()).0[3].starts_with(r"write_file below \u{202e}docs/ (for"));
        let chosen = view.approval.grant_options[1].clone();
        let act = Act::Approve { id: "apr_1".into(), digest: "sha256:d".into(), remember: Some(chosen) };
        assert_eq!(press(&mut screen, "y"), Some(act));
        assert_eq!(press(&mut screen, "ay"), approve(), "nothing is left of it");

        // Not where there is no room to read it, and not before what is severe was looked at.
        screen.resize(80, 6);
        press(&mut screen, "m");
        assert!(screen.question.is_none());
        let mut screen = opened(Severity::High, 50);
        view.approval.severity = Severity::High;
        screen.changed(view.clone());
        press(&mut screen, "m");
        assert!(screen.question.is_none());
        press(&mut screen, "  m1");
        assert_eq!(press(&mut screen, "y"), None);
        assert!(matches!(press(&mut screen, "es\n"), Some(Act::Approve { remember: Some(_), .. })));
    }

    #[test]
    fn a_claim_is_put_up_and_taken_down() {
        let mut screen = opened(Severity::Normal, 3);
        let claim = |release| Some(Act::Claim { id: "apr_1".into(), release });
        assert_eq!(press(&mut screen, "c"), claim(false));
        for (by, release, told) in [("ana", true, "you are looking"), ("eve", false, "eve is looking")] {
            let mut claimed = view("apr_1", Severity::Normal, "write a");
            let until = now().after(Duration::from_secs(60));
            claimed.approval.claimed = Some(crate::record::ClaimRecord { by: by.into(), until });
            screen.changed(claimed);
            assert!(screen.drawn(now()).0[0].contains(told), "{}", screen.drawn(now()).0[0]);
            assert!(!screen.drawn(until).0[0].contains(told), "its time is over");
            assert_eq!(press(&mut screen, "c"), claim(release));
        }
        press(&mut screen, "\u{1b}");
        assert!(screen.drawn(now()).0[2].contains("[eve] write a"), "{}", screen.drawn(now()).0[2]);
    }
}
