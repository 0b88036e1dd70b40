//! Build tools, package managers and clusters. Subcommands that are not listed are judged as of unknown effect.

use super::Operands::{Paths, Text};
use super::{FamilyLines, Looks};

/// What [`Looks`] are to each.
pub(super) const LOOKS: &[(&str, Looks)] = &[
    (
        "kubectl",
        &[
            ("rollout", &["status", "history"]),
            ("auth", &["can-i", "whoami"]),
            ("config", &["current-context", "get-contexts", "get-clusters", "get-users"]),
        ],
    ),
    (
        "docker",
        &[
            ("container image volume network", &["ls", "list", "inspect"]),
            ("system", &["df", "info"]),
            ("compose", &["ps", "ls", "logs", "images", "top", "version"]),
        ],
    ),
    ("npm", &[("audit", &["signatures"])]),
];

/// `kubectl`; its options may stand anywhere.
pub(super) const KUBECTL: FamilyLines = (
    "kubectl",
    "-n|--namespace= --context= --cluster= --user= --token=! -s|--server=! --kubeconfig=<! --as=! --as-group=! --as-uid=! \
        --request-timeout= --cache-dir=> --certificate-authority=< --client-certificate=< --client-key=< \
        --insecure-skip-tls-verify! --tls-server-name= --match-server-version -v|--v= --warnings-as-errors -h|--help",
    &[&[
        (
            "get",
            Text,
            "-A|--all-namespaces -o|--output=-f -l|--selector= --field-selector= -w|--watch --watch-only --show-labels \
            --show-kind --no-headers --sort-by= -L|--label-columns= --ignore-not-found --chunk-size= --raw=! --subresource= --server-print=? --allow-missing-template-keys=? \
            -f|--filename=< -k|--kustomize=<! -R|--recursive* --template=< --show-managed-fields --output-watch-events",
        ),
        (
            "describe",
            Text,
            "-A|--all-namespaces -l|--selector= -f|--filename=< -k|--kustomize=<! -R|--recursive* --show-events --chunk-size=",
        ),
        (
            "logs",
            Text,
            "-f|--follow -p|--previous -c|--container= --all-containers --tail= --since= --since-time= --timestamps \
            --prefix --all-pods -l|--selector= --max-log-requests= --limit-bytes= --ignore-errors --pod-running-timeout=",
        ),
        (
            "top",
            Text,
            "-A|--all-namespaces --containers --sort-by= -l|--selector= --no-headers --sum --use-protocol-buffers",
        ),
        ("version", Text, "--client -o|--output= --short"),
        (
            "api-resources",
            Text,
            "--namespaced=? --verbs= -o|--output= --api-group= --no-headers --sort-by= --cached --categories=",
        ),
        ("api-versions cluster-info", Text, ""),
        ("explain", Text, "--recursive --api-version= -o|--output="),
        (
            "delete",
            Text,
            "--all -A|--all-namespaces -l|--selector= --field-selector= -f|--filename=< -k|--kustomize=<! -R|--recursive* \
            --force --grace-period= --now --wait=? --timeout= --cascade=? --ignore-not-found -o|--output= --dry-run=? -i|--interactive --raw=!",
        ),
        (
            "apply",
            Text,
            "-f|--filename=< -k|--kustomize=<! -R|--recursive* --dry-run=? --server-side --force --force-conflicts --prune \
            -l|--selector= --wait=? --timeout= -o|--output= --validate=? --field-manager= --overwrite --all --cascade=? --grace-period= --prune-allowlist= --show-managed-fields --subresource=",
        ),
        ("diff", Text, "-f|--filename=<! -k|--kustomize=<! -R|--recursive*"),
        (
            "scale",
            Text,
            "--replicas= --current-replicas= --resource-version= --timeout= --all -l|--selector= -f|--filename=< -o|--output= \
            --dry-run=?",
        ),
        ("auth", Text, "-A|--all-namespaces --list -q|--quiet --no-headers --subresource="),
        (
            "wait",
            Text,
            "--for= --timeout= --all -A|--all-namespaces -l|--selector= --field-selector= -f|--filename=< -R|--recursive* -o|--output=",
        ),
        (
            "label annotate",
            Text,
            "--overwrite --all -A|--all-namespaces -l|--selector= --field-selector= -f|--filename=< -k|--kustomize=<! \
            -R|--recursive* --list --dry-run=? -o|--output= --resource-version=",
        ),
        ("config", Text, "--minify --flatten -o|--output= --no-headers"),
        (
            "rollout",
            Text,
            "-w|--watch --timeout= --revision= --to-revision= -f|--filename=< -l|--selector= -o|--output=",
        ),
    ]],
);

