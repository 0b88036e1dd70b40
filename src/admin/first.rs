//! The approver that the first start makes where none is configured.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::{ApproverConfig, Config, Role, TokenConfig};
use crate::secret::{Secret, TokenHash, random_id};

/// The file in the state folder that holds the first approver's token, so that the command line can use it.
pub const TOKEN_FILE: &str = "approver.token";

/// The approver that stands in for a configured one.
#[derive(Clone, Debug)]
pub struct First {
    /// To be put in the directory: named after the operating-system user, with all roles for all groups.
    pub approver: ApproverConfig,
    /// Their token.
    pub token: Secret,
    /// Where it is kept.
    pub file: PathBuf,
    /// Whether this start made it.
    pub created: bool,
}

/// The first approver, made or read again; none where approvers are configured. Processes that start at the same time
/// on one state folder get the same one.
///
/// # Errors
/// The token cannot be written or read, or others than the owner can read it.
pub fn ensure_first_approver(config: &Config) -> io::Result<Option<First>> {
    if !config.approvers.is_empty() {
        return Ok(None);
    }
    let file = config.state_dir.join(TOKEN_FILE);
    let created = create(&config.state_dir, &file)?;
    let token = read_token(&file)?;
    let hash = TokenHash::of(token.expose());
    let approver = ApproverConfig { tokens: vec![TokenConfig { hash, expires: None }], ..stand_in() };
    Ok(Some(First { approver, token, file, created }))
}

/// Who decides where no approvers are configured, without the token that the first start makes.
pub fn stand_in() -> ApproverConfig {
    ApproverConfig {
        name: user_name(),
        roles: vec![Role::Viewer, Role::Approver, Role::Operator, Role::Auditor],
        groups: vec!["*".into()],
        teams: Vec::new(),
        tokens: Vec::new(),
    }
}

/// Reads the token file, which only its owner may read.
fn read_token(file: &Path) -> io::Result<Secret> {
    let mode = fs::metadata(file)?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("{} can be read by others; run `chmod 600` on it", file.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    let text = fs::read_to_string(file)?;
    match text.trim() {
        "" => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} is empty", file.display()))),
        token => Ok(Secret::new(token)),
    }
}

/// Makes the token file with its content in one step, so that nobody ever reads half of it; whether it was made now.
fn create(folder: &Path, file: &Path) -> io::Result<bool> {
    if file.exists() {
        return Ok(false);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = folder.join(random_id(".approver-", 12));
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(out, "{}", random_id("pc_approver_", 32))?;
    out.sync_all()?;
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

/// The name of the user this process runs as.
fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    listed.or_else(|| std::env::var("USER").ok()).filter(|name| !name.is_empty()).unwrap_or(format!("uid-{uid}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::PolicyConfig;

    fn config(state_dir: &Path) -> Config {
        Config::minimal(state_dir.to_owned(), PolicyConfig::default(), Vec::new())
    }

    #[test]
    fn the_first_start_makes_one_who_may_do_all_and_later_starts_find_them() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = folder.path().join("state");
        let first = ensure_first_approver(&config(&state_dir)).unwrap().unwrap();
        assert!(first.created && !first.approver.name.is_empty());
        for (path, mode) in [(&first.file, 0o600), (&state_dir, 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
        let again = ensure_first_approver(&config(&state_dir)).unwrap().unwrap();
        assert!(!again.created);
        assert_eq!(again.token.expose(), first.token.expose());
        let left: Vec<_> = fs::read_dir(&state_dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [TOKEN_FILE], "no draft stays behind");
    }

    #[test]
    fn processes_that_start_together_agree() {
        let folder = tempfile::tempdir().unwrap();
        let start = || ensure_first_approver(&config(folder.path())).unwrap().unwrap();
        let all: Vec<First> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().filter(|first| first.created).count(), 1);
        assert!(all.iter().all(|first| first.token.expose() == all.first().unwrap().token.expose()));
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = ensure_first_approver(&config(folder.path())).unwrap().unwrap();
        fs::set_permissions(&first.file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = ensure_first_approver(&config(folder.path())).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn configured_approvers_need_no_first_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        config.approvers = vec![ensure_first_approver(&config).unwrap().unwrap().approver];
        assert!(ensure_first_approver(&config).unwrap().is_none());
    }
}
