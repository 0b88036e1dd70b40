//! Texts that look for a way past the gate: everyday commands, changed, and commands put together by a grammar.
//!
//! What they are made of stands in `texts/`: whole texts and parts that are put into them (JSON strings, one a line),
//! programs and words.

use std::sync::LazyLock;

/// What is changed.
static WHOLE: LazyLock<Vec<String>> = LazyLock::new(|| strings(include_str!("texts/whole.jsonl")));
/// What is put in.
static PARTS: LazyLock<Vec<String>> = LazyLock::new(|| strings(include_str!("texts/parts.jsonl")));
static PROGRAMS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("texts/programs.txt").lines().collect());
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("texts/words.txt").lines().collect());

fn strings(lines: &str) -> Vec<String> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A row of texts that only a seed decides.
pub struct Texts(Dice);

impl Texts {
    pub fn new(seed: u64) -> Self {
        Self(Dice(seed))
    }

    pub fn next_text(&mut self) -> String {
        let mut text = if self.0.below(3) > 0 { self.0.pick(&WHOLE).to_owned() } else { self.list(2) };
        for _ in 0..self.0.below(4) {
            text = self.changed(text);
        }
        text
    }

    /// Commands, put together.
    fn list(&mut self, depth: usize) -> String {
        let mut text = self.command(depth);
        for _ in 0..self.0.below(3) {
            text += self.0.pick(&["; ", " && ", " || ", " | ", "\n", " & ", ";", "|", "&&", " |& "]);
            text += &self.command(depth);
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth > 0 && self.0.below(4) == 0 {
            let inner = self.list(depth - 1);
            return match self.0.below(9) {
                0 => format!("({inner})"),
                1 => format!("{{ {inner}; }}"),
                2 => format!("if {inner}; then {inner}; fi"),
                3 => format!("for f in a b; do {inner}; done"),
                4 => format!("while {inner}; do {inner}; break; done"),
                5 => format!("case a in a) {inner};; esac"),
                6 => format!("! {inner}"),
                7 => format!("cat <<E\n{inner}\nE"),
                _ => format!("f() {{ {inner}; }}"),
            };
        }
        let mut text = String::new();
        if self.0.below(10) == 0 {
            text += self.0.pick(&["LANG=C ", "X=1 ", "X=$(ls) ", "TZ=x "]);
        }
        text += self.0.pick(&PROGRAMS);
        for _ in 0..self.0.below(4) {
            text.push(' ');
            text += &self.word(depth);
        }
        if self.0.below(6) == 0 {
            text += self.0.pick(&[
                " > /dev/null",
                " 2>&1",
                " < x",
                " > x",
                " <<< x",
                " < /dev/null",
                " &> /dev/null",
                " >&2",
                " 2>/dev/null",
            ]);
        }
        text
    }

    fn word(&mut self, depth: usize) -> String {
        let word = self.0.pick(&WORDS).to_owned();
        match self.0.below(14) {
            0 => format!("'{word}'"),
            1 => format!("\"{word}\""),
            2 => format!("\"{}\"", self.inner(depth)),
            3 => self.inner(depth),
            4 => format!("$'{word}'"),
            5 => format!("{word}{}", self.0.pick(&WORDS)),
            6 => format!("\\{word}"),
            7 => format!("'{}'", self.command(depth.saturating_sub(1)).replace('\'', "")),
            _ => word,
        }
    }

    fn inner(&mut self, depth: usize) -> String {
        if depth == 0 {
            return "$(ls)".to_owned();
        }
        let list = self.list(depth - 1);
        match self.0.below(6) {
            0 => format!("`{list}`"),
            1 => format!("<({list})"),
            2 => format!("${{x:-{list}}}"),
            3 => format!("$(({}))", self.0.pick(&WORDS)),
            _ => format!("$({list})"),
        }
    }

    fn changed(&mut self, text: String) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        let at = self.0.below(chars.len() + 1);
        match self.0.below(8) {
            0 if at < chars.len() => {
                chars.remove(at);
            }
            1 if at < chars.len() => {
                let end = (at + 1 + self.0.below(6)).min(chars.len());
                let part: Vec<char> = chars[at..end].to_vec();
                chars.splice(end..end, part);
            }
            2 => {
                let other = self.0.pick(&WHOLE);
                chars.splice(at..at, other.chars());
            }
            _ => {
                let part = self.0.pick(&PARTS);
                chars.splice(at..at, part.chars());
            }
        }
        chars.into_iter().collect()
    }
}

/// A row of numbers that only a seed decides (Steele, Lea and Flood's SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T: AsRef<str>>(&mut self, of: &'a [T]) -> &'a str {
        of[self.below(of.len())].as_ref()
    }
}
