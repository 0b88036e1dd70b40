//! The `setup` of a test: a few shell words that make files, in a folder of their own. They are read here and given to no
//! shell: a policy is loaded by a running gateway, and loading runs nothing.

use std::fs;
use std::io::Write;
use std::iter::Peekable;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::Chars;

use path_clean::PathClean;
use tempfile::TempDir;

use crate::policy::called::with_root;

/// The files of one test; gone when dropped.
pub struct Tree {
    _temp: TempDir,
    /// Everything is made below it.
    base: PathBuf,
    root: PathBuf,
}

impl Tree {
    /// An empty root.
    ///
    /// # Errors
    /// No temporary folder can be made.
    pub fn new() -> Result<Self, String> {
        let private = fs::Permissions::from_mode(0o700);
        let made = || {
            let temp = tempfile::Builder::new().prefix("portcullis-test-").permissions(private).tempdir()?;
            let base = temp.path().canonicalize()?;
            let root = base.join("root");
            fs::create_dir(&root)?;
            Ok::<_, std::io::Error>(Self { _temp: temp, base, root })
        };
        made().map_err(|error| error.to_string())
    }

    /// The upstream's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Carries out one line.
    ///
    /// # Errors
    /// What of it is not known, or could not be done.
    pub fn run(&self, line: &str) -> Result<(), String> {
        for Words { words, into } in commands(&with_root(line, &self.root.to_string_lossy()))? {
            self.command(&words, into.as_ref())?;
        }
        Ok(())
    }

    fn command(&self, words: &[String], into: Option<&Redirect>) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let failed = |error: std::io::Error| format!("`{}`: {error}", words.join(" "));
        match (words.as_slice(), into) {
            (["echo", text @ ..], Some(into)) => self.write(into, &format!("{}\n", text.join(" "))),
            (["printf", format, texts @ ..], Some(into)) => self.write(into, &printed(format, texts)?),
            (["echo" | "printf", ..], None) => Err("nothing is written: end it with `> FILE`".into()),
            ([word, ..], Some(_)) => Err(format!("`{word}` writes no text, so `>` makes no sense")),
            (["mkdir", "-p", folders @ ..], None) => {
                folders.iter().try_for_each(|folder| fs::create_dir_all(self.place(folder)?).map_err(failed))
            }
            (["mkdir", folders @ ..], None) => {
                folders.iter().try_for_each(|folder| fs::create_dir(self.place(folder)?).map_err(failed))
            }
            (["touch", files @ ..], None) => {
                files.iter().try_for_each(|file| self.write(&Redirect::to(file, true), ""))
            }
            (["ln", "-s", target, link], None) => std::os::unix::fs::symlink(target, self.place(link)?).map_err(failed),
            (["ln", file, link], None) => fs::hard_link(self.place(file)?, self.place(link)?).map_err(failed),
            ([word, ..], None) => Err(format!("`{word}` is not known in `setup`, which runs no programs")),
            ([], _) => Err("a redirect without a command".into()),
        }
    }

    fn write(&self, into: &Redirect, text: &str) -> Result<(), String> {
        let file = self.place(&into.file)?;
        if file.is_symlink() {
            return Err(format!("`{}` is a link: write to what it leads to", into.file));
        }
        let mut options = fs::OpenOptions::new();
        options.create(true).write(true).append(into.append).truncate(!into.append);
        let written = options.open(file).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("`{}`: {error}", into.file))
    }

    /// Where a word leads: below the test's own folder, whatever links lie on the way.
    fn place(&self, word: &str) -> Result<PathBuf, String> {
        let place = self.root.join(word).clean();
        let parent = place.ancestors().skip(1).find(|parent| parent.is_symlink() || parent.exists());
        let real = parent.and_then(|parent| parent.canonicalize().ok());
        let within = |path: &Path| path.starts_with(&self.base);
        if word.is_empty() || !within(&place) || !real.is_some_and(|real| within(&real)) {
            return Err(format!("`{word}` is outside the test's own folder"));
        }
        Ok(place)
    }
}

/// A simple command.
#[derive(PartialEq, Eq, Debug, Default)]
struct Words {
    words: Vec<String>,
    into: Option<Redirect>,
}

#[derive(PartialEq, Eq, Debug)]
struct Redirect {
    file: String,
    append: bool,
}

impl Redirect {
    fn to(file: &str, append: bool) -> Self {
        Self { file: file.into(), append }
    }
}

