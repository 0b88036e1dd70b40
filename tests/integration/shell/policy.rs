//! The policy that texts are tried against.

/// Generous: only what is understood stands between a text and the shell.
pub const GENEROUS: &str = "version: 1
guardrails:
  - { name: secrets, verdict: deny, path: secrets/, reason: Not for models. }
groups:
  default:
    rules:
      - { verdict: deny, command: [rm, curl, sudo], reason: Not here. }
      - verdict: allow
        command: [ls, cat, head, tail, wc, sort, uniq, cut, tr, grep, sed, find, echo, printf, date, basename, dirname, tar, diff,
          env, xargs, nice, timeout, nohup, setsid, stdbuf, sh, bash, dash, command, builtin, exec, eval, time, watch,
          test, '[', '[[', 'true', 'false', ':', pwd, cd, pushd, popd, type, which, git status, git log, git diff,
          export, declare, local, readonly, read, mapfile, trap, set, shopt, alias, let, unset, getopts, source, ., hash, f, x]
";
