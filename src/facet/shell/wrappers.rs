//! Programs that run another command: what they take for themselves, and where the other begins.

use super::arguments::{Until, read};
use super::flow::{Bases, Flow};
use super::options::Options;
use super::simple::{Given, Walk, command, is_harmless_variable};
use super::words::Word;
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
    /// As the text after `-c`.
    Script,
    /// As those, on another machine.
    Elsewhere,
}

const SHELL: &str = "-c -l|--login -i -x -e -u -v -n -f -h -m -b -k -p -B -E -H -T -P -r -a -C --norc --noprofile --posix --noediting \
    --restricted --verbose --rcfile|--init-file=<! -o= -O=";

const WRAPPERS: &[Wrapper] = &[
    Wrapper { names: "sh bash dash zsh ksh ash", options: SHELL, skips: 0, runs: Runs::Script },
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
        options: "-A|--askpass -b|--background -E|--preserve-env=? -H|--set-home -k|--reset-timestamp -K -n|--non-interactive -P \
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
        runs: Runs::More,
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
        let mut found = read(&Options::parse(wrapper.options), arguments, until, false);
        let mut rest = arguments.get(found.used..).unwrap_or_default();
        let (skipped, after) = rest.split_at_checked(wrapper.skips.min(rest.len())).unwrap_or_default();
        rest = after;
        let has = |name: &str| found.options.iter().any(|option| option == name);
        let asks_only = words.first().is_some_and(|word| word.text == "command") && (has("-v") || has("-V"));
        let script = has("-c") && wrapper.runs == Runs::Script;
        let split = has("-S") && wrapper.runs == Runs::Environment && wrapper.names == "env";
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
            Runs::More => floor("puts words into the command that are read when it runs"),
            _ => {}
        }
        let texts = |words: &[Word]| {
            let known: Option<Vec<&str>> = words.iter().map(Word::known).collect();
            known.map(|texts| texts.join(" "))
        };
        let text = match wrapper.runs {
            Runs::Script if script => match wrapper.names {
                // The option has the text, the operand is a user.
                "su" => value_of(arguments, &["-c", "--command"]),
                _ => rest.first().map(|word| texts(std::slice::from_ref(word))),
            },
            Runs::Environment if split => value_of(arguments, &["-S", "--split-string"]),
            Runs::Joined | Runs::Elsewhere if !rest.is_empty() => Some(texts(rest)),
            Runs::Script => rest.first().and_then(|word| word.known()).map(|path| {
                made.places.push(super::Place::read(path));
                None
            }),
            _ => None,
        };
        let unknown = matches!(text, Some(None)) && (script || wrapper.runs != Runs::Script);
        if unknown {
            made.floors.push(not_understood("the script is known only when it runs"));
            made.unread = Some(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
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
    matches!(name, "sh" | "bash" | "dash" | "su")
}

/// The value of an option, attached or not: none if it is not there, none inside if it is not known.
fn value_of(arguments: &[Word], names: &[&str]) -> Option<Option<String>> {
    arguments.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| {
            let rest = word.text.strip_prefix(name)?;
            let rest = rest.strip_prefix('=').unwrap_or(rest);
            if !rest.is_empty() {
                return Some(word.known.then(|| rest.to_owned()));
            }
            Some(arguments.get(at + 1).and_then(Word::known).map(str::to_owned))
        })
    })
}
