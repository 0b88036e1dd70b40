//! Where shell texts go to the thread that parses.

use super::simple::Walk;
use super::words::Word;
use super::{Script, budget, not_read};
use crate::facet::worker;

/// Takes a shell text apart.
pub(in crate::facet) fn script(text: &str) -> Script {
    if let Some(why) = budget::excess(text) {
        return not_read(text, why);
    }
    let given = text.to_owned();
    on_the_thread(text, move || Walk::text(&given))
}

/// Takes a command line apart that no shell reads.
pub(in crate::facet) fn argv(words: &[String]) -> Script {
    let text = words.join(" ");
    if let Some(why) = budget::excess(&text) {
        return not_read(&text, why);
    }
    let words: Vec<Word> = words.iter().map(|word| Word::literal(word)).collect();
    on_the_thread(&text, move || Walk::words(words))
}

fn on_the_thread(text: &str, work: impl FnOnce() -> Script + Send + 'static) -> Script {
    worker::run(work).unwrap_or_else(|why| not_read(text, why))
}
