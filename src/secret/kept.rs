//! What a redaction leaves to be seen, whatever it looks like.

use std::cell::OnceCell;
use std::ops::Range;

use aho_corasick::AhoCorasick;

/// What of a call nobody may be kept from seeing: the paths, hosts and programs that it names. An approver decides on
/// them, so no secret's shape, nor a value that is redacted elsewhere, hides one.
#[derive(Default)]
pub struct Kept<'k> {
    names: Option<Naming<'k>>,
    /// Found out once there is a secret: most calls have none.
    search: OnceCell<Option<(AhoCorasick, Names)>>,
}

type Naming<'k> = Box<dyn Fn(&mut Names) + 'k>;

/// Names that are to be seen.
#[derive(Default)]
pub struct Names {
    all: Vec<String>,
    hosts: Vec<bool>,
}

impl Names {
    /// A path or a program, as it is written: seen where it stands as a word, or as a part of one (`--file=WORD`).
    pub fn word(&mut self, word: impl Into<String>) {
        self.add(word.into(), false);
    }

    /// A host as it is written: seen also where it stands in a URL or an address.
    pub fn host(&mut self, host: impl Into<String>) {
        self.add(host.into(), true);
    }

    fn add(&mut self, name: String, is_host: bool) {
        if !name.is_empty() {
            self.all.push(name);
            self.hosts.push(is_host);
        }
    }
}

impl<'k> Kept<'k> {
    /// What `names` tells, which is asked when there is something that it could be kept from.
    pub fn new(names: impl Fn(&mut Names) + 'k) -> Self {
        Self { names: Some(Box::new(names)), search: OnceCell::new() }
    }

    /// The ranges of a text, which are in order, but for what of them has to be seen.
    pub(super) fn spared(&self, text: &str, secrets: Vec<Range<usize>>) -> Vec<Range<usize>> {
        if secrets.is_empty() {
            return secrets;
        }
        let mut seen = self.places(text).into_iter().peekable();
        let (mut left, mut from) = (Vec::new(), 0);
        for secret in secrets {
            from = secret.start.max(from);
            while let Some(place) = seen.next_if(|place| place.start < secret.end) {
                left.push(from..place.start);
                from = from.max(place.end);
            }
            left.push(from..secret.end);
        }
        left.retain(|part| !part.is_empty());
        left
    }

    /// Where one of them stands by itself, in order.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let Some((search, names)) = self.search.get_or_init(|| self.found()) else { return Vec::new() };
        let found = search.find_overlapping_iter(text).filter(|found| {
            let is_host = names.hosts.get(found.pattern().as_usize()).is_some_and(|is_host| *is_host);
            let is_beside = |c: char| parts_words(c) || (is_host && "/\\?".contains(c));
            let before = text.get(..found.start()).unwrap_or_default().chars().next_back();
            let after = text.get(found.end()..).unwrap_or_default().chars().next();
            before.is_none_or(is_beside) && after.is_none_or(is_beside)
        });
        let mut places: Vec<Range<usize>> = found.map(|found| found.range()).collect();
        places.sort_by_key(|place| (place.start, place.end));
        places
    }

    fn found(&self) -> Option<(AhoCorasick, Names)> {
        let mut names = Names::default();
        self.names.as_ref()?(&mut names);
        let search = AhoCorasick::new(&names.all).ok()?;
        Some((search, names))
    }
}

/// What stands between the words of a command, and between the parts of such a word.
fn parts_words(c: char) -> bool {
    c.is_whitespace() || "\"'`$;|&<>(){}[]=:,@#".contains(c)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;

    #[test]
    fn what_is_kept_is_cut_out_of_what_would_be_hidden() {
        let kept = Kept::new(|names| {
            names.word("etc/key");
            names.host("evil.example");
            names.word("e");
        });
        let spared = |text: &str, secret: Range<usize>| kept.spared(text, vec![secret]);
        assert_eq!(spared("x=etc/key;", 0..10), [0..2, 9..10]);
        assert!(spared("x=etc/key", 2..9).is_empty());
        assert_eq!(spared("x/etc/key/e", 0..11), [0..11], "a part of another path");
        assert_eq!(spared("//evil.example/?q", 2..17), [14..17]);
        assert_eq!(spared("an.evil.example e", 0..15), [0..15], "another host");
        assert_eq!(spared("e e", 0..3), [1..2]);
        assert_eq!(kept.spared(" etc/key ", vec![0..3, 4..6, 7..9]), [0..1, 8..9]);
        assert_eq!(Kept::default().spared("e e", vec![0..3]), [0..3]);
    }

    #[test]
    fn nothing_is_found_out_where_there_is_no_secret() {
        let kept = Kept::new(|_| unreachable!("nobody asks"));
        assert!(kept.spared("e e", Vec::new()).is_empty());
    }
}