/// `docker`.
pub(super) const DOCKER: FamilyLines = (
    "docker",
    "--config=<! -c|--context= -D|--debug -H|--host=! -l|--log-level= --tls --tlscacert=< --tlscert=< --tlskey=< --tlsverify \
        -v|--version",
    &[&[
        ("ps", Text, "-a|--all -f|--filter= --format= -n|--last= -l|--latest --no-trunc -q|--quiet -s|--size"),
        ("images", Text, "-a|--all --digests -f|--filter= --format= --no-trunc -q|--quiet --tree"),
        ("logs", Text, "--details -f|--follow --since= -n|--tail= -t|--timestamps --until="),
        ("inspect", Text, "-f|--format= -s|--size --type="),
        ("version info", Text, "-f|--format="),
        ("stats", Text, "-a|--all --format= --no-stream --no-trunc"),
        ("top port diff", Text, ""),
        ("history", Text, "--platform= --format= -H|--human --no-trunc -q|--quiet"),
        ("rm", Text, "-f|--force -l|--link -v|--volumes"),
        ("rmi", Text, "-f|--force --no-prune --platform="),
        ("stop restart", Text, "-s|--signal= -t|--time|--timeout="),
        ("kill", Text, "-s|--signal="),
        ("pull", Text, "-a|--all-tags --platform= -q|--quiet"),
        ("container image volume network", Text, "-a|--all -f|--filter= --format= -q|--quiet --no-trunc -s|--size"),
        ("system", Text, "-v|--verbose --format="),
        (
            "compose",
            Text,
            "-f|--file=< -p|--project-name= -a|--all --format= -q|--quiet --services --status= --tail= --follow --since= --until= \
            -t|--timestamps --no-color --no-log-prefix --no-trunc",
        ),
        ("push", Text, "-a|--all-tags --platform= -q|--quiet"),
    ]],
);

/// `npm`. What follows a script's name is the script's own.
pub(super) const NPM: FamilyLines = (
    "npm",
    "--prefix=@ -C=@ -s|--silent -q|--quiet -d --json -l|--long --loglevel= -w|--workspace= --workspaces -ws --if-present \
        --include-workspace-root -g|--global! --userconfig=<! --globalconfig=<! --script-shell=! --node-options=! --cache=> \
        --registry=! --no-color --color=? --no-progress -h|--help -v|--version",
    &[&[
        (
            "ls list la ll",
            Text,
            "-a|--all --depth= -p|--parseable --link --prod --dev --omit= --include= --package-lock-only",
        ),
        ("view info show v", Text, ""),
        ("outdated", Text, "-a|--all -p|--parseable"),
        ("audit", Text, "--audit-level= --omit= --include= --production --package-lock-only --foreground-scripts!"),
        ("explain why", Text, ""),
        ("search", Text, "--parseable --searchlimit="),
        ("root prefix whoami ping", Text, ""),
        ("run run-script rum urn", Paths(None), ""),
        ("test t tst start", Paths(None), ""),
        (
            "ci clean-install",
            Text,
            "--ignore-scripts --no-audit --no-fund --prefer-offline --omit= --include= --legacy-peer-deps --production",
        ),
        (
            "install i add",
            Paths(None),
            "-D|--save-dev -P|--save-prod -E|--save-exact -O|--save-optional --no-save -S|--save --ignore-scripts \
            --no-audit --no-fund --prefer-offline --omit= --include= --legacy-peer-deps --package-lock-only --dry-run -f|--force",
        ),
    ]],
);

const BUILD: &str = "-p|--package= --workspace --all --exclude= -F|--features= --all-features --no-default-features --lib --bin= --bins \
    --example= --examples --test= --tests --bench= --benches --all-targets -r|--release --profile= --target= -j|--jobs= --keep-going \
    --message-format= --future-incompat-report --unit-graph --no-deps --document-private-items --ignore-rust-version --no-run --no-fail-fast --doc --timings=?";

/// `cargo`. Words after `--` go to what was built.
pub(super) const CARGO: FamilyLines = (
    "cargo",
    "-v|--verbose -vv -q|--quiet --color= --frozen --locked --offline --list -V|--version -h|--help --explain= -Z=! --config=! -C=@! \
        --manifest-path=< --lockfile-path=> --target-dir=>",
    &[&[
        ("build b check c doc d clippy", Paths(None), BUILD),
        // What follows are names of tests, and words for the tests themselves, which do what they like anyway.
        ("test t bench", Text, BUILD),
        ("fmt", Paths(None), "--all --check -p|--package= --message-format="),
        (
            "tree",
            Text,
            "-p|--package= --workspace --all --exclude= -F|--features= --all-features --no-default-features -i|--invert= \
            --depth= --prefix= -e|--edges= -d|--duplicates --no-dedupe --prune= -f|--format= --target= --charset=",
        ),
        (
            "metadata",
            Text,
            "--no-deps --format-version= --filter-platform= -F|--features= --all-features --no-default-features",
        ),
        ("search info", Text, "--limit= --registry= --index=!"),
        ("version", Text, ""),
    ]],
);

/// `pip`.
pub(super) const PIP: FamilyLines = (
    "pip pip3",
    "-v|--verbose -q|--quiet --no-input --isolated --require-virtualenv --disable-pip-version-check --no-cache-dir --no-color --timeout= --retries= \
        --python=! --log=> --proxy=! --cert=< --cache-dir=> --trusted-host=! --exists-action= -h|--help -V|--version",
    &[&[
        (
            "list",
            Text,
            "-o|--outdated -u|--uptodate -e|--editable -l|--local --user --path=< --pre --format= --not-required --exclude-editable --include-editable --exclude=",
        ),
        ("show", Text, "-f|--files"),
        ("freeze", Text, "-r|--requirement=< -l|--local --user --path=< --all --exclude-editable --exclude="),
        ("check", Text, ""),
        (
            "install",
            Paths(None),
            "-r|--requirement=< -c|--constraint=< --no-deps --pre -e|--editable=< --dry-run -U|--upgrade --force-reinstall \
            --only-binary= --no-binary= --prefer-binary --user --progress-bar= --no-compile --upgrade-strategy= \
            --break-system-packages --no-build-isolation --root-user-action= --require-hashes -I|--ignore-installed",
        ),
    ]],
);
