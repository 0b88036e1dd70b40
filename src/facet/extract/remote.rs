//! URL and e-mail address arguments: who is reached.

use super::stray::candidates;
use super::*;
use crate::facet::{AddressFacet, CommandFacet};

/// Bytes of an unmarked string in which a host is looked for.
const MAX_REMOTE: usize = 4_096;

impl<'a> Call<'a> {
    pub(super) fn url_argument(&mut self, pointer: &Pointer) -> Result<(), Malformed> {
        for (at, text) in self.texts(pointer, "a URL")? {
            self.add_url(at, text)?;
        }
        Ok(())
    }

    /// A text with one address or several, or a list of such texts: a facet for each address.
    pub(super) fn address_argument(&mut self, pointer: &Pointer) -> Result<(), Malformed> {
        for selected in self.select(pointer) {
            let (Selected::Found(at, value) | Selected::TooShallow(at, value)) = selected;
            let texts = match &value.kind {
                Kind::String(text) => Some(vec![&**text]),
                Kind::Array(items) => items.iter().map(Value::as_str).collect(),
                Kind::Null => Some(Vec::new()),
                _ => None,
            };
            let Some(texts) = texts else {
                let what = "an e-mail address must be a string, or a list of strings".to_owned();
                return Err(Malformed { pointer: at, what });
            };
            for address in texts.into_iter().flat_map(url::addresses) {
                let unread = address.host.is_none();
                let odd = || Floor::because(FloorWhy::OddAddress, "an e-mail address that not all readers take alike");
                let facet = AddressFacet { address: address.text, host: address.host, unmarked: false };
                self.add(FacetKind::Address(facet), unread.then(odd).into_iter().collect());
            }
        }
        Ok(())
    }

    /// A URL, or the path that a `file:` URL names.
    pub(super) fn add_url(&mut self, at: String, text: &'a str) -> Result<(), Malformed> {
        let guess = self.guessing.then(|| guessed("a URL"));
        let outcome = if file_rest(text).is_some() {
            self.space.plain(text).map(|plain| {
                let used = Use { access: Some(Access::Read), ..Use::default() };
                self.add_path(&at, text, &plain, None, used);
                self.as_sent(guess.clone());
            })
        } else {
            url::read(text).map(|(host, mut floors)| {
                floors.extend(guess.clone());
                self.add(
                    FacetKind::Url(UrlFacet { url: text.to_owned(), host, command: None, unmarked: false }),
                    floors,
                );
            })
        };
        match (outcome, guess) {
            (Err(what), None) => Err(Malformed { pointer: at, what }),
            (Err(_), Some(floor)) => {
                self.floors.push(floor);
                Ok(())
            }
            (Ok(()), _) => Ok(()),
        }
    }

    /// Who is reached by a string that nobody has marked, if it is a URL with a host, or e-mail addresses. The names of
    /// arguments do not say so: a `to` may be anything.
    pub(super) fn guess_host(&mut self, text: &str) {
        if text.len() > MAX_REMOTE || text.chars().any(char::is_control) {
            return;
        }
        let read = |text: &String| match url::read(text) {
            Ok((host @ Some(_), floors)) if file_rest(text).is_none() => Some((host, floors)),
            _ => None,
        };
        let whole = std::iter::once(text.trim().to_owned());
        if let Some((host, floors)) = whole.chain(candidates(text)).find_map(|text| read(&text)) {
            let facet = UrlFacet { url: text.to_owned(), host, command: None, unmarked: true };
            return self.add(FacetKind::Url(facet), floors);
        }
        for address in url::addresses(text).into_iter().filter(|address| address.host.is_some()) {
            let facet = AddressFacet { address: address.text, host: address.host, unmarked: true };
            self.add(FacetKind::Address(facet), Vec::new());
        }
    }

    /// A URL that a command names (`curl https://…`, `git clone ssh://…`), or the path of a `file:` URL. A machine that is
    /// named without a scheme is handed over as `ssh://HOST`.
    ///
    /// # Errors
    /// A URL or path that cannot be read.
    pub(super) fn url_of_command(&mut self, at: &str, command: &Arc<CommandFacet>, text: &str) -> Result<(), String> {
        if file_rest(text).is_some() {
            let plain = self.space.plain(text)?;
            self.add_path(at, text, &plain, None, Use { access: None, ..Use::default() });
            self.as_sent(Some(Floor::because(FloorWhy::Spelling, "a `file:` URI in a command")));
            return Ok(());
        }
        let (host, floors) = url::read(text)?;
        let command = Some(Arc::clone(command));
        self.add(FacetKind::Url(UrlFacet { url: text.to_owned(), host, command, unmarked: false }), floors);
        Ok(())
    }
}