/// The simple commands of a line, between `;` and `&&`; quotes are as in a shell, and nothing is expanded.
fn commands(line: &str) -> Result<Vec<Words>, String> {
    let mut found = vec![Words::default()];
    let mut redirect: Option<bool> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.peek().copied() {
        let Some(last) = found.last_mut() else { break };
        let ends = match c {
            '#' => break,
            ' ' | '\t' => {
                chars.next();
                continue;
            }
            '>' => {
                chars.next();
                redirect = Some(chars.next_if_eq(&'>').is_some());
                continue;
            }
            ';' | '\n' => true,
            '&' => {
                chars.next();
                if chars.peek() != Some(&'&') {
                    return Err("`&` is not known in `setup`".into());
                }
                true
            }
            _ => false,
        };
        if ends {
            chars.next();
            found.push(Words::default());
            continue;
        }
        let word = word(&mut chars)?;
        match redirect.take() {
            Some(append) => last.into = Some(Redirect { file: word, append }),
            None => last.words.push(word),
        }
    }
    if redirect.is_some() {
        return Err("`>` leads nowhere".into());
    }
    found.retain(|command| *command != Words::default());
    Ok(found)
}

fn word(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut word = String::new();
    while let Some(c) = chars.next_if(|c| !matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '>')) {
        match c {
            '\'' => quoted(chars, '\'', &mut word)?,
            '"' => quoted(chars, '"', &mut word)?,
            '\\' => word.extend(chars.next()),
            '$' | '`' | '|' | '<' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' => {
                return Err(format!("`{c}` is not known in `setup`: put it in single quotes, or write it out"));
            }
            c => word.push(c),
        }
    }
    Ok(word)
}

fn quoted(chars: &mut Peekable<Chars<'_>>, end: char, word: &mut String) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            c if c == end => return Ok(()),
            '\\' if end == '"' => match chars.next() {
                Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                other => word.extend(std::iter::once('\\').chain(other)),
            },
            '$' | '`' if end == '"' => return Err(format!("`{c}` is not known in `setup`: use single quotes")),
            c => word.push(c),
        }
    }
    Err(format!("a quote {end} is not closed"))
}

/// What `printf` writes: `\n`, `\t`, `\\`, `%s` and `%%`.
fn printed(format: &str, texts: &[&str]) -> Result<String, String> {
    let mut texts = texts.iter();
    let mut chars = format.chars();
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match (c, c == '\\' || c == '%') {
            (c, false) => text.push(c),
            (c, true) => match (c, chars.next()) {
                ('\\', Some('n')) => text.push('\n'),
                ('\\', Some('t')) => text.push('\t'),
                ('\\', Some('\\')) => text.push('\\'),
                ('%', Some('%')) => text.push('%'),
                ('%', Some('s')) => text.push_str(texts.next().unwrap_or(&"")),
                (c, next) => return Err(format!("`{c}{}` is not known to `printf` here", next.unwrap_or_default())),
            },
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_words_of_the_cases_make_files() {
        let tree = Tree::new().unwrap();
        for line in [
            "mkdir -p $ROOT/docs ${ROOT}-evil 'a b'",
            "echo 'fn main() {}' > $ROOT/docs/main.rs; touch docs/empty && ln -s ../docs docs/again # a loop",
            "printf 'a\\n%s' \"x\\\"y\" > docs/p; echo more >> docs/p",
            "ln docs/p docs/q",
            "echo x > ${ROOT}-evil/x; mkdir $ROOT/../${ROOT##*/}-more",
            "ln -s /etc/passwd out",
        ] {
            tree.run(line).unwrap();
        }
        let at = |path: &str| tree.root().join(path);
        assert_eq!(fs::read_to_string(at("docs/main.rs")).unwrap(), "fn main() {}\n");
        assert_eq!(fs::read_to_string(at("docs/again/q")).unwrap(), "a\nx\"ymore\n");
        assert!(at("a b").is_dir() && at("../root-evil/x").is_file() && at("../root-more").is_dir());
        assert_eq!(fs::read_link(at("out")).unwrap(), Path::new("/etc/passwd"));
    }

    #[test]
    fn nothing_is_run_and_nothing_is_made_elsewhere() {
        let tree = Tree::new().unwrap();
        tree.run("ln -s /tmp away; ln -s /tmp/nowhere-at-all file").unwrap();
        for (line, says) in [
            ("rm -rf x", "`rm` is not known"),
            ("echo $(id) > x", "`$`"),
            ("echo \"$HOME\" > x", "`$`"),
            ("mkdir a & mkdir b", "`&`"),
            ("echo a | tee x", "`|`"),
            ("echo a", "> FILE"),
            ("mkdir x > y", "no sense"),
            ("> x", "without a command"),
            ("echo x >", "nowhere"),
            ("echo 'x > y", "not closed"),
            ("mkdir ../../x", "outside"),
            ("echo x > /etc/portcullis-test", "outside"),
            ("echo x > away/portcullis-test", "outside"),
            ("mkdir -p away/a/b", "outside"),
            ("echo x > file", "is a link"),
            ("touch file", "is a link"),
            ("mkdir '*' {a,b}", "`{`"),
        ] {
            let told = tree.run(line).unwrap_err();
            assert!(told.contains(says), "{line}: {told}");
        }
    }
}
