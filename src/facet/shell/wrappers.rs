//! Programs that run another command: what they take for themselves, and where the other begins.

use super::arguments::{Until, read};
use super::flow::{Bases, Flow};
use super::options::Options;
use super::simple::{Given, Walk, command, is_harmless_variable};
use super::words::{Word, joined};
use super::{base_name, not_understood};

/// A program that runs another.
#[derive(Debug)]
pub(super) struct Wrapper {
    names: &'static str,
    options: &'static str,
    /// Operands of its own before the command.
    skips: usize,
    runs: Runs,
}

/// How the other command is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Runs {
    /// As the words that follow.
    Words,
    /// As those, after assignments.
    Environment,
    /// As those, with more words that are read when it runs.
    More,
    /// As texts that are joined and read by a shell.
    Joined,
    /// As those, up to `:::`, with more words that are read when it runs.
    Template,
    /// As the text after `-c`.
    Script,
    /// As those, on another machine.
    Elsewhere,
}

const SHELL: &str = "-c -l|--login -i -x -e -u -v -n -f -h -m -b -k -p -B -E -H -T -P -r -a -C --norc --noprofile --posix --noediting \
    --restricted --verbose --rcfile|--init-file=<! -o= -O=";

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: "sh bash rbash dash zsh ksh mksh ash yash fish csh tcsh",
        options: SHELL,
        skips: 0,
        runs: Runs::Script,
    },
    Wrapper {
        names: "env",
        options: "-i|--ignore-environment -0|--null -u|--unset= -C|--chdir=@ -v|--debug -S|--split-string= -P=!",
        skips: 0,
        runs: Runs::Environment,
    },
    Wrapper {
        names: "xargs",
        options: "-0|--null -a|--arg-file=< -d|--delimiter= -E= -e=? -I= -i|--replace=? -L= -l|--max-lines=? -n|--max-args= \
            -P|--max-procs= -r|--no-run-if-empty -s|--max-chars= -t|--verbose -p|--interactive -x|--exit -o|--open-tty",
        skips: 0,
        runs: Runs::More,
    },
    Wrapper {
        names: "timeout",
        options: "-f|--foreground -p|--preserve-status -k|--kill-after= -s|--signal= -v|--verbose",
        skips: 1,
        runs: Runs::Words,
    },
    Wrapper { names: "nice", options: "-n|--adjustment= -#", skips: 0, runs: Runs::Words },
    Wrapper { names: "nohup", options: "", skips: 0, runs: Runs::Words },
    Wrapper { names: "stdbuf", options: "-i|--input= -o|--output= -e|--error=", skips: 0, runs: Runs::Words },
    Wrapper { names: "setsid", options: "-c|--ctty -f|--fork -w|--wait", skips: 0, runs: Runs::Words },
    Wrapper {
        names: "sudo",
        options: "-A|--askpass -b|--background -E|--preserve-env=~ -H|--set-home -k|--reset-timestamp -K -n|--non-interactive -P \
            -S|--stdin -u|--user= -g|--group= -h|--host= -p|--prompt= -r|--role= -t|--type= -C|--close-from= -D|--chdir=@ \
            -R|--chroot=<! -T|--command-timeout= -U|--other-user= -i|--login! -s|--shell! -e|--edit! -l|--list -v|--validate",
        skips: 0,
        runs: Runs::Environment,
    },
    Wrapper { names: "doas", options: "-L -n -s! -a= -C=<! -u=", skips: 0, runs: Runs::Words },
    Wrapper {
        names: "su",
        options: "-c|--command=! -l|--login -m|-p|--preserve-environment -s|--shell=! -g= -G= -P",
        skips: 1,
        runs: Runs::Script,
    },
    Wrapper { names: "command", options: "-p -v -V", skips: 0, runs: Runs::Words },
    Wrapper { names: "builtin", options: "", skips: 0, runs: Runs::Words },
    Wrapper { names: "exec", options: "-c -l -a=", skips: 0, runs: Runs::Words },
    Wrapper {
        names: "time",
        options: "-p|--portability -v|--verbose -f|--format= -o|--output=> -a|--append -q|--quiet",
        skips: 0,
        runs: Runs::Words,
    },
    Wrapper { names: "busybox toybox", options: "", skips: 0, runs: Runs::Words },
    Wrapper { names: "eval", options: "", skips: 0, runs: Runs::Joined },
    Wrapper {
        names: "watch",
        options: "-b|--beep -c|--color -d|--differences=? -e|--errexit -g|--chgexit -n|--interval= -p|--precise -q|--equexit= -t|--no-title \
            -w|--no-wrap -x|--exec",
        skips: 0,
        runs: Runs::Joined,
    },
    Wrapper {
        names: "parallel",
        options: "-j|--jobs= -k|--keep-order -0|--null -a|--arg-file=< -n|--max-args= -N= -I= -X -m -q --dry-run --bar --progress --eta",
        skips: 0,
        runs: Runs::Template,
    },
    Wrapper {
        names: "ssh",
        options: "-4 -6 -A! -a -C -f -g! -K -k -M! -N -n -q -s -T -t -v -X! -x -Y! -y -B= -b= -c= -D=! -E=> -e= -F=<! -I=! -i=< -J=! -L=! \
            -l= -m= -O= -o=! -p= -Q= -R=! -S=! -W=! -w=!",
        skips: 1,
        runs: Runs::Elsewhere,
    },
];

/// The wrapper of that name.
pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.names.split_whitespace().any(|known| known == name))
}

impl Walk {
    /// Judges a wrapper, and what it runs.
    pub fn wrapped(&mut self, wrapper: &Wrapper, words: &[Word], given: Given, bases: &Bases) -> Flow {
        let arguments = words.get(1..).unwrap_or_default();
        // `su` takes options after its operand too.
        let until = if wrapper.names == "su" { Until::End } else { Until::Operand };
        let options = Options::parse(wrapper.options);
        let mut found = read(&options, arguments, until, false);
        let mut rest = arguments.get(found.used..).unwrap_or_default();
        let (skipped, after) = rest.split_at_checked(wrapper.skips.min(rest.len())).unwrap_or_default();
        rest = after;
        if wrapper.runs == Runs::Elsewhere {
            // Options may follow the host, too.
            let more = read(&options, rest, Until::Operand, false);
            rest = rest.get(more.used..).unwrap_or_default();
            found.add(more);
        }
        let has = |name: &str| found.options.iter().any(|option| option == name);
        let asks_only = words.first().is_some_and(|word| word.text == "command") && (has("-v") || has("-V"));
        let script = has("-c") && wrapper.runs == Runs::Script;
        let split = has("-S") && wrapper.names == "env";
        let for_its_shell = wrapper.names == "su"
            && (found.before_dashes.is_some() || found.operands.iter().filter(|word| word.text != "-").count() > 1);
        let replaces_the_shell = wrapper.names == "exec" && rest.is_empty();
        let input = given.input;

        let mut made = command(words, given, bases);
        made.words.extend(skipped.iter().map(Word::argument));
        let inner = match &found.directory {
            Some(directory) if !found.lost => bases.into(directory),
            Some(_) => Bases::unknown(),
            None => bases.clone(),
        };
        made.options.append(&mut found.options);
        made.powers.append(&mut found.powers);
        made.places.append(&mut found.places);
        made.hints.append(&mut found.hints);
        made.floors.append(&mut found.floors);
        made.tabled = true;
        let mut floor = |why: &str| made.floors.push(not_understood(why));
        if replaces_the_shell {
            floor("`exec` changes what the rest reads and writes");
        }
        if wrapper.runs == Runs::Environment {
            while let Some((first, after)) = rest.split_first()
                && let Some((name, _)) = first.text.split_once('=')
            {
                if !is_harmless_variable(name) {
                    floor("sets a variable that can change what runs");
                }
                rest = after;
            }
        }
        if wrapper.runs == Runs::Script && words.first().is_some_and(|word| !reads_as_bash(base_name(&word.text))) {
            floor("a shell that reads some texts in another way");
        }
        // A shell without a script reads one from its input.
        if wrapper.runs == Runs::Script && !script {
            match rest.first() {
                None => floor("a shell that runs what it reads"),
                Some(_) => floor("runs a script whose text is not judged"),
            }
        }
        if input && wrapper.runs == Runs::Script {
            floor("a shell that is given input");
        }
        match wrapper.runs {
            Runs::Elsewhere => {
                floor("runs on another machine");
                made.places.extend(skipped.iter().map(|host| super::Place::read(format!("ssh://{}", host.text))));
            }
            Runs::More | Runs::Template => floor("puts words into the command that are read when it runs"),
            _ => {}
        }
        // None inside: a text that is not known here.
        let text = match wrapper.runs {
            // The option has the text, the operand is a user; the last one counts.
            Runs::Script if script && wrapper.names == "su" => Some(texts(found.values("-c").last().into_iter())),
            Runs::Script if script => Some(rest.first().and_then(|word| texts(std::iter::once(Some(word))))),
            // What it splits are options, assignments and a command, as it takes them itself.
            Runs::Environment if split => {
                let text = texts(found.values("-S").chain(rest.iter().map(Some)));
                Some(text.map(|text| format!("env {text}")))
            }
            Runs::Joined | Runs::Elsewhere if !rest.is_empty() => Some(texts(rest.iter().map(Some))),
            Runs::Template => {
                let inputs = rest.iter().position(|word| word.text.starts_with(":::")).unwrap_or(rest.len());
                match rest.split_at_checked(inputs) {
                    // Without a command, what follows are commands.
                    Some(([], [_, lines @ ..])) => Some(known(lines.iter().map(Some)).map(|lines| lines.join("\n"))),
                    Some((template, _)) => Some(texts(template.iter().map(Some))),
                    None => None,
                }
            }
            Runs::Script => rest.first().and_then(|word| word.known()).map(|path| {
                made.places.push(super::Place::read(path));
                None
            }),
            _ => None,
        };
        if matches!(text, Some(None)) && (script || wrapper.runs != Runs::Script) {
            made.floors.push(not_understood("the script is known only when it runs"));
            made.unread = Some(joined(words));
        }
        if for_its_shell {
            made.floors.push(not_understood("words for the shell that `su` starts"));
            made.unread = Some(joined(words));
        }
        if split {
            made.floors.push(not_understood("`env -S` splits a text in a way of its own"));
        }
        self.push(made);
        if let Some(Some(text)) = text {
            // `eval` runs here, everything else in a process of its own, which does not know our variables.
            if wrapper.names == "eval" {
                return self.script(&text, &inner);
            }
            let bindings = std::mem::take(&mut self.bindings);
            self.script(&text, &inner);
            self.bindings = bindings;
            return Flow::same(bases);
        }
        if !asks_only
            && matches!(wrapper.runs, Runs::Words | Runs::Environment | Runs::More)
            && !rest.is_empty()
            && !split
        {
            let mut words = rest.to_vec();
            if wrapper.runs == Runs::More {
                words.push(Word::unknown("…"));
            }
            let flow = self.run(words, Given::default(), &inner);
            let here = matches!(wrapper.names, "command" | "builtin");
            return if here { flow } else { Flow::same(bases) };
        }
        Flow::same(bases)
    }
}

/// Whether a shell reads texts as they are parsed here, or refuses them.
fn reads_as_bash(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "rbash" | "dash" | "su")
}

/// The texts of words, if all of them are there and known.
fn known<'a>(words: impl Iterator<Item = Option<&'a Word>>) -> Option<Vec<&'a str>> {
    words.map(|word| word?.known()).collect()
}

fn texts<'a>(words: impl Iterator<Item = Option<&'a Word>>) -> Option<String> {
    known(words).map(|texts| texts.join(" "))
}
